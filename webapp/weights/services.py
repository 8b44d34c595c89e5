"""Changes that people make to jobs: start, stop, try again."""

import hashlib
import json
from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any

from django.db import IntegrityError, transaction
from django.utils import timezone
from pydantic import ValidationError

from trainer.config.errors import ConfigInvalid, FieldProblem, item_text
from trainer.config.fields import Section
from webapp.accounts.models import Membership, User, Workspace
from webapp.core.auditing import audit
from webapp.core.background.priorities import Priority
from webapp.core.problems import Conflict, Invalid
from webapp.core.tasks import enqueue
from webapp.datasets.access import WRITER
from webapp.datasets.models import DatasetVersion
from webapp.datasets.versions import services as datasets
from webapp.inference import queries as registry
from webapp.inference.folders.tokenizers import unloadable
from webapp.inference.models import RegisteredModel

from . import line, memory_needs, resources, tokens
from .kinds import Embedding, Generation, LogProbs, Scoring
from .line import NOW, Turn
from .models import WeightsItem, WeightsJob, WeightsResult
from .states import OVER, State, broadcast_job, move, refresh

Kind = WeightsJob.Kind
ITEMS_PER_WRITE = 500


def generate(
    workspace: Workspace,
    user: User | None,
    model: RegisteredModel,
    version: DatasetVersion,
    params: dict[str, Any],
    turn: Turn = NOW,
) -> WeightsJob:
    """Lets `model` answer the prompts of `version`. The same question twice is one job, which has the better turn of both.

    Raises ConfigInvalid at a field of `params`, Invalid for a model that writes no text or whose files are gone.
    """
    if model.head != RegisteredModel.Head.LM:
        raise Invalid("This model cannot answer.", {"model": f"{model.name} scores texts and cannot write texts"})
    title = f"{model.name} answers {version}"
    return _start(workspace, user, Kind.GENERATE, title, _checked(Generation, params), model, version, turn)


def score(
    workspace: Workspace,
    user: User | None,
    model: RegisteredModel,
    version: DatasetVersion,
    params: dict[str, Any],
    turn: Turn = NOW,
) -> WeightsJob:
    """Lets the reward model `model` score the responses of `version`. Raises as `generate`."""
    if model.head != RegisteredModel.Head.SCALAR:
        raise Invalid("This model cannot score.", {"model": f"{model.name} writes text; choose a reward model"})
    title = f"{model.name} scores {version}"
    return _start(workspace, user, Kind.SCORE, title, _checked(Scoring, params), model, version, turn)


def log_probs(
    workspace: Workspace, user: User | None, model: RegisteredModel, version: DatasetVersion, params: dict[str, Any]
) -> WeightsJob:
    """Measures how likely the responses of `version` are under `model`. Raises as `generate`."""
    if model.head != RegisteredModel.Head.LM:
        raise Invalid(
            "This model gives no log-probabilities of tokens.",
            {"model": f"{model.name} scores texts; choose one that writes"},
        )
    title = f"{model.name} reads {version}"
    return _start(workspace, user, Kind.LOGPROBS, title, _checked(LogProbs, params), model, version)


def embed(workspace: Workspace, user: User | None, version: DatasetVersion, params: dict[str, Any]) -> WeightsJob:
    """Makes vectors of the texts of `version`, by the sentence model that is installed with the product."""
    checked = _checked(Embedding, params)
    return _start(workspace, user, Kind.EMBED, f"Embeddings of {version}", checked, None, version)


def start(
    workspace: Workspace,
    user: User | None,
    kind: str,
    title: str,
    params: dict[str, Any],
    subject: str,
    again: bool = False,
) -> WeightsJob:
    """A job of a kind that an app above has registered; `subject` names what it works on.

    `again`: one that was done is done again, because what it made is gone.
    """
    job = _create(workspace, user, NOW, kind=kind, title=title[:300], params=params, key=_key(kind, params, subject))
    return _anew(job, user) if again and job.state == State.FINISHED else job


def filled(workspace: Workspace, kind: str, subject: str) -> WeightsJob | None:
    """The job of `stored` under this subject that `fill` has started; None if there is none."""
    job = WeightsJob.objects.filter(workspace=workspace, key=_stored_key(kind, subject)).first()
    return None if job is None or _never_begun(job) else job


