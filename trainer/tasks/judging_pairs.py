"""The task of recipe `judge`: which of two answers is better, with reasons. Each pair of the data with a winner is a
question; held-out pairs are asked about in both orders, training pairs in one that the seed draws.
"""

from collections.abc import Iterator, Sequence

from trainer.config.recipes.judge import JudgeConfig
from trainer.contracts import Example
from trainer.contracts.model_folder import OutputRole
from trainer.contracts.pairs import LabelledPair, human_reasons, labelled_pairs
from trainer.rewards.pair_judgements import question
from trainer.seeding import derive_seed

from . import judging_metrics
from .base import AnsweredQuestion, Posed, question_key

EQUAL = "pairs left out: their two answers are equal"
TIED = "pairs left out: as many raters are for the one answer as for the other"
UNDECIDED = "pairs left out: nobody could decide them"
NO_REASONS = "pairs left out: no reasons were given for the answer that was preferred"
FEW = "pairs left out: fewer human reasons than data.reasons_at_least"
MANY = "pairs left out: more human reasons than data.reasons_at_most"
BLANK = "human reasons left out: they have no text"


class JudgingPairs:
    """`Posed.facts`: `pair` names the pair, `order` is `given` or `swapped`, `label` is -1 if people prefer the answer shown
    first and 1 if they prefer the other, `reasons` are people's reasons for that, `example` is the key in the dataset,
    `prompt` is what the two `answers` answer, in the order in which they are shown.
    """

    role: OutputRole = "judge"

    def __init__(self, config: JudgeConfig) -> None:
        self._config = config

    def pose(self, example: Example, held_out: bool) -> Iterator[Posed | str]:
        for pair in labelled_pairs(example, self._config.data.scale):
            reasons, blank = human_reasons(example, pair)
            yield from [BLANK] * blank
            if why := self._unfit(example, pair, len(reasons)):
                yield why
                continue
            orders = ("given", "swapped") if held_out else (self._drawn(example, pair),)
            for order in orders:
                yield self._question(example, pair, reasons, order)

    def remarks(self, train: Sequence[Posed]) -> Iterator[str]:
        labels = {posed.facts["label"] for posed in train}
        if len(labels) == 1:
            place = "first" if labels == {-1} else "second"
            yield (
                f"in every training question the better answer is shown {place}, so a judge that always says so is always "
                "right; give more pairs, or another seed"
            )

    def measured(self, answers: Sequence[AnsweredQuestion]) -> dict[str, float]:
        return judging_metrics.of_step(answers)

    def held_out(self, answers: Sequence[AnsweredQuestion]) -> dict[str, float]:
        return judging_metrics.of_evaluation(answers)

    def _unfit(self, example: Example, pair: LabelledPair, reasons: int) -> str:
        """The reason why the pair is not asked about; empty if it is."""
        texts, data = {response.id: response.text for response in example.responses}, self._config.data
        if not pair.votes:
            return UNDECIDED
        if not pair.decided:
            return TIED
        if texts[pair.first] == texts[pair.second]:
            return EQUAL
        if not reasons and self._config.needs_reasons:
            return NO_REASONS
        if reasons < data.reasons_at_least:
            return FEW
        return MANY if data.reasons_at_most is not None and reasons > data.reasons_at_most else ""

    def _drawn(self, example: Example, pair: LabelledPair) -> str:
        draw = derive_seed(self._config.seed, "order", example.key, pair.first, pair.second)
        return "swapped" if draw % 2 else "given"

    def _question(self, example: Example, pair: LabelledPair, reasons: list[str], order: str) -> Posed:
        texts = {response.id: response.text for response in example.responses}
        first, second = (pair.first, pair.second) if order == "given" else (pair.second, pair.first)
        better = pair.first if len(pair.for_first) > len(pair.for_second) else pair.second
        named = f"{example.key} · {pair.first}/{pair.second}"
        facts = {
            "example": example.key,
            "pair": named,
            "order": order,
            "label": -1 if better == first else 1,
            "reasons": reasons,
            "prompt": [message.model_dump(mode="json") for message in example.prompt],
            "answers": [texts[first], texts[second]],
        }
        asked = question(example.prompt, texts[first], texts[second], self._config.data.form)
        return Posed(
            Example(
                key=question_key(f"{named} · {order}"),
                prompt=asked,
                split=example.split,
                group=example.group,
                domain=example.domain,
                source=example.source,
                tags=example.tags,
            ),
            facts,
        )
