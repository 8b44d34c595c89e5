"""The one path from inputs to verdicts: it looks up what is stored, calls what is missing and stores outcomes as they come."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor
from dataclasses import dataclass, field, replace
from decimal import Decimal
from itertools import islice

from django.db import transaction

from trainer.contracts import ModelSource
from trainer.judges.answers import Reading
from trainer.judges.budget import Budget
from trainer.judges.calls import Call, expand, read
from trainer.judges.chat import ChatReply, EndpointProblem, Target
from trainer.judges.client import ChatClient
from trainer.judges.engine import Counts, Outcome, State, run
from trainer.judges.inputs import InputProblem, JudgeInput
from trainer.judges.local import LocalClient, LocalTarget, wording
from trainer.judges.loop_thread import run_beside
from trainer.judges.spec import BaseSpec
from webapp.core.problems import Problem
from webapp.inference.endpoints.queries import recorded_texts
from webapp.inference.endpoints.services import note_troubles
from webapp.inference.endpoints.sharing import EndpointShare
from webapp.inference.endpoints.targets import endpoint_target, local_target
from webapp.inference.folders.stored import local_source
from webapp.inference.models import Endpoint
from webapp.usage import counters
from webapp.usage.models import WorkKind
from webapp.usage.works import MeteredWork

from ..judges.services import begin_use
from ..models import JudgeVersion, Verdict
from ..verdicts import queries as verdict_queries
from ..verdicts.store import store, use

CHUNK = 400  # calls looked up at a time
NOT_RECORDED = "not recorded: the endpoint has no output for this key"
CallTarget = Target | LocalTarget
Keep = Callable[[list[Outcome]], None]


@dataclass
class CallCounts:
    """The outcome of the calls of a judge. `total` = `stored` (there already) + `done` + `missing` + `failed` + not called.

    `unusable` counts inputs that lack what the judge needs, by reason. `halted` says why the run ended early, or "".
    `cost` is None if nothing is known to have a price.
    """

    total: int = 0
    stored: int = 0
    done: int = 0
    missing: int = 0
    failed: int = 0
    unusable: Counter[str] = field(default_factory=Counter)
    halted: str = ""
    prompt_tokens: int = 0
    cached_tokens: int = 0
    completion_tokens: int = 0
    cost: Decimal | None = None

    def add(self, outcomes: Iterable[Outcome]) -> None:
        for outcome in outcomes:
            setattr(self, outcome.state, getattr(self, outcome.state) + 1)
            if outcome.cost is not None:
                self.cost = (self.cost or Decimal(0)) + outcome.cost
            if reply := outcome.reply:
                self.prompt_tokens += reply.prompt_tokens or 0
                self.cached_tokens += reply.cached_tokens or 0
                self.completion_tokens += reply.completion_tokens or 0

    def merge(self, other: "CallCounts") -> None:
        """Adds the counts of other calls of the same judge; a question that was asked in both counts twice."""
        for name in ("total", "stored", "done", "missing", "failed"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.unusable += other.unusable
        self.halted = self.halted or other.halted
        for name in ("prompt_tokens", "cached_tokens", "completion_tokens"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        if other.cost is not None:
            self.cost = (self.cost or Decimal(0)) + other.cost


def judge_calls(
    version: JudgeVersion,
    inputs: Iterable[JudgeInput],
    *,
    budget: Budget | None = None,
    stop: Callable[[], bool] = lambda: False,
    progress: Callable[[CallCounts], None] = lambda counts: None,
    draw: int = 0,
    used_by: MeteredWork | None = None,
) -> CallCounts:
    """Asks `version` about every input and stores a verdict per call; for workers, in their own thread.

    Stored calls are not made again, except failed ones. So a worker that was stopped or killed resumes by calling this again, and finished
    calls cost nothing. Another `draw` asks for new samples. `used_by` is what the calls cost
    something for; without it, that is the judge itself. `stop` is asked several times a second, `progress` gets every batch; both may
    use the database, as may `inputs`.

    Local weights are asked in a process that starts and ends with this call. Raises Conflict for an endpoint that is archived,
    EndpointProblem if its key cannot be read or that process cannot be started.
    """
    endpoint = version.endpoint
    spec, counts = version.resolved, CallCounts()
    target = target_of(endpoint, spec)
    begin_use(version)
    source = Verdict.Source.RECORDED if target is None else Verdict.Source.CALLED

    def keep(outcomes: list[Outcome]) -> None:
        with transaction.atomic():
            store(version, outcomes, source)
            note_troubles(endpoint, [outcome.trouble for outcome in outcomes if outcome.trouble])
            counters.count(used_by or of_judge(version), endpoint.pk, use(outcomes))
        counts.add(outcomes)
        progress(counts)

    calls = missing_calls(version, spec, inputs, counts, draw)
    if target is None:
        counts.halted = replay(endpoint, spec, calls, keep, stop)
    else:
        counts.halted = call(endpoint, target, spec, calls, keep, stop, budget).halted
    progress(counts)
    return counts


def of_judge(version: JudgeVersion) -> MeteredWork:
    """The judge itself, which is what calls count for if they are for nothing else."""
    return MeteredWork(version.endpoint.workspace_id, WorkKind.JUDGE, version.judge_id, version.created_by_id)


def target_of(endpoint: Endpoint, spec: BaseSpec) -> CallTarget | None:
    """The target of the calls; None for recorded outputs, which are looked up. Raises Conflict and EndpointProblem.

    With local weights a criterion judge needs one forward pass per criterion: the probability of yes is its answer.
    """
    if endpoint.kind == Endpoint.Kind.RECORDED:
        return None
    if endpoint.kind == Endpoint.Kind.LOCAL:
        return local_target(endpoint, yes_no=spec.kind == "criterion", wording=wording(spec))
    return endpoint_target(endpoint)


def missing_calls(
    version: JudgeVersion, spec: BaseSpec, inputs: Iterable[JudgeInput], counts: CallCounts, draw: int
) -> Iterator[Call]:
    """The calls that have no verdict yet, each key once. They are looked up in chunks as they are needed."""
    calls = _distinct(expanded(spec, version.digest, inputs, counts.unusable, draw))
    while chunk := list(islice(calls, CHUNK)):
        stored = verdict_queries.stored_keys(version, [each.key for each in chunk])
        counts.total += len(chunk)
        counts.stored += len(stored)
        yield from (each for each in chunk if each.key not in stored)


def unasked(
    version: JudgeVersion, inputs: Iterable[JudgeInput], draw: int = 0, *, failed: bool = True
) -> Iterator[Call]:
    """The calls without a verdict, each key once; calls that begin alike stand together. `failed` adds those that failed."""
    calls = _distinct(expanded(version.resolved, version.digest, inputs, Counter(), draw))
    while chunk := list(islice(calls, CHUNK)):
        known = verdict_queries.stored_keys(version, [each.key for each in chunk], failed=not failed)
        yield from sorted((each for each in chunk if each.key not in known), key=lambda each: each.record)


def _distinct(calls: Iterable[Call]) -> Iterator[Call]:
    seen: set[bytes] = set()
    for each in calls:
        key = bytes.fromhex(each.key)  # half the memory, of perhaps a million keys
        if key not in seen:
            seen.add(key)
            yield each


def expanded(
    spec: BaseSpec, digest: str, inputs: Iterable[JudgeInput], unusable: Counter[str], draw: int = 0
) -> Iterator[Call]:
    """All calls for all inputs; `unusable` counts inputs that lack something by their reason."""
    for given in inputs:
        try:
            yield from expand(spec, digest, given, draw)
        except InputProblem as problem:
            unusable[str(problem)] += 1


def call(
    endpoint: Endpoint,
    target: CallTarget,
    spec: BaseSpec,
    calls: Iterable[Call],
    keep: Keep,
    stop: Callable[[], bool],
    budget: Budget | None,
) -> Counts:
    """Makes the calls of a judge; see `ask`. Local weights that lie only in the artifact store are fetched first."""
    target = _here(endpoint, target)

    def parsed(each: Call, reply: ChatReply) -> Reading:
        return read(spec, each.subject, reply.text, complete=reply.finish_reason != "length")

    return ask(endpoint, target, calls, parsed, keep, stop, budget, spec.retries)


def _here(endpoint: Endpoint, target: CallTarget) -> CallTarget:
    """The target with its weights on this server. Raises EndpointProblem."""
    if not isinstance(target, LocalTarget):
        return target
    try:
        found = local_source(ModelSource(path=target.model, adapters=tuple(target.adapters)), endpoint.workspace_id)
    except (Problem, OSError) as error:
        raise EndpointProblem("down", str(error)) from error
    return replace(target, model=found.path, adapters=found.adapters)


def ask(
    endpoint: Endpoint,
    target: CallTarget,
    calls: Iterable[Call],
    reading: Callable[[Call, ChatReply], Reading],
    keep: Keep,
    stop: Callable[[], bool],
    budget: Budget | None,
    retries: int = 0,
) -> Counts:
    """Makes the calls. `calls`, `keep` and `stop` run in this thread, the event loop in another.

    The endpoint's places and rate are shared with all other code that asks it at this moment. `retries` is how often a reply that `reading`
    cannot read is asked for again.
    """

    async def main(here: Executor) -> Counts:
        async with _client(target, budget, EndpointShare(endpoint.pk, here)) as client:
            return await run(
                calls,
                client,
                reading,
                on_outcome=keep,
                stop=stop,
                concurrency=target.concurrency,
                retries=retries,
                prices=target.prices,
                executor=here,
            )

    return run_beside(main)


def _client(target: CallTarget, budget: Budget | None, share: EndpointShare) -> LocalClient | ChatClient:
    """Local weights are loaded by a process of these calls alone; nothing of them is shared."""
    return LocalClient(target, budget) if isinstance(target, LocalTarget) else ChatClient(target, budget, share)


def replay(endpoint: Endpoint, spec: BaseSpec, calls: Iterable[Call], keep: Keep, stop: Callable[[], bool]) -> str:
    """Takes the answers from the endpoint's recorded outputs. Returns why it ended early, or ""."""
    remaining = iter(calls)
    while chunk := list(islice(remaining, CHUNK)):
        if stop():
            return "stopped"
        texts = recorded_texts(endpoint.pk, [each.key for each in chunk])
        keep([_replayed(spec, each, texts.get(each.key)) for each in chunk])
    return ""


def _replayed(spec: BaseSpec, each: Call, text: str | None) -> Outcome:
    if text is None:
        return Outcome(each, "failed", None, "", NOT_RECORDED, None, None)
    reading = read(spec, each.subject, text)
    state: State = "missing" if reading.parsed is None else "done"
    return Outcome(each, state, reading.parsed, text, reading.problem, None, None)
