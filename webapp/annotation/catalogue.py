"""What a manager chooses from: the kinds of task and the order they are served in, each in words."""

from collections.abc import Mapping
from dataclasses import dataclass

from webapp.datasets.models import DatasetVersion

from .models import Project

Kind, Strategy = Project.Kind, Project.Strategy


@dataclass(frozen=True)
class KindInfo:
    """`needs` names what a version must count for tasks of this kind to exist."""

    name: str
    title: str
    text: str
    unit: str  # what one task is about, in words
    icon: str
    needs: tuple[str, ...]

    def problem(self, version: DatasetVersion) -> str:
        """Why no task can be made of this version; empty where nothing speaks against it."""
        missing = [count for count in self.needs if not version.counts.get(count)]
        return f"{version} has no {' and no '.join(missing)}, which {self.title.lower()} needs" if missing else ""


KINDS: Mapping[str, KindInfo] = {
    info.name: info
    for info in (
        KindInfo(
            name=Kind.PAIRWISE,
            title="Pairwise preference",
            text="Two answers side by side: which is better, how much, and for which reasons.",
            unit="a pair of responses",
            icon="git-compare",
            needs=("responses",),
        ),
        KindInfo(
            name=Kind.RUBRIC,
            title="Rubric authoring",
            text="Write what a good answer must have, from the instruction alone; then see it tested on answers.",
            unit="an instruction",
            icon="list-checks",
            needs=("examples",),
        ),
        KindInfo(
            name=Kind.GRADING,
            title="Criterion grading",
            text="One answer beside its rubric: each criterion is met, not met, or cannot be told.",
            unit="a response with its rubric",
            icon="clipboard-check",
            needs=("rubrics", "responses"),
        ),
        KindInfo(
            name=Kind.RANKING,
            title="Ranking",
            text="Several answers put in order, ties allowed; or only the best one is chosen.",
            unit="all responses to an instruction",
            icon="list-ordered",
            needs=("responses",),
        ),
        KindInfo(
            name=Kind.RATING,
            title="Rating on scales",
            text="One answer at a time on scales that you name, such as helpfulness from 1 to 5.",
            unit="a response",
            icon="sliders-horizontal",
            needs=("responses",),
        ),
        KindInfo(
            name=Kind.RATIONALE,
            title="Rationale to atomic reasons",
            text="A free explanation of a preference is cut into single reasons, each tied to what it speaks of.",
            unit="a preference with its explanation",
            icon="split",
            needs=("responses",),
        ),
    )
}

STRATEGIES: Mapping[str, str] = {
    Strategy.ORDER: "Everybody walks through the dataset from top to bottom.",
    Strategy.RANDOM: "One fixed shuffle, so that what is done first says something about the whole.",
    Strategy.UNCERTAINTY: "Where known preferences are closest to a tie comes first.",
    Strategy.DISAGREEMENT: "Where people and the judge have disagreed comes first.",
}
