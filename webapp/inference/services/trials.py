"""Models of architectures that are not known are tried by a process of its own: can they be trained? A worker starts it."""

import json
import subprocess
from pathlib import Path
from typing import Any

from django.conf import settings
from django.db import transaction

from webapp.core.children import environment
from webapp.core.tasks import enqueue
from webapp.inference import training
from webapp.inference.models import RegisteredModel

PATIENCE_S = 1_800


def start(model: RegisteredModel) -> None:
    """Queued where there is something to find out. A trial that is lost loses nothing: each run tries the model, too."""
    if training.to_try(model):
        enqueue("workers.endpoints.try_model", model.pk)


def carry_out(model_id: int) -> None:
    """Called by a worker. Tried twice, a model has what was found last."""
    model = RegisteredModel.objects.filter(pk=model_id).first()
    if model is None or not training.to_try(model):
        return
    found = _tried(Path(model.path))
    with transaction.atomic():
        row = RegisteredModel.objects.select_for_update(no_key=True).filter(pk=model_id).first()
        if row is not None:
            RegisteredModel.objects.filter(pk=model_id).update(facts={**row.facts, training.TRIAL: found})


def _tried(folder: Path) -> dict[str, Any]:
    """What `trainer.weights.trial` says."""
    try:
        done = subprocess.run(
            [*settings.TRIAL_COMMAND, str(folder)],
            cwd=settings.BASE_DIR,
            env=environment(),
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
        )
        found = json.loads(done.stdout.splitlines()[-1]) if done.returncode == 0 else None
    except (OSError, ValueError, IndexError, subprocess.TimeoutExpired) as error:
        return {"state": "not_tried", "reason": f"the process that tries it could not be run: {error}"[:300]}
    if not isinstance(found, dict) or found.get("state") not in training.STATES:
        last = (done.stderr.strip().splitlines() or ["it said nothing"])[-1]
        return {"state": "not_tried", "reason": f"the process that tries it failed: {last[:300]}"}
    return found
