"""Judges for the criteria of a rubric that no verifier decides, in its stress test. Judging registers itself here at the start."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from trainer.contracts import Rubric, Verdict

from ..kinds import Shown


@dataclass(frozen=True)
class JudgedAnswer:
    """The rubric to judge. `answer` is the id of the submission, `example` the example's content."""

    answer: int
    workspace: int
    example: Mapping[str, Any]
    rubric: Rubric
    responses: Sequence[Shown]


@dataclass(frozen=True)
class LetterVerdicts:
    """The present verdicts by letter and criterion. `open`: the judge is still being asked."""

    verdicts: Mapping[str, Mapping[str, Verdict]] = field(default_factory=dict)
    open: bool = False


class StressJudge(Protocol):
    """`version` is the id of a judge version."""

    def options(self, workspace_id: int) -> list[tuple[int, str]]:
        """The judges that a project may choose, with words for each."""

    def problem(self, workspace_id: int, version: int) -> str:
        """The reason why it cannot be chosen; empty if it can."""

    def ask(self, answer_id: int) -> None:
        """Has a worker ask about the parts of a submitted rubric about which nobody asked before."""

    def said(self, version: int, given: JudgedAnswer) -> LetterVerdicts:
        """The verdicts so far. No judge is asked; a lost message to the worker is sent again."""


JUDGE: list[StressJudge] = []


def options(workspace_id: int) -> list[tuple[int, str]]:
    return [each for judge in JUDGE for each in judge.options(workspace_id)]


def problem(workspace_id: int, version: int | None) -> str:
    """The reason why a project of the workspace cannot have it; empty if it can, and for None."""
    if version is None:
        return ""
    return next((judge.problem(workspace_id, version) for judge in JUDGE), "there are no judges here")
