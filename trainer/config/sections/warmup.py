"""The supervised steps that recipe `alternating` may begin with."""

from collections.abc import Iterator, Mapping
from typing import Any, Literal

from ..errors import FieldProblem
from ..fields import Section, knob

NO_RUBRICS = "no prompt of the training data has a rubric that people wrote"
NO_REASONS = "no pair of the training data has reasons by people"


class Warmup(Section):
    """Before the first turn each role learns, word by word, to write what people wrote: the writer learns their rubrics, the judge their
    reasons for a choice, criterion by criterion. The steps of the warm-up count among the steps of the run."""

    judge_steps: int = knob(
        20,
        "Steps in which the judge learns from judgements by people; 0: no warm-up. These steps count among the steps of the run",
        unit="steps",
        ge=0,
        le=1_000_000,
    )
    writer_steps: int = knob(
        20,
        "Steps in which the writer learns from rubrics by people; 0: no warm-up. These steps count among the steps of the run",
        unit="steps",
        ge=0,
        le=1_000_000,
    )
    batch_size: int = knob(16, "Demonstrations per step", unit="demonstrations", ge=1, le=4096)
    lr: float | None = knob(
        None, "Peak learning rate of the warm-up; empty: the rate that the role has in its turns", gt=0, le=1
    )

    @property
    def steps(self) -> int:
        """The steps of both roles together."""
        return self.judge_steps + self.writer_steps

    def steps_of(self, role: Literal["judge", "writer"]) -> int:
        return self.judge_steps if role == "judge" else self.writer_steps

    def problems(self, steps: int) -> Iterator[FieldProblem]:
        """The paths begin at the section. `steps`: of the run."""
        if not self.steps:
            yield FieldProblem(
                "judge_steps", "no role has steps of warm-up; give steps to one role, or switch the warm-up off"
            )
        elif self.steps >= steps:
            field = "judge_steps" if self.judge_steps >= self.writer_steps else "writer_steps"
            yield FieldProblem(
                field, f"the warm-up takes {self.steps:,} of the run's {steps:,} steps, which leaves none for a turn"
            )

    def data_problems(self, counts: Mapping[str, Mapping[str, Any]]) -> Iterator[FieldProblem]:
        """The paths begin at the section."""
        train = counts.get("train", {})
        why = "" if train.get("rubrics") else NO_RUBRICS
        if self.writer_steps and why:
            yield FieldProblem("writer_steps", f"{why}, so the writer has nothing to warm up on; set this to 0")
        why = why or ("" if train.get("reasoned_pairs") else NO_REASONS)
        if self.judge_steps and why:
            yield FieldProblem("judge_steps", f"{why}, so the judge has nothing to warm up on; set this to 0")
