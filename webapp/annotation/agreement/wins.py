"""Counts how often people prefer one model's response to another's, if the responses of a project name their models."""

import json
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from trainer.metrics.estimate import Estimate, bootstrap_mean
from webapp.annotation.models import Answer, Project

MOST_ANSWERS = 20_000  # read for one page


@dataclass(frozen=True)
class Win:
    """`rate`: the share of tasks in which `first` is preferred to `second`. A tie counts half, and so does a pair of which both are bad.
    People's answers to one task are averaged; the interval resamples whole tasks. `missing` tasks are those that nobody could assess.
    `won`, `tied` and `lost` count answers."""

    first: str
    second: str
    rate: Estimate
    won: int
    tied: int
    lost: int


@dataclass
class _Meetings:
    """The answers about two models, from the view of the first one in the order of their names. `shares`: by task, one number per
    answer."""

    shares: dict[int, list[float]] = field(default_factory=lambda: defaultdict(list))
    tasks: set[int] = field(default_factory=set)


def wins(project: Project) -> list[Win] | None:
    """The win rates of every two models that were compared, the best first; None if there are more than MOST_ANSWERS."""
    answers = Answer.objects.filter(
        project=project, current=True, assignment__state="submitted", assignment__task__overlap__isnull=False
    )
    if project.kind != "pairwise" or answers[: MOST_ANSWERS + 1].count() > MOST_ANSWERS:
        return [] if project.kind != "pairwise" else None
    met: dict[tuple[str, str], _Meetings] = defaultdict(_Meetings)
    for task, models, share in _said(answers):
        turned = models[0] > models[1]
        pair = met[(models[1], models[0]) if turned else models]
        pair.tasks.add(task)
        if share is not None:
            pair.shares[task].append(1 - share if turned else share)
    return sorted((_win(names, each) for names, each in met.items()), key=lambda win: (win.first, win.second))


def _said(answers: Any) -> Iterator[tuple[int, tuple[str, str], float | None]]:
    """(task, its two models, the first model's share of the win); None: could not be assessed."""
    columns = ("assignment__task_id", "assignment__task__subject", "assignment__task__example__canonical", "content")
    for task, subject, canonical, content in answers.order_by("id").values_list(*columns).iterator(chunk_size=500):
        origins = {one["id"]: one.get("origin", "") for one in json.loads(canonical)["responses"]}
        models = (origins.get(subject["a"], ""), origins.get(subject["b"], ""))
        if all(models) and models[0] != models[1]:
            yield task, models, _share(content)


def _share(content: dict[str, Any]) -> float | None:
    if content["verdict"] == "cannot_assess":
        return None
    if content["verdict"] == "both_bad" or not content["strength"]:  # a person may say both, and also which is less bad
        return 0.5
    return float(content["strength"] < 0)


def _win(names: tuple[str, str], met: _Meetings) -> Win:
    means = [sum(shares) / len(shares) for shares in met.shares.values()]
    said = [share for shares in met.shares.values() for share in shares]
    if means and sum(means) < len(means) / 2:
        names, means, said = (names[1], names[0]), [1 - mean for mean in means], [1 - share for share in said]
    rate = bootstrap_mean(means, len(met.tasks) - len(means), "nobody could assess a pair", share=True)
    return Win(*names, rate, said.count(1.0), said.count(0.5), said.count(0.0))
