"""What runs have sampled in their evaluations, for evaluations to score and compare."""

from collections.abc import Iterator

from django.db.models import Max

from trainer.contracts import RolloutRecord
from webapp.evaluation.recipes.base import Rollout as Response
from webapp.evaluation.sources import ROLLOUTS, SOURCES, Options, Source

from . import queries
from .models import Rollout

MAX_CHOICES = 200
EVAL = "eval"


def _options(workspace_id: int, detail: str) -> Options:
    rows = queries.runs(workspace_id).filter(rollouts__phase=EVAL).distinct().order_by("-id")[:MAX_CHOICES]
    return [(str(row.pk), f"{row} · {row.experiment.name} · {row.model.name}") for row in rows]


def _problem(workspace_id: int, detail: str, run_id: int) -> str:
    if not queries.runs(workspace_id).filter(pk=run_id).exists():
        return "this workspace has no such run"
    if not Rollout.objects.filter(run_id=run_id, phase=EVAL).exists():
        return "this run has sampled nothing in an evaluation yet"
    return ""


def responses(workspace_id: int, run_id: int, step: int | None) -> Iterator[Response]:
    rows = Rollout.objects.filter(run_id=run_id, phase=EVAL, run__experiment__workspace_id=workspace_id)
    if step is None:
        step = rows.aggregate(newest=Max("step"))["newest"]
    for content in rows.filter(step=step).order_by("group", "index").values_list("content", flat=True).iterator():
        found = RolloutRecord.model_validate(content)
        tokens = len(found.tokens) or None
        yield Response(found.example_key, found.prompt, found.response, found.criteria, tokens)


SOURCES["runs"] = Source(_options, _problem)
ROLLOUTS.append(responses)
