"""The workers' part of chains: they launch the steps that wait for a run once it has finished.

A message may come twice, at once, or not at all. A step is launched under its lock, in the transaction that stores the result. So a killed
worker leaves a step that waits or one that is launched, and the next round of upkeep finds the former.
"""

import logging
from collections.abc import Callable
from copy import deepcopy
from typing import Any

from django.db import transaction
from django.db.models import Exists, OuterRef, Q, QuerySet
from django.utils import timezone

from trainer.config import ConfigInvalid
from webapp.accounts.models import Membership
from webapp.core.auditing import audit
from webapp.core.problems import Problem
from webapp.core.tasks import enqueue
from webapp.evaluation.launch import services as evaluating
from webapp.evaluation.models import Evaluation
from webapp.inference.models import RegisteredModel
from webapp.webhooks.services import announce

from .. import access
from ..launch import checks, named_rows, refusals
from ..launch import services as launching
from ..lifecycle.states import facts, when_finished
from ..live import broadcasts
from ..models import Artifact, ChainStep, ChainWait, ClaimRun, Run
from ..outputs import trained_judges
from ..rewards.grants import value_at
from .queries import DELETED
from .services import POLICY, TAKE_UP, end

logger = logging.getLogger(__name__)
State, Kind = ChainStep.State, ChainStep.Kind


class StepRefused(Problem):
    """The reason why a step cannot be launched, in words."""

    def __init__(self, message: str) -> None:
        super().__init__(message, {}, "refused", 409)


@when_finished
def notice(run: Run) -> None:
    if ChainStep.objects.filter(Q(after=run) | Q(waits__run=run), state=State.WAITING).exists():
        enqueue(TAKE_UP, run.pk)


def watch() -> None:
    """Launches the steps whose message was lost, and refuses those of which a run was deleted."""
    gone = ChainStep.objects.filter(
        state=State.WAITING, after__isnull=False, waits__in=ChainWait.objects.filter(run=None, on=None)
    )
    for pk in list(gone.order_by("pk").values_list("pk", flat=True).distinct()):
        tried(_refuse, pk)
    for run_id in list(_ready().order_by("after_id").values_list("after_id", flat=True).distinct()):
        take_up(run_id)


def take_up(run_id: int) -> None:
    """Launches every step that waits for this run, if it and all others for which the step waits have finished."""
    of_run = Q(after_id=run_id) | Q(pk__in=ChainWait.objects.filter(run=run_id).values("step"))
    for pk in list(_ready().filter(of_run).order_by("pk").values_list("pk", flat=True)):
        tried(_launch_ready, pk)


def tried(decide_on: Callable[[int], None], step_id: int) -> None:
    """One step must not keep the others waiting, of the same run or of other runs."""
    try:
        decide_on(step_id)
    except Exception:
        logger.exception("step %s could not be launched; the next round tries again", step_id)


@transaction.atomic
def _launch_ready(step_id: int) -> None:
    step = _ready().select_for_update(of=("self",)).filter(pk=step_id).first()
    if step is not None and step.after_id is not None:
        _launch(step, Run.objects.with_names().get(pk=step.after_id))


def _ready() -> QuerySet[ChainStep]:
    """The steps that wait for nothing any more."""
    unfinished = ChainWait.objects.filter(step=OuterRef("pk")).exclude(run__state=Run.State.FINISHED)
    return ChainStep.objects.filter(~Exists(unfinished), state=State.WAITING, after__state=Run.State.FINISHED)


def _launch(step: ChainStep, first: Run) -> None:
    if not decide(step, lambda membership: _make(membership, step, first)):
        _tell_refused(step, first)
    broadcasts.run_changed(first)


@transaction.atomic
def _refuse(step_id: int) -> None:
    """Refuses a step that waits for a run that was deleted."""
    step = ChainStep.objects.select_for_update().filter(pk=step_id, state=State.WAITING).first()
    if step is not None and step.after_id:
        first = Run.objects.with_names().get(pk=step.after_id)
        end(step, State.REFUSED, DELETED, actor=None)
        _tell_refused(step, first)
        broadcasts.run_changed(first)


