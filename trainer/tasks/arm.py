"""The two tasks of recipe `alternating` (Rubric-ARM): write a rubric, and judge a pair by a written rubric."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from trainer.config.recipes.alternating import AlternatingConfig
from trainer.contracts import Criterion, Example
from trainer.contracts.model_folder import OutputRole
from trainer.rewards import Item
from trainer.rewards.rubric_judgements import label, question
from trainer.rewards.written_rubrics import FACTS, ComparedPair, writing_of
from trainer.seeding import derive_seed

from . import arm_metrics
from .base import AnsweredQuestion, Posed, question_key
from .rubric_writing import RubricWriting

UNREADABLE = "pairs left out: the rubric that the writer wrote cannot be read"


class WriterQuestion(Protocol):
    """A question of the writer, in the loop's form."""

    @property
    def example(self) -> Example: ...
    @property
    def facts(self) -> Mapping[str, Any]: ...


@dataclass(frozen=True)
class KeptRubric:
    """The writer's rubric for one question, written once for all steps of a turn; `cut` if it reached the limit of tokens."""

    text: str
    cut: bool
    criteria: tuple[Criterion, ...]
    """The criteria; empty if the rubric cannot be read, or if none of them earns points."""


class ArmWriting(RubricWriting):
    """The questions are those of recipe `rubric_writer`; the metrics are about how the run's own judge used the rubric."""

    def __init__(self, config: AlternatingConfig) -> None:
        super().__init__(config)  # type: ignore[arg-type]  # it reads `data` and `seed`, which both have

    def measured(self, answers: Sequence[AnsweredQuestion]) -> dict[str, float]:
        return arm_metrics.of_rubrics(answers)

    def held_out(self, answers: Sequence[AnsweredQuestion]) -> dict[str, float]:
        return arm_metrics.of_evaluation(answers)


class JudgingByRubric:
    """Each pair whose rubric can be read is a question; `rubrics` are by the key of the writer's question about it.

    `Posed.facts`: the pair, `criteria` (how many), `label` (where the preferred answer is shown). The order is drawn again
    for each `turn`.
    """

    role: OutputRole = "judge"

    def __init__(self, config: AlternatingConfig, rubrics: Mapping[str, KeptRubric], turn: int) -> None:
        self._config, self._rubrics, self._turn = config, rubrics, turn
        self._writing = ArmWriting(config)

    def pose(self, example: Example, held_out: bool) -> Iterator[Posed | str]:
        for posed in self._writing.pose(example, held_out):
            yield posed if isinstance(posed, str) else self._posed(posed)

    def remarks(self, train: Sequence[Posed]) -> Iterator[str]:
        yield from ()

    def measured(self, answers: Sequence[AnsweredQuestion]) -> dict[str, float]:
        return arm_metrics.of_judgements(answers)

    def held_out(self, answers: Sequence[AnsweredQuestion]) -> dict[str, float]:
        return {}

    def _posed(self, written_for: Posed) -> Posed | str:
        asked, rubric = written_for.example, self._rubrics[written_for.example.key]
        if not rubric.criteria:
            return UNREADABLE
        pair = ComparedPair.model_validate(written_for.facts[FACTS])
        swapped = bool(derive_seed(self._config.seed, "shown", self._turn, asked.key) % 2)
        prompt = question(pair, rubric.criteria, self._config.data.judgement, swapped)
        facts = {**written_for.facts, "criteria": len(rubric.criteria), "label": label(pair, swapped)}
        key = question_key(f"{asked.key} · by its rubric")
        return Posed(asked.model_copy(update={"key": key, "prompt": prompt}), facts)


def criteria_of(prompt: WriterQuestion, text: str, cut: bool, config: AlternatingConfig) -> tuple[Criterion, ...]:
    """The criteria of a written rubric; none if it cannot be read, or if none of them earns points."""
    longest = config.writer.max_new_tokens
    item = Item("", prompt.example, None, text, 0, longest, cut=cut, facts=prompt.facts)
    writing = writing_of(item, config.data.form)
    return () if writing.fault else writing.criteria
