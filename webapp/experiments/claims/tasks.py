"""Constructed tasks of claims in a workspace: made once by a job of the cluster, entered as a whole or not at all, and reused."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from django.conf import settings
from django.db import transaction
from django.db.models import Q
from pydantic import TypeAdapter, ValidationError

from trainer.contracts import Example, ModelFile
from trainer.contracts.storing import Links, Upload
from trainer.metrics.claims import PLANS, TASK_FORM, Plan, Setting
from webapp.accounts.models import Membership
from webapp.core.problems import Invalid
from webapp.core.storage import artifact_store
from webapp.core.tasks import enqueue
from webapp.datasets.models import DatasetVersion
from webapp.datasets.versions import services as datasets
from webapp.inference.models import RegisteredModel
from webapp.inference.registry import services as registry
from webapp.weights import services as weights
from webapp.weights.kinds import KINDS, Kind
from webapp.weights.models import WeightsJob, WeightsResult

from .. import access
from ..models import ClaimStudy, ClaimTask

BEGIN = "workers.claims.begin"
MODEL = "model"  # the folder of the model below that of the job
_FILES: TypeAdapter[tuple[ModelFile, ...]] = TypeAdapter(tuple[ModelFile, ...])
Row = TypeVar("Row")


def of_plan(workspace_id: int, plan: Plan) -> ClaimTask | None:
    """The row of the plan's task; None if nobody has asked for it yet, or the plan has none."""
    if plan.constructed is None:
        return None
    rows = ClaimTask.objects.select_related("job", "version__dataset", "model")
    return rows.filter(workspace_id=workspace_id, **_named(plan, plan.constructed)).first()


def is_ready(task: ClaimTask) -> bool:
    """Whether data and model are there, with the files of the model."""
    return task.version is not None and task.model is not None and Path(task.model.path).is_dir()


def ask(membership: Membership, plan: Plan) -> ClaimTask:
    """The task of the plan, which exists or is made from now on. Two requests at the same moment get the same one.

    Raises Invalid if the plan has no task of its own.
    """
    if plan.constructed is None:
        reason = "this claim has no constructed task: choose a dataset and a model"
        raise Invalid("This claim is about data that are given.", {"dataset": reason, "model.name": reason})
    named = _named(plan, plan.constructed)
    task, _ = ClaimTask.objects.get_or_create(workspace=membership.workspace, **named)
    make(membership, task)
    return task


def _named(plan: Plan, constructed: Setting) -> dict[str, Any]:
    """The fields that identify a task within a workspace."""
    return {"task": plan.task, "wanted": constructed.wanted, "form": TASK_FORM}


def make(membership: Membership, task: ClaimTask) -> None:
    """Starts a job that makes the task if it does not exist: the present job continues, or runs again if it has ended."""
    if task.job_id and WeightsJob.objects.filter(pk=task.job_id, state=WeightsJob.State.FINISHED).exists():
        task.refresh_from_db()  # the job's end and what it has made were written together
    if is_ready(task):
        return
    params = {"task": task.task, "wanted": task.wanted}
    subject = f"task of claims, form {task.form}"
    job = weights.start(
        membership.workspace,
        membership.user,
        WeightsJob.Kind.TASK,
        f"Task {task} of claims",
        params,
        subject,
        again=True,
    )
    if task.job_id != job.pk:
        ClaimTask.objects.filter(pk=task.pk).update(job=job)
        task.job = job


@transaction.atomic
def _finish(job: WeightsJob, outcome: dict[str, Any]) -> dict[str, Any]:
    """Enters data and model, and launches the studies that wait for them. Raises Invalid; then nothing is entered."""
    membership = _maker(job)
    task = ClaimTask.objects.select_for_update(no_key=True).get(job=job)
    version = task.version or _version(membership, task, job, outcome)
    model = _model(membership, task, job, outcome)
    ClaimTask.objects.filter(pk=task.pk).update(version=version, model=model)
    for study in ClaimStudy.objects.filter(task=task, state=ClaimStudy.State.WAITING).values_list("pk", flat=True):
        enqueue(BEGIN, study)
    return {"examples": outcome.get("examples"), "versions": [version.pk], "models": [model.pk]}