def _tell_refused(step: ChainStep, first: Run) -> None:
    told = {"step": step.pk, "then": str(step), "reason": step.reason}
    audit.record(first.experiment.workspace, None, "run.then_refused", first, **told)
    about = {"chain_step": step.pk, "kind": step.kind, "then": str(step), "reason": step.reason}
    announce(first.experiment.workspace_id, "run.then_refused", facts(first) | about)


def decide(step: ChainStep, make: Callable[[Membership], None]) -> bool:
    """Launches a step by `make`, which sets its run or evaluation, or refuses it with the reason. Returns whether it was launched. The
    caller holds the lock of the step."""
    try:
        with transaction.atomic():  # what a refusal has written of it is undone
            membership = access.launcher(step.workspace_id, step.created_by_id)
            if membership is None:
                raise StepRefused("The person who asked for it is no longer allowed to launch anything here")
            make(membership)
            step.state, step.decided_at = State.LAUNCHED, timezone.now()
            step.save(update_fields=["run", "evaluation", "state", "decided_at"])
    except (ConfigInvalid, Problem) as error:
        step.run = step.evaluation = None
        end(step, State.REFUSED, refusals.refusal_message(error), actor=None)
        return False
    return True


def _make(membership: Membership, step: ChainStep, first: Run) -> None:
    if step.kind == Kind.RUN:
        step.run = _train(membership, step, first)
        ChainStep.objects.filter(behind=step).update(after=step.run, behind=None)
        ChainWait.objects.filter(on=step).update(run=step.run, on=None)
        ClaimRun.objects.filter(step=step).update(run=step.run, step=None)
    else:
        step.evaluation = _evaluate(membership, step, first)


def config_today(step: ChainStep) -> dict[str, Any]:
    """The config of a run that waits, in which its models and judges have the names of today. Raises ConfigInvalid."""
    asked = step.asked
    return named_rows.renamed(step.workspace_id, asked["recipe"], asked["config"], asked.get("named_rows", {}))


def _train(membership: Membership, step: ChainStep, first: Run) -> Run:
    asked = step.asked
    return launching.launch(
        membership,
        recipe=asked["recipe"],
        config=_with_judges(membership, config_today(step), asked.get("judges", {}), first),
        dataset=checks.DatasetChoice(**asked["dataset"]),
        model=_output(first).name if asked["with_output"] else None,
        experiment=asked["experiment"],
        name=step.name,
    )


def _with_judges(membership: Membership, config: dict[str, Any], judges: dict[str, str], first: Run) -> dict[str, Any]:
    """The config with the names of the judges that the previous run has trained, at these places."""
    config = deepcopy(config)
    for path, role in judges.items():
        section, _, last = path.rpartition(".")
        value_at(config, section)[last] = str(trained_judges.use(membership, _output(first, role)))
    return config


def _output(first: Run, role: str = POLICY) -> RegisteredModel:
    """The model of this role that the run has left at its end."""
    left = Artifact.objects.filter(run=first, registered__role=role).select_related("registered")
    newest = left.order_by("-step", "-id").first()
    if newest is None or newest.registered is None:
        needed = "model that a run can begin with" if role == POLICY else f"{role.replace('_', ' ')} that can be asked"
        raise StepRefused(f"{first} has left no {needed}")
    return newest.registered


def _evaluate(membership: Membership, step: ChainStep, first: Run) -> Evaluation:
    asked = step.asked
    version = checks.version_of(membership, checks.DatasetChoice(**asked["dataset"]))
    if version is None:
        raise StepRefused("The dataset was deleted")
    return evaluating.create(
        membership,
        asked_at=step.created_at,  # its jobs take the place in the line of its request, not the last one
        recipe=asked["recipe"],
        config={**asked["config"], "responses": [{"run": first.pk, "name": str(first)[:60]}]},
        dataset=version,
        name=step.name or f"{first} of {first.experiment.name}"[:100],
    )
