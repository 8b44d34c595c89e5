"""Judges for evaluations: the versions that a config may name, and the one way to ask them."""

from collections import Counter
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any

from django.db.models import QuerySet

from trainer.judges.budget import Budget
from trainer.judges.calls import expand
from trainer.judges.chat import EndpointProblem
from trainer.judges.inputs import InputProblem, JudgeInput
from webapp.core.auditing import audit
from webapp.core.forms.formtree import Tree
from webapp.inference.models import Endpoint
from webapp.judging.asking.calls import CallCounts, judge_calls
from webapp.judging.asking.jobs import Errand, job_for, spent_by_job
from webapp.judging.models import JudgeVersion, Verdict
from webapp.judging.verdicts import queries as verdict_queries
from webapp.usage.models import WorkKind
from webapp.usage.works import MeteredWork
from webapp.weights.line import Turn
from webapp.weights.models import WeightsJob

from ..models import Evaluation
from ..recipes.base import JudgedQuestion, JudgeFacts, VerdictSpending
from .registry import SOURCES, Options, RowSource

MAX_CHOICES = 200
IDS = 5_000  # verdicts read at a time


class Halted(Exception):
    """The calls ended before the last one: the budget is used up, or the endpoint is gone. Stored verdicts are kept."""


def versions(workspace_id: int) -> QuerySet[JudgeVersion]:
    rows = JudgeVersion.objects.filter(judge__workspace_id=workspace_id)
    return rows.select_related("judge", "endpoint")


def _options(workspace_id: int, kinds: str) -> Options:
    rows = versions(workspace_id).filter(judge__kind__in=kinds.split(","), judge__archived_at=None)
    rows = rows.order_by("judge__name", "-number")[:MAX_CHOICES]
    return [(str(row.pk), f"{row} · {row.judge.title} · {row.endpoint.name}") for row in rows]


def _problem(workspace_id: int, kinds: str, version_id: int) -> str:
    row = versions(workspace_id).filter(pk=version_id).first()
    if row is None:
        return "this workspace has no such judge"
    if row.judge.kind not in kinds.split(","):
        return f"{row} is of kind {row.judge.kind}; this needs {kinds.replace(',', ' or ')}"
    return ""


SOURCES["judges"] = RowSource(_options, _problem)


def facts(version: JudgeVersion) -> JudgeFacts:
    asks = _asks(version.endpoint)
    return JudgeFacts(version.pk, version.judge_id, str(version), version.judge.kind, version.spec, asks)


def _asks(endpoint: Endpoint) -> str:
    """A text that is equal for two endpoints with the same weights, or the same address and model; recorded outputs belong to no model."""
    if endpoint.kind == Endpoint.Kind.LOCAL:
        return f"weights {endpoint.registered_model_id}"
    return f"{endpoint.url} {endpoint.model}" if endpoint.kind == Endpoint.Kind.CHAT else f"recorded {endpoint.pk}"


def named(workspace_id: int, schema: dict[str, Any], config: dict[str, Any]) -> dict[str, JudgeFacts]:
    """The judge versions that a config names, by the path of their field."""
    fields = [
        each for each in Tree(schema).draw(config, {}).every_input() if each.source.startswith("judges:") and each.value
    ]
    rows = versions(workspace_id).in_bulk([int(each.value) for each in fields])
    return {each.path: facts(rows[int(each.value)]) for each in fields if int(each.value) in rows}


def ask(
    version: JudgeVersion,
    inputs: Sequence[JudgeInput],
    *,
    budget: Budget | None,
    stop: Callable[[], bool],
    tell: Callable[[int, int, str], None],
    used_by: MeteredWork,
    draw: int = 0,
) -> None:
    """Asks the questions without a stored verdict. `tell(done, total, words)` gets the progress. Raises Halted if calls are left to
    make."""
    planned = len(inputs) * _calls_each(version, inputs)

    def progress(counts: CallCounts) -> None:
        done = counts.stored + counts.done + counts.missing + counts.failed
        tell(done, max(planned, counts.total), _words(counts))

    try:
        counts = judge_calls(version, inputs, budget=budget, stop=stop, progress=progress, draw=draw, used_by=used_by)
    except EndpointProblem as problem:
        raise Halted(problem.message) from problem
    if counts.halted:
        raise Halted("" if counts.halted == "stopped" else counts.halted)


def answers(
    version: JudgeVersion, inputs: Sequence[JudgeInput], unusable: Counter[str], unasked: set[str], draw: int = 0
) -> list[JudgedQuestion]:
    """The stored verdicts, in the order of the inputs. `unusable` counts inputs that could not be asked about, by reason, and `unasked`
    collects their examples."""
    found: list[JudgedQuestion] = []
    for given, said in verdict_queries.answers(version, inputs, draw, unusable):
        if not said:
            unasked.add(given.example)
        for each in said:
            found.append(
                JudgedQuestion(each.verdict_id or 0, each.parsed, each.raw, each.problem, each.subject, each.state)
            )
    return found


