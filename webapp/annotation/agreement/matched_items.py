"""Measures agreement about rubrics and reasons that people write themselves: over items that are matched by meaning."""

from collections import Counter, defaultdict
from collections.abc import Iterator
from itertools import combinations
from statistics import mean
from typing import Any

from trainer.metrics.agreement import UnitRating, ac1, alpha, fleiss, percent, tabulate
from trainer.metrics.estimate import bootstrap_mean
from webapp.annotation.agreement.consensus import items
from webapp.annotation.kinds import get_kind
from webapp.annotation.models import Answer, Project, TaskReview

ATTRIBUTES = {"sign": "Sign of the points", "kind": "Hard rule or principle", "importance": "Importance"}
TASKS_AT_A_TIME = 500


def report(project: Project) -> dict[str, Any] | None:
    """The share of items that two people have in common, overall and per pair, and how they rate the common ones.

    None for kinds of task without items. Tasks without any item are left out.
    """
    name = get_kind(project.kind).items_name
    if not name:
        return None
    shares: list[float] = []
    by_pair: dict[tuple[int, int], list[float]] = defaultdict(list)
    ratings: dict[str, list[UnitRating]] = defaultdict(list)
    matchers: Counter[str] = Counter()
    for review, answers in _reviewed(project):
        found = _pair_shares(project.kind, review, answers)
        if not found:
            continue
        matchers[review.matcher] += 1
        shares.append(mean(found.values()))
        for pair, share in found.items():
            by_pair[pair].append(share)
        if project.kind == "rubric":
            _rate(review, answers, ratings)
    pairs = sorted(by_pair, key=lambda pair: (-len(by_pair[pair]), pair))
    return {
        "name": name,
        "share": bootstrap_mean(shares).json(),
        "matchers": dict(matchers),
        "pairs": [{"raters": list(pair), "share": bootstrap_mean(by_pair[pair]).json()} for pair in pairs],
        "attributes": [_attribute(name, label, ratings[name]) for name, label in ATTRIBUTES.items() if ratings],
    }


Answers = dict[int, tuple[int, dict[str, Any]]]  # answer id -> (user, content)


def _reviewed(project: Project) -> Iterator[tuple[TaskReview, Answers]]:
    """Every task with two answers or more, a few hundred at a time. A task that became gold keeps its review, and is left out."""
    after = 0
    seated = TaskReview.objects.filter(project=project, task__overlap__isnull=False)
    listed = seated.filter(agreement__isnull=False, groups__isnull=False)
    while reviews := list(listed.filter(task_id__gt=after).order_by("task_id")[:TASKS_AT_A_TIME]):
        ids = [answer for review in reviews for answer in review.answers]
        rows = Answer.objects.filter(id__in=ids).values_list("id", "assignment__user_id", "content")
        contents = {answer: (user, content) for answer, user, content in rows}
        for review in reviews:
            if all(answer in contents for answer in review.answers):
                yield review, {answer: contents[answer] for answer in review.answers}
        after = reviews[-1].task_id


def _pair_shares(kind: str, review: TaskReview, answers: Answers) -> dict[tuple[int, int], float]:
    """{two users: 2 x matched / items of both}."""
    together = Counter(
        pair for group in review.groups or [] for pair in combinations(sorted(answer for answer, _ in group), 2)
    )
    found = {}
    for one, two in combinations(sorted(answers), 2):
        size = len(items(kind, answers[one][1])) + len(items(kind, answers[two][1]))
        if size:
            users = tuple(sorted((answers[one][0], answers[two][0])))
            found[users[0], users[1]] = 2 * together[one, two] / size
    return found


def _rate(review: TaskReview, answers: Answers, ratings: dict[str, list[UnitRating]]) -> None:
    """Adds ratings: a criterion that several people wrote is a unit, and each of them has rated it."""
    for place, group in enumerate(review.groups or []):
        if len(group) < 2:
            continue
        for answer, index in group:
            user, content = answers[answer]
            criterion = items("rubric", content)[index]
            values = {"sign": "+" if criterion["points"] > 0 else "-"}
            values |= {name: str(criterion.get(name)) for name in ("kind", "importance")}
            for name, value in values.items():
                ratings[name].append(UnitRating(f"{review.task_id}:{place}", str(user), value))


def _attribute(name: str, label: str, given: list[UnitRating]) -> dict[str, Any]:
    table = tabulate(given, lambda unit: unit.partition(":")[0])  # the criteria of one task belong together
    return {
        "key": name,
        "label": label,
        "level": "nominal",
        "units": len(table.counts_UV),
        "percent": percent(table).json(),
        "fleiss": fleiss(table).json(),
        "ac1": ac1(table).json(),
        "alpha": alpha(table, "nominal").json(),
    }
