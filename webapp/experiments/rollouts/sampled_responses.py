"""The responses that runs have sampled in their evaluations, for evaluations to score and compare."""

from collections.abc import Iterator
from pathlib import Path

from django.conf import settings
from django.db.models import Max

from trainer.contracts import Example, ModelSource, RolloutRecord
from webapp.core.problems import Problem
from webapp.datasets.queries import examples_by_key
from webapp.evaluation.recipes.base import NotMeasured
from webapp.evaluation.recipes.base import Rollout as Response
from webapp.evaluation.sources.registry import NOVELTY, ROLLOUTS, SOURCES, TRAINED, Options, RowSource
from webapp.evaluation.work.measuring import measure
from webapp.inference.folders import stored

from .. import queries
from ..models import Artifact, Rollout, Run
from ..outputs.artifacts import is_there, local_path

MAX_CHOICES = 200
MAX_TRAINED = 1_000  # responses of training beside those of an evaluation
EVAL, TRAIN = "eval", "train"


def _options(workspace_id: int, detail: str) -> Options:
    rows = queries.runs(workspace_id).filter(rollouts__phase=EVAL).distinct().order_by("-id")[:MAX_CHOICES]
    return [(str(row.pk), f"{row} · {row.experiment.name} · {row.base.name}") for row in rows]


def _problem(workspace_id: int, detail: str, run_id: int) -> str:
    if not queries.runs(workspace_id).filter(pk=run_id).exists():
        return "this workspace has no such run"
    if not Rollout.objects.filter(run_id=run_id, phase=EVAL).exists():
        return "this run has sampled nothing in an evaluation yet"
    return ""


def responses(workspace_id: int, run_id: int, step: int | None) -> Iterator[Response]:
    return map(_response, _records(workspace_id, run_id, _step(workspace_id, run_id, step)))


def trained(workspace_id: int, run_id: int, step: int | None) -> Iterator[Response]:
    """Responses that were sampled to learn from, after the previous evaluation and up to this one; the newest first."""
    at = _step(workspace_id, run_id, step)
    mine = Rollout.objects.filter(run_id=run_id, run__experiment__workspace_id=workspace_id)
    before = mine.filter(phase=EVAL, step__lt=at).aggregate(newest=Max("step"))["newest"]
    rows = mine.filter(phase=TRAIN, step__gt=-1 if before is None else before, step__lte=at)
    newest = rows.order_by("-step", "group", "index").values_list("content", flat=True)[:MAX_TRAINED]
    return (_response(RolloutRecord.model_validate(content)) for content in newest)


def _response(found: RolloutRecord) -> Response:
    return Response(found.example_key, found.prompt, found.response, found.criteria, len(found.tokens) or None)


def _step(workspace_id: int, run_id: int, step: int | None) -> int:
    """The step, or the newest with an evaluation if none is named."""
    rows = Rollout.objects.filter(run_id=run_id, phase=EVAL, run__experiment__workspace_id=workspace_id)
    return step if step is not None else rows.aggregate(newest=Max("step"))["newest"] or 0


def _records(workspace_id: int, run_id: int, step: int) -> Iterator[RolloutRecord]:
    rows = Rollout.objects.filter(run_id=run_id, phase=EVAL, run__experiment__workspace_id=workspace_id, step=step)
    for content in rows.order_by("group", "index").values_list("content", flat=True).iterator():
        yield RolloutRecord.model_validate(content)


def novelty(workspace_id: int, run_id: int, step: int | None) -> list[float | None]:
    """rho of each response against the model with which the run began. Raises NotMeasured without the step's checkpoint."""
    at = _step(workspace_id, run_id, step)
    records = list(_records(workspace_id, run_id, at))
    run = queries.runs(workspace_id).select_related("model", "dataset_version").get(pk=run_id)
    if at == 0:  # nothing was trained yet: each response is as likely as before
        return [1.0 if record.response else None for record in records]
    model, checkpoint = _folders(run, at)
    keys = [record.example_key for record in records]
    known = examples_by_key(run.data, keys)
    head = {"model": model, "config": run.config, "checkpoint": str(checkpoint)}
    rows = [
        {"id": place, "prompt": _prompt(record, known.get(record.example_key)), "text": record.response}
        for place, record in enumerate(records)
    ]
    return [row["novelty"] for row in measure(settings.NOVELTY_COMMAND, [head, *rows])]


def _folders(run: Run, step: int) -> tuple[str, Path]:
    """The folders of the model with which the run began and of the checkpoint of `step`, on this server. Raises NotMeasured."""
    path = f"checkpoints/step-{step:06d}"
    row = Artifact.objects.filter(run=run, path=path).first() or Artifact(run=run, path=path)
    if not is_there(row):
        raise NotMeasured(f"run {run.pk} keeps no checkpoint of step {step}; checkpoint.keep says how many stay")
    try:
        return stored.local_source(ModelSource(path=run.base.path), run.experiment.workspace_id).path, local_path(row)
    except (Problem, OSError) as error:
        raise NotMeasured(str(error)) from error


def _prompt(record: RolloutRecord, example: Example | None) -> list[dict[str, str]]:
    if example is None:
        return [{"role": "user", "content": record.prompt}]
    return [{"role": message.role, "content": message.content} for message in example.prompt]


SOURCES["runs"] = RowSource(_options, _problem)
ROLLOUTS.append(responses)
TRAINED.append(trained)
NOVELTY.append(novelty)
