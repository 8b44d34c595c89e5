"""The task of recipe `rubric_writer`: write the rubric by which answers to a conversation will be judged. Each pair of the
data with a winner is a question; the writer sees the conversation and neither answer.
"""

from collections.abc import Iterator, Sequence

from trainer.config.recipes.rubric_writer import RubricWriterConfig
from trainer.contracts import Example, Message, Response
from trainer.contracts.model_folder import OutputRole
from trainer.contracts.pairs import LabelledPair, labelled_pairs
from trainer.judges.calls import expand
from trainer.judges.inputs import JudgeInput
from trainer.judges.kinds.generator import RubricGeneratorSpec
from trainer.rewards.written_rubrics import ComparedPair
from trainer.seeding import derive_seed

from . import writing_metrics
from .base import AnsweredQuestion, Posed, question_key

EQUAL = "pairs left out: their two answers are equal"
TIED = "pairs left out: as many raters are for the one answer as for the other"
UNDECIDED = "pairs left out: nobody could decide them"
EMPTY = "pairs left out: their prompt has no text"


class RubricWriting:
    """`Posed.facts` hold a `ComparedPair`. Several pairs of one example are several questions with one prompt."""

    role: OutputRole = "rubric_writer"

    def __init__(self, config: RubricWriterConfig) -> None:
        self._config = config
        data = config.data
        self._spec = RubricGeneratorSpec(form=data.form, min_items=data.min_items, max_items=data.max_items)

    def pose(self, example: Example, held_out: bool) -> Iterator[Posed | str]:
        asked: tuple[Message, ...] | None = None
        for pair in labelled_pairs(example, self._config.data.scale):
            if why := _unfit(example, pair):
                yield why
                continue
            asked = asked or self._question(example)
            yield self._posed(example, pair, asked)

    def remarks(self, train: Sequence[Posed]) -> Iterator[str]:
        yield from ()

    def measured(self, answers: Sequence[AnsweredQuestion]) -> dict[str, float]:
        return writing_metrics.of_step(answers)

    def held_out(self, answers: Sequence[AnsweredQuestion]) -> dict[str, float]:
        return writing_metrics.of_evaluation(answers)

    def _question(self, example: Example) -> tuple[Message, ...]:
        """The messages that a rubric generator in this form sends."""
        reference = (example.reference or "") if self._config.data.reference else ""
        given = JudgeInput(example=example.key, conversation=example.prompt, reference=reference)
        (call,) = expand(self._spec, "", given)
        return tuple(Message.model_validate(message) for message in call.request.messages)

    def _posed(self, example: Example, pair: LabelledPair, asked: tuple[Message, ...]) -> Posed:
        better, worse = pair.first, pair.second
        if len(pair.for_second) > len(pair.for_first):
            better, worse = worse, better
        texts = {response.id: response.text for response in example.responses}
        draw = derive_seed(self._config.seed, "order", example.key, pair.first, pair.second)
        compared = ComparedPair(
            example=example.key,
            conversation=example.prompt,
            chosen=Response(id=better, text=texts[better]),
            rejected=Response(id=worse, text=texts[worse]),
            first="rejected" if draw % 2 else "chosen",
            human=example.rubric.criteria if example.rubric else (),
            reference=(example.reference or "") if self._config.data.reference else "",
        )
        question = example.model_copy(
            update={
                "key": question_key(f"{example.key} · {pair.first}/{pair.second}"),
                "prompt": asked,
                "rubric": None,
                "responses": (),
                "preferences": (),
                "reference": None,
                "meta": {},
            }
        )
        return Posed(question, compared.facts)


def _unfit(example: Example, pair: LabelledPair) -> str:
    """The reason why the pair is not asked about; empty if it is."""
    texts = {response.id: response.text for response in example.responses}
    if not any(message.content.strip() for message in example.prompt):
        return EMPTY
    if not pair.votes:
        return UNDECIDED
    if not pair.decided:
        return TIED
    return EQUAL if texts[pair.first] == texts[pair.second] else ""
