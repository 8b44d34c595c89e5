"""A trial shows whether a model of an unknown architecture can be trained. A worker starts a process for it.

One model is tried at a time, because each trial looks at the memory that is free before it begins.
"""

import json
import subprocess
from typing import Any

from django.conf import settings
from django.db import transaction

from trainer.config.architectures import KNOWN
from trainer.contracts import ModelSource, jsonlines
from webapp.accounts.models import Membership
from webapp.core.auditing import audit
from webapp.core.background.children import environment
from webapp.core.database import locks
from webapp.core.problems import Conflict, Problem
from webapp.core.tasks import UNTAKEN, enqueue, silent

from ..folders import stored
from ..models import RegisteredModel
from . import outcomes

TASK = "workers.endpoints.try_model"
PATIENCE_S = 1_800
AGAIN_S = 30
"""After this time a worker looks again whether the trial before has ended."""


def start(model: RegisteredModel) -> None:
    """Queues a trial if it can find something out. Until it has ended, each run tries the model itself."""
    if outcomes.to_try(model):
        enqueue(TASK, model.pk)


@transaction.atomic
def try_again(membership: Membership, model: RegisteredModel) -> None:
    """Forgets the outcome of the trial and queues another. Raises Conflict if no trial was refused or could not be made."""
    row = RegisteredModel.objects.select_for_update(no_key=True).get(pk=model.pk)
    if not outcomes.may_try_again(row):
        raise Conflict(
            "There is no trial of this model to make again: none failed and none was refused.", code="nothing_to_try"
        )
    before = row.facts.pop(outcomes.TRIAL)
    row.save(update_fields=["facts"])
    model.facts = row.facts
    audit.record(membership, membership.user, "model.tried_again", model, name=model.name, before=before["state"])
    start(model)


def carry_out(model_id: int) -> bool:
    """Called by a worker. False if another model is being tried. A model whose trial has begun or is over is not tried again."""
    with locks.exclusive(locks.Work.MODEL_TRIAL, 0) as ours:
        if not ours:
            return False
        model = _begun(model_id)
        if model is not None:
            _write(model_id, _tried(model))
    return True


def requeue_lost() -> int:
    """Queues the oldest model that has had no trial, if none is under way: its task was lost, or the broker was away."""
    with locks.exclusive(locks.Work.MODEL_TRIAL, 0) as ours:
        if not ours:
            return 0
        whole = {"source": RegisteredModel.Source.LOCAL, "format": RegisteredModel.Format.HF}
        rows = RegisteredModel.objects.filter(
            silent("created_at", UNTAKEN), **whole, head=RegisteredModel.Head.LM, archived_at=None
        )
        unknown = rows.filter(facts__has_key="model_type").exclude(facts__model_type__in=KNOWN)
        model = unknown.exclude(facts__has_key=outcomes.TRIAL).order_by("id").first()
    if model is None:
        return 0
    start(model)
    return 1


@transaction.atomic
def _begun(model_id: int) -> RegisteredModel | None:
    """The model, whose trial begins now; None if a trial can find nothing out."""
    model = RegisteredModel.objects.select_for_update(no_key=True).filter(pk=model_id).first()
    if model is None or not outcomes.to_try(model) or outcomes.TRIAL in model.facts:
        return None
    _write(model_id, outcomes.BEGUN)
    return model


@transaction.atomic
def _write(model_id: int, found: dict[str, Any]) -> None:
    row = RegisteredModel.objects.select_for_update(no_key=True).filter(pk=model_id).first()
    if row is not None:
        RegisteredModel.objects.filter(pk=model_id).update(facts={**row.facts, outcomes.TRIAL: found})


def _tried(model: RegisteredModel) -> dict[str, Any]:
    """The outcome, as `trainer.weights.trial` prints it."""
    try:
        folder = stored.local_source(ModelSource(path=model.path), model.workspace_id).path
    except (Problem, OSError) as error:
        return {"state": "not_tried", "reason": f"its files cannot be fetched: {error}"[:300]}
    try:
        done = subprocess.run(
            [*settings.TRIAL_COMMAND, folder],
            cwd=settings.BASE_DIR,
            env=environment(),
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
        )
        found = json.loads(jsonlines.lines(done.stdout)[-1]) if done.returncode == 0 else None
    except (OSError, ValueError, IndexError, subprocess.TimeoutExpired) as error:
        return {"state": "not_tried", "reason": f"the process that tries it could not be run: {error}"[:300]}
    if not isinstance(found, dict) or found.get("state") not in outcomes.STATES:
        last = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
        return {"state": "not_tried", "reason": f"the process that tries it failed: {last[:300]}"}
    return found
