"""Finds the checkpoints that the rule of a workspace may delete, and the reasons to keep the others.

The preview and the deletion both ask `find`: the preview for many runs at once, the deletion for one run under its lock.
"""

from bisect import bisect_right
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import reduce
from operator import itemgetter, or_

from django.db.models import Exists, OuterRef, Q, QuerySet

from webapp.evaluation.models import Evaluation

from ... import recipe_metrics
from ...metrics import points
from ...models import OVER, Artifact, ChainStep, ChainWait, Run, SharedRun
from .. import artifacts, exporting
from ..starting_points import CHECKPOINT

Step = tuple[int, int]
"""The id of a run, and the step of one of its checkpoints."""


@dataclass(frozen=True)
class RunKeeper:
    """A reason to keep all checkpoints of a run. `runs` returns those among the given ids to which it applies."""

    words: str
    runs: Callable[[Collection[int]], Iterable[int]]


@dataclass(frozen=True)
class DeletionCandidate:
    """A checkpoint whose files are there. `why` is the reason to keep it, a key of `words`; empty: the rule may delete it."""

    row: Artifact
    why: str


def old_runs(workspace_id: int, before: datetime, after: int = 0) -> "QuerySet[Run]":
    """Runs that ended before this moment and left checkpoints, by id from `after` on."""
    left = Artifact.objects.filter(run=OuterRef("pk"), role=CHECKPOINT, removed_at=None)
    ended = Run.objects.filter(experiment__workspace_id=workspace_id, state__in=OVER, ended_at__lt=before, pk__gt=after)
    return ended.filter(Exists(left)).defer("config").order_by("pk")


def find(runs: Sequence[Run]) -> list[DeletionCandidate]:
    """All checkpoints of these runs, by run and step: a few statements for all, and one for each run that has several."""
    ids = [run.pk for run in runs]
    whole = {run_id: name for name, keeper in RUN_KEEPERS.items() for run_id in keeper.runs(ids)}
    single = {step: name for name, (_, steps) in STEP_KEEPERS.items() for step in steps(ids)}
    rows = Artifact.objects.filter(run__in=ids, role=CHECKPOINT, removed_at=None).order_by("run_id", "step", "pk")
    there: dict[int, list[Artifact]] = {run_id: [] for run_id in ids}
    for row in rows:
        if artifacts.is_there(row):
            there[row.run_id].append(row)
    found = []
    for run in runs:
        ends = _ends(run, there[run.pk])
        for row in there[run.pk]:
            why = ends.get(row.step) or whole.get(run.pk) or single.get((run.pk, row.step), "")
            found.append(DeletionCandidate(row, why))
    return found


def _ends(run: Run, rows: Sequence[Artifact]) -> dict[int, str]:
    """The steps of the last and of the best checkpoint."""
    if not rows:
        return {}
    best = _best(run, [row.step for row in rows]) if len(rows) > 1 else None
    return ({} if best is None else {best: "best"}) | {rows[-1].step: "last"}


def _best(run: Run, steps: Sequence[int]) -> int | None:
    """The step with the best value of the recipe's headline metric, as it was last measured up to that step; the later one of two that are
    equal. None if the metric has no better side or no values."""
    metric = recipe_metrics.result(run).metric
    if metric is None or not metric.better:
        return None
    sign = 1 if metric.better == "higher" else -1
    measured = sorted((step, sign * value) for _, step, value in points.values(run.pk, [metric.key]))
    places = [(bisect_right(measured, step, key=itemgetter(0)), step) for step in steps]
    known = [(measured[place - 1][1], step) for place, step in places if place]
    return max(known)[1] if known else None


def _marked(ids: Collection[int]) -> Iterable[int]:
    return Run.objects.filter(pk__in=ids, keep_checkpoints=True).values_list("pk", flat=True)


def _shared(ids: Collection[int]) -> Iterable[int]:
    return SharedRun.objects.filter(run__in=ids, link__withdrawn_at=None).values_list("run_id", flat=True)


def _awaited(ids: Collection[int]) -> Iterable[int]:
    waiting = ChainStep.State.WAITING
    after = ChainStep.objects.filter(after__in=ids, state=waiting).values_list("after_id", flat=True)
    joined = ChainWait.objects.filter(run__in=ids, step__state=waiting).values_list("run_id", flat=True)
    return [run_id for run_id in (*after, *joined) if run_id]


def _evaluated(ids: Collection[int]) -> set[int]:
    if not ids:
        return set()
    named = reduce(or_, (Q(config__contains={"responses": [{"run": run_id}]}) for run_id in ids))
    configs = Evaluation.objects.filter(named).values_list("config__responses", flat=True)
    return {each.get("run") for responses in configs for each in responses} & set(ids)


def _registered(ids: Collection[int]) -> Iterable[Step]:
    return Artifact.objects.filter(run__in=ids).exclude(registered=None).values_list("run_id", "step")


def _forked(ids: Collection[int]) -> Iterable[Step]:
    forks = Run.objects.filter(forked_from__in=ids, start_step__gt=0).values_list("forked_from_id", "start_step")
    return [(run_id, step) for run_id, step in forks if run_id]


def _exported(ids: Collection[int]) -> Iterable[Step]:
    asked = exporting.under_way(ids).values_list("params__run", "params__step")
    return [(int(run_id), int(step)) for run_id, step in asked]


RUN_KEEPERS = {
    "marked": RunKeeper("of runs that people marked with Keep", _marked),
    "shared": RunKeeper("of runs that a share link shows", _shared),
    "awaited": RunKeeper("of runs after which a step waits", _awaited),
    "evaluated": RunKeeper("of runs whose responses an evaluation reads", _evaluated),
}
"""Higher apps add theirs when they are ready."""
STEP_KEEPERS: dict[str, tuple[str, Callable[[Collection[int]], Iterable[Step]]]] = {
    "registered": ("from which a model of the registry was made", _registered),
    "forked": ("from which another run continued", _forked),
    "exported": ("that an export reads", _exported),
}


def words() -> dict[str, str]:
    """{reason: which checkpoints it keeps, in words that follow their number}"""
    told = {"last": "that are the last of their run", "best": "that are the best of their run"}
    told |= {name: keeper.words for name, keeper in RUN_KEEPERS.items()}
    return told | {name: text for name, (text, _) in STEP_KEEPERS.items()}
