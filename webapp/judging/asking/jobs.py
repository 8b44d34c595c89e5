"""A job of the cluster asks a judge with local weights about many inputs; its verdicts enter the verdict store.

The caller comes back until nothing is left to ask, and holds no thread meanwhile.
"""

import json
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from pydantic import ValidationError

from trainer.contracts import OwnVerdict
from trainer.judges.budget import Budget
from trainer.judges.calls import Call
from trainer.judges.inputs import JudgeInput
from trainer.judges.local import wording
from webapp.accounts.models import User, Workspace
from webapp.core.problems import Invalid
from webapp.datasets.models import DatasetVersion
from webapp.inference.endpoints.services import note_troubles
from webapp.inference.endpoints.targets import local_target, prices
from webapp.inference.models import Endpoint
from webapp.usage import counters
from webapp.usage.models import WorkKind
from webapp.usage.works import MeteredWork
from webapp.weights import services as weights
from webapp.weights.kinds import KINDS, Items, Kind, Results, reads
from webapp.weights.line import NOW, Turn
from webapp.weights.models import WeightsItem, WeightsJob

from ..judges.services import begin_use
from ..models import JudgeVersion
from ..verdicts.store import store, use
from .calls import unasked
from .own_verdicts import outcomes, usage_of_calls

ITEMS_PER_READ = 500
USED_BY = "used_by"  # of the params: kind and id of what the calls cost something for
State = WeightsJob.State


@dataclass(frozen=True)
class Errand:
    """The purpose for which a judge is asked. `of` names it, such as `evaluation 3 deciding criteria`; each has its own job."""

    workspace: Workspace
    user: User | None
    of: str
    title: str
    data: DatasetVersion | None = None
    resources: dict[str, Any] | None = None
    turn: Turn = NOW
    used_by: MeteredWork | None = None
    """The work that pays for the calls; None: the job itself."""


def needs_job(version: JudgeVersion) -> bool:
    return version.endpoint.kind == Endpoint.Kind.LOCAL


def job_for(
    version: JudgeVersion,
    inputs: Sequence[JudgeInput],
    errand: Errand,
    *,
    budget: Budget | None = None,
    draw: int = 0,
    again: bool = False,
    stop: Callable[[], bool] = lambda: False,
) -> WeightsJob | None:
    """The job that asks what is left to ask; it is started if there is none. None once nothing is left.

    What is stored is not asked again. Calls that failed are asked again once for each errand. `again` asks them once more and
    continues a job that stopped or failed; otherwise that job is returned as it is. `budget` is what is left beside what this
    job has used. Raises Conflict for an endpoint that is archived, EndpointProblem if the files of its model are gone.
    """
    subject = _subject(version, errand, draw)
    failed = again or weights.filled(errand.workspace, WeightsJob.Kind.JUDGE, subject) is None
    if next(unasked(version, inputs, draw, failed=failed), None) is None:
        return None
    local_target(version.endpoint, yes_no=True, wording="")  # can it be asked at all?
    model = version.endpoint.registered_model
    assert model is not None  # noqa: S101  # local_target has looked
    job = weights.stored(
        errand.workspace, errand.user, WeightsJob.Kind.JUDGE, errand.title, subject, model, errand.data
    )
    if not weights.waits_for_items(job) or (job.state in (State.STOPPED, State.FAILED) and not again):
        return job
    begin_use(version)
    params = {"judge": str(version), "version": version.pk, "resources": errand.resources or {}}
    params |= {"budget": _allowed(job, budget)} if budget else {}
    params |= {USED_BY: [errand.used_by.kind, errand.used_by.id]} if errand.used_by else {}
    calls = unasked(version, inputs, draw, failed=failed)
    weights.fill(job, errand.user, params, map(_item, calls), stop, errand.turn)
    return job


def _subject(version: JudgeVersion, errand: Errand, draw: int) -> str:
    return f"{version.pk} {draw} {errand.of}"