@transaction.atomic
def stored(
    workspace: Workspace,
    user: User | None,
    kind: str,
    title: str,
    subject: str,
    model: RegisteredModel,
    version: DatasetVersion | None,
) -> WeightsJob:
    """A job whose items are its own rows, known by `subject`; `fill` gives it those and starts it."""
    user, key = audit.still_there(user), _stored_key(kind, subject)
    fields = {"kind": kind, "title": title[:300], "model": model, "version": version, "created_by": user}
    job, made = WeightsJob.objects.get_or_create(workspace=workspace, key=key, defaults=fields)
    if made:
        audit.record(workspace, user, "weights_job.started", job, kind=job.kind, title=job.title)
    return job


def waits_for_items(job: WeightsJob) -> bool:
    """Whether nothing is at it: it was never begun, or it is over."""
    return job.is_over or _never_begun(job)


def _never_begun(job: WeightsJob) -> bool:
    return job.state == State.QUEUED and job.asked_at is None


def _stored_key(kind: str, subject: str) -> str:
    return hashlib.sha256(f"{kind}\n{subject}".encode()).hexdigest()


def fill(
    job: WeightsJob,
    user: User | None,
    params: dict[str, Any],
    items: Iterable[dict[str, Any]],
    stop: Callable[[], bool],
    turn: Turn = NOW,
) -> int:
    """Puts `items` behind what the job has done, in the place of those it had left, and starts it; returns how many.

    For a job of `stored` that `waits_for_items`, by one worker at a time. Nothing is started where `stop` said so, and a worker
    that dies on the way leaves a job that is filled again.
    """
    WeightsItem.objects.filter(job=job).delete()
    remaining, place = iter(items), job.done
    while not stop() and (batch := list(islice(remaining, ITEMS_PER_WRITE))):
        rows = [WeightsItem(job=job, place=place + i, content=content) for i, content in enumerate(batch)]
        WeightsItem.objects.bulk_create(rows)
        place += len(rows)
    if place == job.done or stop():
        return 0
    fields, job.params = {"params": params, "total": place, **_standing(turn)}, params
    if job.is_over:
        _next_attempt(job, user, **fields)
    else:
        _first_attempt(job, fields)
    return place - job.done


@transaction.atomic
def _first_attempt(job: WeightsJob, fields: dict[str, Any]) -> None:
    waiting = WeightsJob.objects.filter(pk=job.pk, state=State.QUEUED, asked_at=None)
    fields |= {"token_digest": tokens.digest(job), "memory_needed": memory_needs.expected_memory(job)}
    if waiting.update(next_try_at=timezone.now(), **fields):
        enqueue("workers.weights.launch", job.pk)
    refresh(job)
    broadcast_job(job)


def _start(
    workspace: Workspace,
    user: User | None,
    kind: str,
    title: str,
    params: dict[str, Any],
    model: RegisteredModel | None,
    version: DatasetVersion,
    turn: Turn = NOW,
) -> WeightsJob:
    if model is not None and (why := unloadable(model)):
        raise Invalid("The model cannot be loaded.", {"model": why})
    # somebody may have frozen or deleted it since it was read; `_create` holds it
    if DatasetVersion.objects.filter(pk=version.pk, state=DatasetVersion.State.DRAFT).exists():
        version = datasets.freeze(_freezes(workspace, user, version), version)
    known = f"{registry.source(model).model_dump_json()} {model.digest} " if model else ""
    key = _key(kind, params, f"{known}{version.digest}")
    asked = {"kind": kind, "title": title[:300], "params": params, "model": model, "version": version}
    return _create(workspace, user, turn, key=key, **asked)


def _freezes(workspace: Workspace, user: User | None, version: DatasetVersion) -> Membership:
    """The membership in whose name a draft is frozen. Raises Invalid if the person may not do so any more: the role is too low, the
    membership is gone, or the account is closed. The job would otherwise read a version that changes under it."""
    rows = Membership.objects.filter(workspace=workspace, user=user, user__is_active=True)
    membership = rows.select_related("user", "workspace").first() if user else None
    if membership is None or not membership.may(WRITER):
        why = f"{version} is a draft, and the person who asked may no longer freeze it"
        raise Invalid("The job cannot read this version.", {"dataset_version": why})
    return membership


