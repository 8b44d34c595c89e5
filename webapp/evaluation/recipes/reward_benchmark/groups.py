"""Groups of right and wrong responses to one prompt, as RM-Bench and RewardBench 2 publish them."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field

from trainer.contracts import Example, Response
from trainer.metrics import best_of_list, rm_bench
from webapp.annotation.kinds.example_labels import is_judge

STYLE = "style:"
Scores = dict[tuple[str, str], float | None]  # (example, response) -> score; None: asked for and missing
Sides = dict[
    tuple[str, str, str], int | None
]  # (example, right, wrong) -> 1 the right one, 0 neither, -1 the wrong one


@dataclass(frozen=True)
class PreferenceGroup:
    """`right` were preferred to `wrong`; nothing is said about two of the same side."""

    example: Example
    right: tuple[Response, ...]
    wrong: tuple[Response, ...]

    @property
    def key(self) -> str:
        return self.example.key

    @property
    def styled(self) -> bool:
        """Whether both sides come in RM-Bench's three styles, from plain to rich."""
        return _styles(self.right) == _styles(self.wrong) == rm_bench.STYLES

    @property
    def tied(self) -> bool:
        return not self.styled and self.example.domain.lower() == best_of_list.TIES

    @property
    def pairs(self) -> Iterator[tuple[Response, Response]]:
        return ((right, wrong) for right in self.right for wrong in self.wrong)


def _styles(responses: Iterable[Response]) -> tuple[str, ...]:
    return tuple(tag.removeprefix(STYLE) for each in responses for tag in each.tags if tag.startswith(STYLE))


def group_of(example: Example) -> PreferenceGroup | None:
    """The group; None if people's preferences do not divide the responses into better and worse ones."""
    better: set[str] = set()
    worse: set[str] = set()
    for each in example.preferences:
        if each.strength and not is_judge({"rater": each.rater}):
            better.add(each.a if each.strength < 0 else each.b)
            worse.add(each.b if each.strength < 0 else each.a)
    if not better or better & worse:
        return None
    right = tuple(each for each in example.responses if each.id in better)
    return PreferenceGroup(example, right, tuple(each for each in example.responses if each.id in worse))


@dataclass
class TriedScorer:
    """A reward model or a judge: `scores` of responses, or the `sides` of comparisons. `protocol`: scores (recorded), ratings,
    or the order in which the pairs were asked."""

    name: str
    protocol: str
    scores: Scores | None = None
    sides: Sides | None = None
    version: int | None = None
    judge: int | None = None
    verdicts: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))


def styled_case(group: PreferenceGroup, tried: TriedScorer) -> rm_bench.RmBenchPrompt:
    """RM-Bench's nine comparisons, by scores or by the sides that a pairwise judge took."""
    key, scores, taken = group.key, tried.scores, tried.sides or {}
    if scores is not None:
        right, wrong = ([scores.get((key, each.id)) for each in some] for some in (group.right, group.wrong))
        return rm_bench.RmBenchPrompt(key, group.example.domain, rm_bench.wins(right, wrong))
    won = [[taken.get((key, right.id, wrong.id)) for wrong in group.wrong] for right in group.right]
    wins = tuple(tuple(None if side is None else side > 0 for side in row) for row in won)
    return rm_bench.RmBenchPrompt(key, group.example.domain, wins)


def listed_case(group: PreferenceGroup, tried: TriedScorer) -> best_of_list.ListedPrompt:
    """The list with its scores. For a pairwise judge the one right response scores 1, and a wrong one 0, 1 or 2: it loses, ties, or
    wins."""
    key, subset, scores = group.key, group.example.domain, tried.scores
    if scores is not None:
        right = tuple(scores.get((key, each.id)) for each in group.right)
        return best_of_list.ListedPrompt(key, subset, right, tuple(scores.get((key, each.id)) for each in group.wrong))
    taken = [(tried.sides or {}).get((key, group.right[0].id, each.id)) for each in group.wrong]
    return best_of_list.ListedPrompt(key, subset, (1.0,), tuple(None if side is None else 1.0 - side for side in taken))
