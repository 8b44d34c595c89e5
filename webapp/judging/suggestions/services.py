"""A judge's verdicts become suggestions for people. A job asks the judge and keeps them beside the tasks."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from django.db.models import Q, QuerySet

from trainer.contracts import Example
from trainer.judges.budget import Budget
from trainer.judges.chat import EndpointProblem
from trainer.judges.combine import PairVerdict, criterion_verdicts, pair_verdicts
from trainer.judges.inputs import JudgeInput
from trainer.verifiers import VerifierError, verify
from webapp.accounts.models import Membership
from webapp.annotation.jobs import runner
from webapp.annotation.models import Job, Project, Task
from webapp.annotation.tasks.order import SUGGESTED
from webapp.annotation.work.suggestions import keep
from webapp.core.auditing import audit
from webapp.core.background.jobs import Later
from webapp.core.problems import Conflict, Invalid
from webapp.usage.models import WorkKind
from webapp.usage.works import MeteredWork
from webapp.weights import services as weights

from ..asking.calls import CallCounts, judge_calls
from ..asking.jobs import Errand, job_for, needs_job, spent_by
from ..judges.services import usable
from ..models import JudgeVersion
from ..verdicts import queries as verdict_queries
from ..verdicts.queries import CallAnswer

JUDGES = {"pairwise": ("pairwise", "pairwise_rubric"), "grading": ("criterion", "checklist")}
AT_A_TIME = 2_000  # tasks: a judge with local weights is loaded once for this many
Tell = Callable[[int, int], None]  # calls done, of how many
KEPT_AT_A_TIME = 500
MOST_TOKENS = 1_000_000_000


def ask_judge(membership: Membership, project: Project, version: JudgeVersion, tokens: int | None = None) -> Job:
    """Queues the job that asks `version` about every task, `tokens` at most. Its verdicts replace another judge's.

    Raises Invalid at `judge` or `tokens`, Conflict while a judge is being asked or if its endpoint is archived.
    """
    if project.kind not in SUGGESTED:
        raise Conflict("Judges cannot suggest answers to tasks of this kind.", "no_suggestions")
    if version.judge.kind not in JUDGES[project.kind]:
        needed = " or ".join(JUDGES[project.kind])
        raise Invalid(
            "Choose another judge.", {"judge": f"is of kind {version.judge.kind}; this project needs {needed}"}
        )
    if tokens is not None and not 1 <= tokens <= MOST_TOKENS:
        raise Invalid("The limit is too small or too large.", {"tokens": f"must be between 1 and {MOST_TOKENS:,}"})
    usable(version.endpoint, membership)
    job = runner.start(project, Job.Kind.SUGGEST, membership, version=version.pk, tokens=tokens, spent=0)
    if job is None:
        raise Conflict("A judge is already being asked about this project.", "suggesting")
    audit.record(membership, membership.user, "project.judge_asked", project, judge=str(version), version=version.pk)
    return job


@runner.does(Job.Kind.SUGGEST)
def suggest(job: Job, report: runner.Report) -> None:
    """Does the job of `ask_judge`. It asks for no verdict that is stored and passes over tasks that have this judge's view, so the
    job of a lost worker continues where it was."""
    version = JudgeVersion.objects.select_related("judge", "endpoint").filter(pk=job.params["version"]).first()
    if version is None or version.judge.workspace_id != job.project.workspace_id:
        raise Invalid("The judge was deleted in the meantime.", {})
    by_job = needs_job(version)
    ids = _waiting(job, version, by_job)
    total = Task.objects.filter(project=job.project).count()
    for start in range(0, len(ids), AT_A_TIME):
        together = ids[start : start + AT_A_TIME]
        inputs = [_input(task) for task in _tasks(together)]
        before = total - len(ids) + start

        def tell(done: int, of: int, before: int = before, size: int = len(inputs)) -> None:
            report.at(before + (done * size // of if of else 0), total)

        halted = (_ask_by_job if by_job else _ask)(job, version, inputs, tell)
        _keep(job, version, inputs)
        if halted:
            raise Conflict(
                f"Stopped early: {halted}. The verdicts so far are kept. Ask the judge again to continue.", "halted"
            )
        if by_job:
            job.params["passed"] = together[-1]
            runner.save(job, "params")
    report.at(total, total)


def _waiting(job: Job, version: JudgeVersion, by_job: bool) -> list[int]:
    """Tasks without this judge's view, in the order in which people get them. A job of the cluster is started several times, so it takes
    them in an order that its own suggestions do not change."""
    rows = Task.objects.filter(Q(suggestion__isnull=True) | ~Q(suggestion__version=version.pk), project=job.project)
    passed = job.params.get("passed", 0)
    rows = rows.filter(id__gt=passed).order_by("id") if by_job else rows.order_by("rank", "id")
    return list(rows.values_list("id", flat=True))


def _ask_by_job(job: Job, version: JudgeVersion, inputs: Sequence[JudgeInput], tell: Tell) -> str:
    """Does the same as `_ask` with a judge with local weights. Raises Later while the cluster works."""
    project, stop = job.project, runner.stopping(job)
    user = job.membership.user if job.membership else None
    errand = Errand(
        project.workspace,
        user,
        of=f"project job {job.pk} behind {job.params.get('passed', 0)}",
        title=f"{version}, suggestions for {project}",
        data=project.version,
        used_by=_work(job),
    )
    limit = job.params.get("tokens")
    budget = Budget(tokens=max(0, limit - job.params["spent"])) if limit else None
    try:
        asking = job_for(version, inputs, errand, budget=budget, stop=stop)
    except EndpointProblem as problem:
        return problem.message
    if asking is None:
        job.params["spent"] += spent_by(version, errand)[0]
        return ""
    if stop():
        weights.stop(asking, user)
        return "stopped"
    if asking.is_over:
        return asking.problem or f"its job has {asking.state}"
    tell(asking.done, asking.total)
    raise Later


def _ask(job: Job, version: JudgeVersion, inputs: Sequence[JudgeInput], tell: Tell) -> str:
    """Asks the judge. Returns why it ended early, or ""."""
    stop = runner.stopping(job)
    if stop():
        return "stopped"
    limit = job.params.get("tokens")
    budget = Budget(tokens=limit - job.params["spent"]) if limit else None

    def progress(counts: CallCounts) -> None:
        tell(counts.stored + counts.done + counts.missing + counts.failed, counts.total)

    try:
        counts = judge_calls(version, inputs, budget=budget, stop=stop, progress=progress, used_by=_work(job))
        return counts.halted
    except EndpointProblem as problem:
        return problem.message
    finally:
        if budget:
            job.params["spent"] += budget.spent_tokens
            runner.save(job, "params")


def _work(job: Job) -> MeteredWork:
    """The project, and who has asked for the suggestions."""
    person = job.membership.user_id if job.membership else None
    return MeteredWork(job.project.workspace_id, WorkKind.PROJECT, job.project_id, person)


def _tasks(ids: Sequence[int]) -> QuerySet[Task]:
    return Task.objects.filter(pk__in=ids).select_related("example").order_by("rank", "id")


def _input(task: Task) -> JudgeInput:
    """The judge's view of a task: its responses in the order of its subject, and the rubric of its example."""
    record: Example = task.example.record
    texts = {response.id: response.text for response in record.responses}
    sides = [task.subject[name] for name in ("a", "b", "response") if name in task.subject]
    return JudgeInput(
        example=record.key,
        conversation=record.prompt,
        responses={side: texts[side] for side in sides},
        criteria=record.rubric.criteria if record.rubric else (),
        reference=record.reference or "",
        subject={"task": task.pk},
    )


