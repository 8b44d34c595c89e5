"""Tests and probes of endpoints: people ask for them on a page or over the API, and a worker carries them out."""

import asyncio
from collections.abc import Coroutine
from datetime import timedelta
from typing import Any

from django.db import transaction
from django.utils import timezone

from trainer.judges.chat import EndpointProblem
from trainer.judges.local import LOAD_S
from webapp.accounts.models import Membership
from webapp.core import broadcast
from webapp.core.auditing import audit
from webapp.core.problems import Conflict, Problem
from webapp.core.tasks import enqueue, silent

from ..models import Endpoint, EndpointCheck
from . import probing
from .services import note_troubles
from .targets import endpoint_target, local_target, reward_target

KEPT = 20  # checks per endpoint
# longer than any check takes, by the endpoint's kind; a check that is silent for longer has lost its worker
PATIENCE: dict[str, timedelta] = {
    Endpoint.Kind.CHAT: timedelta(minutes=5),
    Endpoint.Kind.REWARD: timedelta(minutes=5),
    Endpoint.Kind.LOCAL: timedelta(seconds=LOAD_S + 300),
}
State = EndpointCheck.State


@transaction.atomic
def start_check(membership: Membership, endpoint: Endpoint, kind: str) -> EndpointCheck:
    """Queues a test or a probe. If one of the kind waits or runs, that one is returned.

    Raises Conflict for an endpoint that is archived, or that cannot be checked.
    """
    if endpoint.kind == Endpoint.Kind.RECORDED:
        raise Conflict("Recorded outputs cannot be asked. Their page lists what they answer.", "recorded")
    if endpoint.kind == Endpoint.Kind.REWARD and kind == EndpointCheck.Kind.PROBE:
        raise Conflict("A reward service has no capabilities to probe. Test whether it answers.", "reward")
    if endpoint.archived_at is not None:
        raise Conflict("The endpoint is archived. Restore it first.", "archived")
    Endpoint.objects.select_for_update(no_key=True).get(pk=endpoint.pk)  # two clicks make one check
    give_up_lost(endpoint)
    waiting = endpoint.checks.filter(kind=kind, state__in=(State.QUEUED, State.RUNNING)).first()
    if waiting is not None:
        return waiting
    made = EndpointCheck.objects.create(endpoint=endpoint, kind=kind)
    old = endpoint.checks.order_by("-id").values_list("id", flat=True)[KEPT:]
    EndpointCheck.objects.filter(id__in=list(old)).delete()
    audit.record(membership, membership.user, "endpoint.checked", endpoint, kind=kind)
    enqueue("workers.endpoints.check", made.pk)
    return made


def give_up_lost(endpoint: Endpoint) -> None:
    """Marks checks as failed whose task or worker was lost: they would wait for ever."""
    late = endpoint.checks.filter(
        silent("created_at", PATIENCE[endpoint.kind]), state__in=(State.QUEUED, State.RUNNING)
    )
    late.update(state=State.FAILED, problem="No worker finished it in time. Try again.", finished_at=timezone.now())


def carry_out(check_id: int) -> None:
    """Called by a worker. The worker that turns `queued` into `running` carries the check out."""
    if not EndpointCheck.objects.filter(id=check_id, state=State.QUEUED).update(state=State.RUNNING):
        return
    check = EndpointCheck.objects.select_related("endpoint__registered_model").get(id=check_id)
    _tell(check)
    try:
        _finish(check)
    except Problem as problem:
        check.state, check.problem = State.FAILED, problem.message
    except EndpointProblem as problem:
        check.state, check.code, check.problem = State.FAILED, problem.code, problem.message
        note_troubles(check.endpoint, [problem])
    check.finished_at = timezone.now()
    check.save(update_fields=["state", "result", "code", "problem", "finished_at"])
    _tell(check)


def _tell(check: EndpointCheck) -> None:
    """Open pages of the endpoint then ask for the check again."""
    broadcast.send(f"workspace.{check.endpoint.workspace_id}", {"type": "check", "id": check.pk, "state": check.state})


def _finish(check: EndpointCheck) -> None:
    endpoint = check.endpoint
    check.result = asyncio.run(_asked(endpoint, check.kind))
    if check.kind == EndpointCheck.Kind.PROBE:
        # only if nobody has changed the endpoint since it was probed
        same = Endpoint.objects.filter(
            pk=endpoint.pk, url=endpoint.url, model=endpoint.model, registered_model=endpoint.registered_model
        )
        same.update(capabilities=check.result)
    check.state = State.FINISHED


def _asked(endpoint: Endpoint, kind: str) -> Coroutine[Any, Any, probing.Finding]:
    """A local model is asked as judges ask it: in a process that loads its weights and ends with the check."""
    testing = kind == EndpointCheck.Kind.TEST
    if endpoint.kind == Endpoint.Kind.LOCAL:
        local = local_target(endpoint, yes_no=not testing, wording="")
        return probing.test_local(local) if testing else probing.probe_local(local)
    if endpoint.kind == Endpoint.Kind.REWARD:
        return probing.test_reward(reward_target(endpoint))
    target = endpoint_target(endpoint)
    return probing.test(target) if testing else probing.probe(target)