def _allowed(job: WeightsJob, left: Budget) -> dict[str, Any]:
    """The budget of all attempts of the job together."""
    tokens, money = spent_by_job(job)
    return {
        "tokens": None if left.tokens is None else left.tokens + tokens,
        "money": None if left.money is None else str(left.money + money),
    }


def spent_by(version: JudgeVersion, errand: Errand) -> tuple[int, Decimal]:
    """The tokens and the money that the errand's job has spent so far."""
    job = weights.filled(errand.workspace, WeightsJob.Kind.JUDGE, _subject(version, errand, draw=0))
    return spent_by_job(job) if job else (0, Decimal(0))


def spent_by_job(job: WeightsJob) -> tuple[int, Decimal]:
    """The tokens that a job has used, and the money in the unit of the endpoint's prices."""
    return int(job.outcome.get("tokens", 0)), Decimal(job.outcome.get("money", "0"))


def _item(call: Call) -> dict[str, Any]:
    return {"key": call.key, "record": call.record, "subject": call.subject}


def _version(job: WeightsJob) -> JudgeVersion:
    """The version. Raises Invalid if it was deleted."""
    rows = JudgeVersion.objects.select_related("judge", "endpoint__registered_model__base")
    version = rows.filter(pk=job.params["version"], judge__workspace_id=job.workspace_id).first()
    if version is None:
        raise Invalid("The judge was deleted in the meantime.")
    return version


def _items(job: WeightsJob, after: int) -> Items:
    """The items after a position. Items that are done still count in positions."""
    at = after
    while rows := list(WeightsItem.objects.filter(job=job, place__gte=at).order_by("place")[:ITEMS_PER_READ]):
        yield from (json.dumps(row.content, ensure_ascii=False) for row in rows)
        at = rows[-1].place + 1


def _brief(job: WeightsJob) -> dict[str, Any]:
    """The facts about the judge that the process needs, and the rest of the budget."""
    version = _version(job)
    spec, table, (tokens, money) = version.resolved, prices(version.endpoint), spent_by_job(job)
    allowed = job.params.get("budget")
    left = allowed and {
        "tokens": None if allowed["tokens"] is None else max(0, allowed["tokens"] - tokens),
        "money": None if allowed["money"] is None else str(max(Decimal(0), Decimal(allowed["money"]) - money)),
    }
    return {
        "spec": version.spec,
        "yes_no": spec.kind == "criterion",
        "wording": wording(spec),
        "prices": table and [str(table.prompt), str(table.completion)],
        "budget": left,
    }


def _used_by(job: WeightsJob) -> MeteredWork:
    kind, of = job.params.get(USED_BY, (WorkKind.JOB, job.pk))
    return MeteredWork(job.workspace_id, WorkKind(kind), int(of), job.created_by_id)


def _keep(job: WeightsJob, results: Results) -> tuple[Results, dict[str, Any]]:
    """Stores the verdicts; the job keeps their states and what they took. Raises Invalid."""
    try:
        told = [OwnVerdict.model_validate(each) for each in results]
    except ValidationError as error:
        raise Invalid("A verdict cannot be read.") from error
    version = _version(job)
    found = list(outcomes(version, told))
    store(version, found)
    note_troubles(version.endpoint, [each.trouble for each in found if each.trouble])
    counters.count(_used_by(job), version.endpoint_id, use(found))
    WeightsItem.objects.filter(job=job, place__lt=job.done + len(found)).delete()
    (tokens, money), (more_tokens, more_money) = spent_by_job(job), usage_of_calls(found)
    outcome = {**job.outcome, "tokens": tokens + more_tokens, "money": str(money + more_money)}
    for state, number in Counter(each.state for each in found).items():
        outcome[state] = outcome.get(state, 0) + number
    return [{"key": each.call.key, "state": each.state, "problem": each.problem} for each in found], outcome


KINDS[WeightsJob.Kind.JUDGE] = Kind(
    models=KINDS[WeightsJob.Kind.SCORE].models,
    items=_items,
    finish=lambda job, outcome: job.outcome | outcome,
    brief=_brief,
    keep=_keep,
    memory=reads,
)