def _create(workspace: Workspace, user: User | None, turn: Turn, **fields: Any) -> WeightsJob:
    """The job that has this key, or a new one; one that was stopped or has failed continues from where it was."""
    resources.check(workspace.pk, fields["params"])
    known = WeightsJob.objects.filter(workspace=workspace, key=fields["key"]).first()
    if known is not None and known.state in (State.STOPPED, State.FAILED):
        known.params = fields["params"]  # perhaps with other resources
        WeightsJob.objects.filter(pk=known.pk).update(params=known.params)
        return retry(known, user, turn)
    if known is not None:
        return _advanced(known, turn)
    try:
        with transaction.atomic():
            user = audit.still_there(user)
            if version := fields.get("version"):
                datasets.keep_version(version)
            job = WeightsJob.objects.create(
                workspace=workspace, created_by=user, next_try_at=timezone.now(), **_standing(turn), **fields
            )
            own = {"token_digest": tokens.digest(job), "memory_needed": memory_needs.expected_memory(job)}
            WeightsJob.objects.filter(pk=job.pk).update(**own)
            audit.record(workspace, user, "weights_job.started", job, kind=job.kind, title=job.title)
            enqueue("workers.weights.launch", job.pk)
    except IntegrityError:  # somebody else asked for the same at this moment
        return WeightsJob.objects.get(workspace=workspace, key=fields["key"])
    job.refresh_from_db()
    broadcast_job(job)
    return job


def _standing(turn: Turn) -> dict[str, Any]:
    return {"asked_at": turn.since or timezone.now(), "priority": turn.priority}


@transaction.atomic
def _advanced(job: WeightsJob, turn: Turn) -> WeightsJob:
    if line.advance(job, turn):
        transaction.on_commit(line.let_in)
        refresh(job)
    return job


def prioritise(job: WeightsJob, user: User | None, priority: Priority) -> WeightsJob:
    """Sets the place of the job in the line of its workspace. The same twice changes nothing."""
    with transaction.atomic():
        if WeightsJob.objects.filter(pk=job.pk).exclude(priority=priority).update(priority=priority):
            told = priority.label.lower()
            audit.record(job.workspace, audit.still_there(user), "weights_job.priority", job, priority=told)
            # once this is committed: the lock of the line comes before any lock of a job
            transaction.on_commit(line.let_in)
    refresh(job)
    broadcast_job(job)
    return job


@transaction.atomic
def stop(job: WeightsJob, user: User | None) -> WeightsJob:
    """Asks the job to end; what it has found is kept. Stopping one that is over is harmless."""
    if job.state in OVER or job.state == State.STOPPING:
        return job
    user = audit.still_there(user)
    if job.state == State.QUEUED and move(job, State.STOPPED, actor=user, problem="Stopped before it started"):
        return job
    if move(job, State.STOPPING, actor=user, problem=f"{user or 'The system'} asked it to stop"):
        enqueue("workers.weights.stop", job.pk)
    return job


def retry(job: WeightsJob, user: User | None, turn: Turn | None = None) -> WeightsJob:
    """Goes on behind the last result, as a new attempt with a new token. Raises Conflict unless it stopped or failed."""
    if job.state not in (State.STOPPED, State.FAILED):
        raise Conflict(f"Only a job that stopped or failed can be tried again; this one is {job.state}.", "not_over")
    return _next_attempt(job, user, **_standing(turn or Turn(priority=job.priority)))


@transaction.atomic
def _anew(job: WeightsJob, user: User | None) -> WeightsJob:
    WeightsResult.objects.filter(job=job).delete()
    return _next_attempt(job, user, acked=0, done=0, outcome={}, **_standing(Turn(priority=job.priority)))


@transaction.atomic
def _next_attempt(job: WeightsJob, user: User | None, **fields: Any) -> WeightsJob:
    following = WeightsJob(pk=job.pk, attempt=job.attempt + 1, created_at=job.created_at)
    moved = move(
        job,
        State.QUEUED,
        actor=audit.still_there(user),
        attempt=following.attempt,
        token_digest=tokens.digest(following),
        ray_job_id="",
        tries=0,
        next_try_at=timezone.now(),
        heartbeat_at=None,
        ended_at=None,
        memory_needed=memory_needs.expected_memory(job),
        **fields,
    )
    if moved:
        enqueue("workers.weights.launch", job.pk)
    return job


def _checked(schema: type[Section], params: dict[str, Any]) -> dict[str, Any]:
    try:
        return schema.model_validate(params).model_dump(mode="json")
    except ValidationError as error:
        problems = [FieldProblem(".".join(map(str, item["loc"])), item_text(item)) for item in error.errors()]
        raise ConfigInvalid(problems) from error


def _key(kind: str, params: dict[str, Any], subject: str) -> str:
    asked = {name: value for name, value in params.items() if name != "resources"}  # how, not what
    return hashlib.sha256(f"{kind}\n{json.dumps(asked, sort_keys=True)}\n{subject}".encode()).hexdigest()