def _keep(job: Job, version: JudgeVersion, inputs: Sequence[JudgeInput]) -> None:
    """Stores what the judge says. A task without a readable verdict gets no suggestion: missing stays missing."""
    read = pair_suggestion if job.project.kind == "pairwise" else grades_suggestion
    kept, answered = job.result.get("tasks", 0), verdict_queries.answers(version, inputs)
    while some := list(islice(answered, KEPT_AT_A_TIME)):
        found = {int(given.subject["task"]): read(given, said) for given, said in some}
        kept += keep(job.project, str(version), version.pk, found)
        job.result = {"tasks": kept, "judge": str(version)}
        runner.save(job, "result")


def pair_suggestion(given: JudgeInput, said: Sequence[CallAnswer]) -> dict[str, Any] | None:
    """The judge's verdict over both orders and all votes as an answer to a pairwise task; None if it has none."""
    for verdict in pair_verdicts(said).values():
        if (strength := strength_of(verdict)) is not None:
            return {"verdict": "compared", "strength": strength}
    return None


def strength_of(verdict: PairVerdict) -> int | None:
    """-3 .. 3: the side of the verdict, with the mean strength of its votes. Judges say *better* (2) or *much better* (3); if
    some of their votes differ, it becomes *slightly* (1)."""
    if verdict.verdict is None or verdict.strength is None:
        return None
    mean = abs(verdict.strength)
    return verdict.verdict * (3 if mean >= 1.5 else 2 if mean >= 1 else 1)


def grades_suggestion(given: JudgeInput, said: Sequence[CallAnswer]) -> dict[str, Any] | None:
    """A grade for each criterion that has a verdict of the judge. A verifier decides the criteria that have one."""
    met = dict(_verified(given))
    for verdicts in criterion_verdicts(said).values():
        met |= {verdict.criterion_id: verdict.met for verdict in verdicts if verdict.met is not None}
    listed = [criterion.id for criterion in given.criteria if criterion.id in met]
    grades: list[Mapping[str, Any]] = [{"criterion": i, "verdict": "met" if met[i] else "not_met"} for i in listed]
    return {"grades": grades} if grades else None


def _verified(given: JudgeInput) -> Iterator[tuple[str, bool]]:
    [text] = given.responses.values()
    for criterion in given.criteria:
        try:
            met = verify(criterion.verifier, text).met if criterion.verifier else None
        except VerifierError:  # a spec from before its verifier changed: no verdict
            continue
        if met is not None:
            yield criterion.id, met