def ask_by_job(
    version: JudgeVersion,
    inputs: Sequence[JudgeInput],
    evaluation: Evaluation,
    phase: str,
    *,
    budget: Budget | None,
    again: bool,
    stop: Callable[[], bool],
    draw: int = 0,
) -> WeightsJob | None:
    """The job that asks the questions without a stored verdict; None once none is left. Raises Halted if it ended before that."""
    data = evaluation.dataset_version
    errand = Errand(
        evaluation.workspace,
        audit.asked_by(evaluation),
        of=f"evaluation {evaluation.pk} {phase}",
        title=f"{version}, {evaluation}: {phase}",
        data=data,
        resources=evaluation.config.get("resources"),
        turn=turn(evaluation),
        used_by=work(evaluation),
    )
    try:
        job = job_for(version, inputs, errand, budget=budget, draw=draw, again=again, stop=stop)
    except EndpointProblem as problem:
        raise Halted(problem.message) from problem
    if job is not None:
        evaluation.jobs.add(job)
        if job.is_over:
            raise ended(job, str(version))
    return job


def ended(job: WeightsJob, of: str) -> Halted:
    """The error for a job that has ended before it was done."""
    why = f": {job.problem.removesuffix('.')}" if job.problem else ""
    return Halted(f"The job of {of} has {job.state}{why}.")


def work(evaluation: Evaluation) -> MeteredWork:
    """The evaluation in the ledger."""
    return MeteredWork(evaluation.workspace_id, WorkKind.EVALUATION, evaluation.pk, evaluation.created_by_id)


def turn(evaluation: Evaluation) -> Turn:
    """The turn of its jobs: a job that begins after others takes the place at which the evaluation was asked for, not the last."""
    return Turn(evaluation.asked_at, evaluation.priority)


def spent_by_jobs(evaluation: Evaluation) -> tuple[int, Decimal]:
    """Tokens and money of judges with local weights."""
    found = [spent_by_job(job) for job in evaluation.jobs.filter(kind=WeightsJob.Kind.JUDGE)]
    return sum(tokens for tokens, _ in found), sum((money for _, money in found), Decimal(0))


def _calls_each(version: JudgeVersion, inputs: Sequence[JudgeInput]) -> int:
    """The number of calls for each input, judged by the first usable one."""
    spec = version.resolved
    for given in inputs[:20]:
        try:
            return len(expand(spec, version.digest, given))
        except InputProblem:
            continue
    return 1


def _words(counts: CallCounts) -> str:
    parts = [(counts.stored, "known already"), (counts.done, "answered"), (counts.missing, "unreadable")]
    parts.append((counts.failed, "failed"))
    told = [f"{number:,} {words}" for number, words in parts if number]
    cost = [f"cost {counts.cost:.4f}"] if counts.cost is not None else []
    return ", ".join([*told, *cost])


def budget_left(config: dict[str, Any] | None, spent_tokens: int, spent_money: Decimal) -> Budget | None:
    """The rest of the config's budget; None if there is none."""
    if not config:
        return None
    tokens = config.get("tokens")
    money = config.get("money")
    return Budget(
        tokens=None if tokens is None else max(0, tokens - spent_tokens),
        money=None if money is None else max(Decimal(0), Decimal(str(money)) - spent_money),
    )


def spending_of(ids: Sequence[int]) -> VerdictSpending:
    """The time and cost of stored verdicts."""
    latencies: list[float] = []
    tokens: list[int] = []
    costs: list[Decimal] = []
    for at in range(0, len(ids), IDS):
        rows = Verdict.objects.filter(pk__in=ids[at : at + IDS])
        for latency, prompt, completion, cost in rows.values_list(
            "latency_ms", "prompt_tokens", "completion_tokens", "cost"
        ):
            latencies += [latency / 1000] if latency is not None else []
            tokens += [prompt + completion] if prompt is not None and completion is not None else []
            costs += [cost] if cost is not None else []
    return VerdictSpending(latencies, sum(tokens) if tokens else None, float(sum(costs)) if costs else None)


def verdicts(workspace_id: int, ids: Sequence[int]) -> list[Verdict]:
    """Stored verdicts of this workspace, in the order of `ids`."""
    rows = Verdict.objects.filter(version__judge__workspace_id=workspace_id, pk__in=list(ids)).defer("request")
    found = {row.pk: row for row in rows.select_related("version__judge")}
    return [found[each] for each in ids if each in found]