def _maker(job: WeightsJob) -> Membership:
    """A person who asked for the task and may still write here: data and model are entered in their name."""
    waiting = ClaimStudy.objects.filter(task__job=job, state=ClaimStudy.State.WAITING)
    asked = Q(user=job.created_by) | Q(user__in=waiting.values("created_by"))
    rows = Membership.objects.filter(asked, workspace=job.workspace, user__is_active=True).order_by("pk")
    found = next((row for row in rows.select_related("user", "workspace") if row.may(access.WRITER)), None)
    if found is None:
        raise Invalid("The people who asked for this task are no longer allowed to launch runs here. Ask for it again.")
    return found


def _version(membership: Membership, task: ClaimTask, job: WeightsJob, outcome: dict[str, Any]) -> DatasetVersion:
    lines = WeightsResult.objects.filter(job=job).order_by("place").values_list("content", flat=True)
    try:
        examples = [Example.model_validate_json(line["canonical"]) for line in lines]
    except (ValidationError, KeyError, TypeError) as error:
        raise Invalid("An example of the task cannot be read. “Try again” makes the examples again.") from error
    if not examples or len(examples) != outcome.get("examples"):
        raise Invalid(
            f"{len(examples)} examples have come, not the {outcome.get('examples')} of the task. Ask for it again."
        )
    words = f"The task of {_claims_of(task)}: made by the program, no text of people in it."
    dataset = _free(task, lambda name: datasets.create_dataset(membership, name, words))
    lineage = {"from": "claim", "task": str(task), "job": job.pk}
    version = datasets.new_version(membership, dataset, examples, None, lineage, as_given=True)
    return datasets.freeze(membership, version)


def _model(membership: Membership, task: ClaimTask, job: WeightsJob, outcome: dict[str, Any]) -> RegisteredModel:
    """The existing row, if the job only wrote its folder again."""
    folder = _folder(job, outcome)
    if task.model is not None:
        return task.model
    words = f"A random model of two layers that was taught for the task of {_claims_of(task)}, by job {job.pk}."
    return _free(task, lambda name: registry.register_made(membership, name=name, path=str(folder), description=words))


def _folder(job: WeightsJob, outcome: dict[str, Any]) -> Path:
    """The folder of the model on this server; what was sent to the artifact store is fetched. Raises Invalid if it is not whole."""
    folder = Path(settings.VAR) / "weights" / str(job.pk) / MODEL
    if artifact_store.is_configured() and not folder.is_dir():
        try:
            files = _FILES.validate_python(outcome.get("files"))
        except ValidationError as error:
            raise Invalid("The files of the model were not sent completely. “Try again” sends them again.") from error
        artifact_store.fetch(_place(job, MODEL), files, folder)
    if not folder.is_dir():
        raise Invalid(
            f"The model that the job has taught is not on this server, in {folder}: the machine of the job shares no disk with it, or the "
            "folder was removed. Try again, or set up an artifact store."
        )
    return folder


def _place(job: WeightsJob, path: str) -> str:
    return f"weights/{job.pk}/{path}"


def _upload(job: WeightsJob, asked: Upload) -> Links:
    return artifact_store.links("PUT", _place(job, asked.path), asked.files)


def _claims_of(task: ClaimTask) -> str:
    """The claims that the task serves, in words."""
    names = [
        p.name for p in PLANS.values() if p.task == task.task and p.constructed and p.constructed.wanted == task.wanted
    ]
    return f"the claim{'s' if len(names) > 1 else ''} {', '.join(names)}"


def _free(task: ClaimTask, make: Callable[[str], Row]) -> Row:
    """The result of `make` under the first free name."""
    name, number = f"claim-{task}", 1
    while True:
        try:
            return make(name)
        except Invalid as taken:
            if "name" not in taken.fields or number > 100:
                raise
        number += 1
        name = f"claim-{task}-{number}"


KINDS[WeightsJob.Kind.TASK] = Kind(
    models=lambda job: {}, items=lambda job, after: iter(()), finish=_finish, upload=_upload
)
