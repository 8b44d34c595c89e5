"""Answers of models for evaluations: models of the registry answer through jobs of the cluster, models behind endpoints at once.

Nothing is asked twice: a job is identified by its questions, an endpoint's answer by its prompt and sampling.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

from django.db import transaction
from django.db.models import QuerySet

from trainer.contracts import Example
from trainer.judges.answers import Reading
from trainer.judges.budget import Budget
from trainer.judges.calls import Call
from trainer.judges.chat import ChatReply, ChatRequest, EndpointProblem
from trainer.judges.engine import Outcome
from trainer.judges.sampling import Sampling
from trainer.judges.templates import canonical
from webapp.accounts.models import User
from webapp.core.auditing import audit
from webapp.core.background.priorities import Priority
from webapp.core.problems import Problem
from webapp.inference import queries as registry
from webapp.inference.endpoints import queries as endpoint_queries
from webapp.inference.endpoints.services import mark_used, note_troubles
from webapp.inference.endpoints.targets import endpoint_target
from webapp.inference.folders.tokenizers import unloadable
from webapp.inference.models import Endpoint, RegisteredModel
from webapp.judging.asking.calls import ask
from webapp.judging.verdicts.store import outcome_use, use
from webapp.usage import counters
from webapp.usage.works import MeteredWork
from webapp.weights import services as weights
from webapp.weights.line import is_waiting
from webapp.weights.models import WeightsJob

from ..models import EndpointAnswer, Evaluation
from ..recipes.base import ClusterWaiting, Writer, WrittenText
from .judges import Halted, ended, turn
from .registry import SOURCES, Options, RowSource

MAX_CHOICES = 200
LOOKED_UP = 400  # keys at a time
MOST_INTEGER = 2**31 - 1
WAITING = (Evaluation.State.QUEUED, Evaluation.State.RUNNING)
JOB_OVER = (WeightsJob.State.STOPPED, WeightsJob.State.FAILED)


def _models(workspace_id: int, head: str) -> Options:
    rows = registry.usable(workspace_id, head).select_related("base")[:MAX_CHOICES]
    return [(str(row.pk), f"{row.name}{f' · from {row.base.name}' if row.base else ''}") for row in rows]


def _model_problem(workspace_id: int, head: str, model_id: int) -> str:
    row = RegisteredModel.objects.filter(workspace_id=workspace_id, pk=model_id).select_related("base").first()
    if row is None:
        return "this workspace has no such model"
    if row.head != head:
        scores = "scores texts and cannot write texts"
        return f"{row.name} {scores if head == RegisteredModel.Head.LM else 'writes text; choose a reward model'}"
    return unloadable(row)


def _endpoints(workspace_id: int, kind: str) -> Options:
    rows = endpoint_queries.endpoints(workspace_id).filter(kind=kind).order_by("name")[:MAX_CHOICES]
    return [(str(row.pk), f"{row.name} · {row.model}") for row in rows]


def _endpoint_problem(workspace_id: int, kind: str, endpoint_id: int) -> str:
    row = Endpoint.objects.filter(workspace_id=workspace_id, pk=endpoint_id).first()
    if row is None:
        return "this workspace has no such endpoint"
    if row.kind != kind:
        return f"{row.name} is not a chat API, but of kind {row.kind}"
    return f"{row.name} is archived; restore it, or choose another" if row.archived_at else ""


SOURCES["models"] = RowSource(_models, _model_problem)
SOURCES["endpoints"] = RowSource(_endpoints, _endpoint_problem)


def name(workspace_id: int, writer: Writer) -> str:
    if writer.endpoint is not None:
        return Endpoint.objects.get(workspace_id=workspace_id, pk=writer.endpoint).name
    return RegisteredModel.objects.get(workspace_id=workspace_id, pk=writer.model or 0).name


def jobs(evaluation: Evaluation, models: Sequence[int], config: Any, again: bool, most: int = 0) -> list[WeightsJob]:
    """The job of each model, started if there is none: one that writes answers the prompts, one that scores reads the
    responses of the first `most`. `again`: a job that stopped or failed continues.

    Raises Halted if one has ended otherwise than finished.
    """
    kind = WeightsJob.Kind.SCORE if most else WeightsJob.Kind.GENERATE
    found = {job.model_id: job for job in evaluation.jobs.filter(kind=kind).select_related("model")}
    for model in models:
        if model not in found or (again and found[model].state in JOB_OVER):
            found[model] = _start(evaluation, model, config, most)
    for job in found.values():
        if job.state in JOB_OVER:
            raise ended(job, str(job.model))
    return [found[model] for model in models]


def _start(evaluation: Evaluation, model_id: int, config: Any, most: int) -> WeightsJob:
    rows = RegisteredModel.objects.filter(workspace_id=evaluation.workspace_id, pk=model_id)
    model, version = rows.select_related("base").first(), evaluation.dataset_version
    if model is None or version is None:
        raise Halted("A model that the config names, or the dataset, does not exist any more.")
    try:
        with transaction.atomic():
            given = evaluation.workspace, audit.asked_by(evaluation), model, version
            if most:
                job = weights.score(*given, {"split": "", "max_prompts": most}, turn(evaluation))
            else:
                job = weights.generate(*given, _generation(config), turn(evaluation))
    except Problem as problem:
        raise Halted(problem.sentence) from problem
    evaluation.jobs.add(job)
    return job


def _generation(config: Any) -> dict[str, Any]:
    names = ("samples", "max_new_tokens", "temperature", "top_p", "stop", "seed", "split", "max_prompts")
    how = {name: getattr(config, name).model_dump(mode="json") for name in ("sampler", "resources")}
    return {each: getattr(config, each) for each in names} | how


def wait_for(found: Iterable[WeightsJob], tell: Callable[[str, int, int], None]) -> None:
    """Tells how far the jobs are, also when all of them are over. Raises ClusterWaiting while one of them is under way."""
    listed = list(found)
    if not listed:
        return
    over = all(job.is_over for job in listed)
    phase = next((job.phase for job in listed if job.phase and (over or job.state == WeightsJob.State.RUNNING)), "")
    waits = "" if over else "waiting for the cluster"
    told = f"{phase} on the cluster" if phase else waits
    tell(told, sum(job.done for job in listed), sum(job.total for job in listed))
    if not over:
        raise ClusterWaiting


def _under_way(evaluation: Evaluation) -> QuerySet[WeightsJob]:
    """The jobs of the evaluation that are not over, in the order in which the line locks jobs that a workspace asked for at the same
    time."""
    return evaluation.jobs.exclude(state__in=(*JOB_OVER, WeightsJob.State.FINISHED)).order_by("pk")


def in_line(evaluation: Evaluation) -> str | None:
    """The reason why it waits, if all its remaining jobs wait in the line; None if one is under way, or none is left."""
    left = list(_under_way(evaluation))
    if not left or not all(map(is_waiting, left)):
        return None
    return next((job.problem for job in left if job.problem), "Waits for its turn in the line")


def prioritise(evaluation: Evaluation, by: User | None) -> None:
    """Gives its jobs its present priority, each separately, because the line may have locked another of them. A job for which other
    evaluations wait too has the highest of their priorities."""
    waiting = Evaluation.objects.filter(state__in=WAITING).exclude(pk=evaluation.pk)
    for job in _under_way(evaluation):
        others = waiting.filter(jobs=job).values_list("priority", flat=True)
        weights.prioritise(job, by, Priority(max([evaluation.priority, *others])))


def of_job(job: WeightsJob) -> list[WrittenText]:
    """The answers in the order of the prompts, as many for each as were requested."""
    found: list[WrittenText] = []
    for content in job.results.order_by("place").values_list("content", flat=True).iterator(chunk_size=500):
        if "problem" in content:
            found.append(WrittenText(content["key"], 0, "", problem=content["problem"]))
        for sample, one in enumerate(content.get("responses", [])):
            found.append(WrittenText(content["key"], sample, one["text"], one["finish_reason"], one["tokens"]))
    return found


def scores(job: WeightsJob) -> dict[tuple[str, str], float | None]:
    found: dict[tuple[str, str], float | None] = {}
    for content in job.results.order_by("place").values_list("content", flat=True).iterator(chunk_size=500):
        given = {**dict.fromkeys(content["problems"]), **content["scores"]}
        found |= {(content["key"], response): score for response, score in given.items()}
    return found


def stop_jobs(evaluation: Evaluation) -> None:
    """Stops the jobs for which no other evaluation waits. Their results are kept."""
    waiting = Evaluation.objects.filter(state__in=WAITING)
    for job in _under_way(evaluation):
        if not waiting.exclude(pk=evaluation.pk).filter(jobs=job).exists():
            weights.stop(job, audit.asked_by(evaluation))


def of_endpoint(
    endpoint: Endpoint,
    examples: Sequence[Example],
    config: Any,
    *,
    budget: Budget | None,
    stop: Callable[[], bool],
    tell: Callable[[int, int], None],
    used_by: MeteredWork,
) -> list[WrittenText]:
    """Asks the prompts without an answer and returns every answer, prompt by prompt. Limits, retries and keys are the endpoint's.

    Raises Halted if calls are left to make.
    """
    sampling = Sampling(temperature=config.temperature, top_p=config.top_p, max_tokens=config.max_new_tokens)
    calls = [call for example in examples for call in _calls(example, sampling, config.samples, config.seed)]
    mark_used(endpoint)

    known = _known(endpoint, [call.key for call in calls])
    missing = [call for call in calls if call.key not in known]
    done = len(calls) - len(missing)

    def keep(outcomes: list[Outcome]) -> None:
        nonlocal done
        with transaction.atomic():
            _store(endpoint, outcomes)
            note_troubles(endpoint, [outcome.trouble for outcome in outcomes if outcome.trouble])
            counters.count(used_by, endpoint.pk, use(outcomes))
        done += len(outcomes)
        tell(done, len(calls))

    if missing and (halted := _called(endpoint, missing, keep, stop, budget)):
        raise Halted("" if halted == "stopped" else halted)
    answers = {row.key: row for row in _answers(endpoint, [call.key for call in calls])}
    return [_written(call, answers.get(call.key)) for call in calls]


def _called(
    endpoint: Endpoint,
    calls: list[Call],
    keep: Callable[[list[Outcome]], None],
    stop: Callable[[], bool],
    budget: Budget | None,
) -> str:
    """Makes the calls. Returns why they ended early; empty if they did not."""
    try:
        target = endpoint_target(endpoint)
    except (EndpointProblem, Problem) as problem:
        raise Halted(problem.message) from problem
    return ask(endpoint, target, calls, _read, keep, stop, budget).halted


def _read(call: Call, reply: ChatReply) -> Reading:
    return Reading({"finish_reason": reply.finish_reason or "stop"})


def _calls(example: Example, sampling: Sampling, samples: int, seed: int) -> Iterator[Call]:
    messages = tuple({"role": message.role, "content": message.content} for message in example.prompt)
    for sample in range(samples):
        request = ChatRequest(messages, sampling, seed=(seed + sample) % MOST_INTEGER)
        asked = {"messages": messages, "sampling": sampling.model_dump(mode="json"), "seed": seed, "sample": sample}
        record = canonical(asked)
        key = hashlib.sha256(record.encode()).hexdigest()
        yield Call(key, request, {"example": example.key, "sample": sample}, record)


def _known(endpoint: Endpoint, keys: list[str]) -> set[str]:
    """The keys that need no call. Failed calls need another one."""
    return {row.key for row in _answers(endpoint, keys) if row.state == EndpointAnswer.State.DONE}


def _answers(endpoint: Endpoint, keys: list[str]) -> Iterator[EndpointAnswer]:
    remaining = iter(keys)
    while batch := list(islice(remaining, LOOKED_UP)):
        yield from EndpointAnswer.objects.filter(endpoint=endpoint, key__in=batch)


def _written(call: Call, row: EndpointAnswer | None) -> WrittenText:
    example, sample = call.subject["example"], call.subject["sample"]
    if row is None or row.state == EndpointAnswer.State.FAILED:
        return WrittenText(example, sample, "", problem=row.problem if row else "it was not asked")
    return WrittenText(example, sample, row.text, row.finish_reason, row.completion_tokens)


def _store(endpoint: Endpoint, outcomes: list[Outcome]) -> None:
    """Stores one row per key; the first one counts, but a failed call is replaced by an answer."""
    told = {outcome.call.key: _told(outcome) for outcome in outcomes}
    rows = [EndpointAnswer(endpoint=endpoint, key=key, **told[key]) for key in sorted(told)]
    EndpointAnswer.objects.bulk_create(rows, ignore_conflicts=True)
    done = [key for key, row in told.items() if row["state"] == EndpointAnswer.State.DONE]
    failed = EndpointAnswer.objects.filter(endpoint=endpoint, key__in=done, state=EndpointAnswer.State.FAILED)
    for key in failed.order_by("key").values_list("key", flat=True):
        failed.filter(key=key).update(**told[key])


def _told(outcome: Outcome) -> dict[str, Any]:
    done = outcome.state == "done"
    return {
        "state": EndpointAnswer.State.DONE if done else EndpointAnswer.State.FAILED,
        "text": outcome.raw,
        "finish_reason": (outcome.parsed or {}).get("finish_reason", "")[:20],
        "problem": outcome.problem,
        **outcome_use(outcome),
    }
