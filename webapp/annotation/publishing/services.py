"""Publishes answers as a version of the dataset, for training, exploration and export like any other version.

The published version depends only on the base, the answers and the settings. The base is the annotated version or a named one, never just
the newest. So the same request makes the same version, even if something was published in between. Every answer and every label of these
examples is counted: in the version, replaced or dropped, with the reason.
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, field
from typing import Any, Literal

from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet, Sum
from pydantic import ValidationError

from trainer.contracts import Example
from webapp.accounts.models import Membership
from webapp.annotation import kinds
from webapp.annotation.agreement.raters import Rater, raters
from webapp.annotation.models import Answer, Assignment, Job, Project, Publication, PublishedCase, Resolution, Task
from webapp.annotation.publishing import published_example
from webapp.annotation.publishing.answers import says
from webapp.annotation.publishing.published_example import SAYS, GivenJudgement, LabelFate
from webapp.core.auditing import audit
from webapp.core.problems import Conflict, Invalid
from webapp.datasets.models import DatasetVersion
from webapp.datasets.models import Example as Row
from webapp.datasets.versions import services as datasets
from webapp.webhooks.services import announce

from ..agreement.refresh import rests_on, review_new
from ..jobs import runner

AT_ONCE = 500  # tasks that a request publishes itself; for more there is a job
BATCH = 200  # examples read at a time
Fate, Reason = PublishedCase.Fate, PublishedCase.Reason
NOTHING = {
    "answers": "No answer passes these filters, so there is nothing to publish.",
    "resolutions": "No task has a decision that passes these filters, so there is nothing to publish. Settle tasks under "
    "Review, or publish each answer by itself.",
}


@dataclass(frozen=True)
class Choice:
    """`what`: every answer as one person's, or only the resolved answer of each task. `sources`: of resolved answers. `minimum`: least
    agreement of a task. `replace`: earlier labels of the annotated pairs are dropped. `rest`: the version keeps examples that nobody
    annotated. `base`: the number of the base version; None: the annotated one."""

    what: Literal["answers", "resolutions"] = "resolutions"
    minimum: float = 0.0
    sources: tuple[str, ...] = ("unanimous", "consolidated", "majority")
    replace: bool = True
    rest: bool = True
    base: int | None = None

    def __post_init__(self) -> None:
        if self.what not in ("answers", "resolutions"):
            raise Invalid("The request does not say what to publish.", {"what": "must be answers or resolutions"})
        if not 0 <= self.minimum <= 1:
            raise Invalid("The least agreement is too small or too large.", {"minimum": "must be between 0 and 1"})
        if unknown := set(self.sources) - set(Resolution.Source.values):
            raise Invalid("A source is not known.", {"sources": f"unknown: {', '.join(sorted(unknown))}"})
        if self.what == "resolutions" and not self.sources:
            raise Invalid("No resolved judgement is chosen.", {"sources": "Choose at least one kind to include."})

    def told(self) -> dict[str, Any]:
        """The choice as JSON; equal for two choices that ask for the same."""
        return {**asdict(self), "sources": sorted(set(self.sources))}


@dataclass
class Account:
    """The fate of every answer and of every label of the judged examples."""

    cases: list[LabelFate] = field(default_factory=list)
    labels_before: int = 0  # that the rewritten examples had in the base
    tasks: int = 0

    def drop(self, answers: Iterable["PublishedAnswer"], reason: str) -> None:
        for said in answers:
            case = LabelFate(Fate.DROPPED, reason, said.task.example.key, said.rater, said.words, said.task.pk, 1)
            self.cases.append(case)

    def counts(self) -> dict[str, Any]:
        counted = Counter((each.fate, each.reason) for each in self.cases)
        found: dict[str, Any] = {fate: {} for fate in Fate.values}
        for (fate, reason), number in sorted(counted.items()):
            found[fate][reason] = number
        return {**found, "answers": sum(each.answers for each in self.cases if each.fate == Fate.KEPT)}


@dataclass(frozen=True)
class PublishedAnswer:
    """An answer that has not been superseded."""

    id: int
    task: Task
    rater: str
    content: dict[str, Any]
    stands: bool  # submitted, and not opened again since
    words: str


Tell = Callable[[int], None]


def usual(project: Project) -> Choice:
    """The default choice of a project."""
    return Choice(what=kinds.Settings.model_validate(project.settings).publish)


def start(membership: Membership, project: Project, choice: Choice) -> Publication | None:
    """Publishes at once if there is little; else queues a job and returns None. Raises as `publish`."""
    base(project, choice)
    if _answered(project)[: AT_ONCE + 1].count() <= AT_ONCE:
        return publish(membership, project, choice)
    if runner.start(project, Job.Kind.PUBLISH, membership, **choice.told()) is None:
        raise Conflict("This project is already being published.", "publishing")
    return None


@runner.does(Job.Kind.PUBLISH)
def carry_out(job: Job, report: runner.Report) -> None:
    """The job of `start`. A version appears only as a whole, so the job of a lost worker starts again."""
    assert job.membership is not None  # noqa: S101  `start` names one
    choice = Choice(**{**job.params, "sources": tuple(job.params["sources"])})
    total = _answered(job.project).count()
    made = publish(job.membership, job.project, choice, lambda done: report.at(done, total))
    job.result = {"dataset": made.version.dataset_id, "version": made.version.number, "publication": made.pk}


def base(project: Project, choice: Choice) -> DatasetVersion:
    """The base version. Raises Invalid at `base`."""
    if choice.base is None:
        return project.version
    found = project.version.dataset.versions.filter(number=choice.base).first()
    if found is None:
        raise Invalid(
            "There is no such version to build on.", {"base": f"{project.version.dataset} has no such version"}
        )
    return found


def _answered(project: Project) -> QuerySet[Task]:
    """The tasks that somebody has answered, including gold and reopened ones."""
    given = Answer.objects.filter(assignment__task=OuterRef("pk"), current=True)
    return Task.objects.filter(Exists(given), project=project)


def publish(
    membership: Membership, project: Project, choice: Choice | None = None, tell: Tell = lambda judged: None
) -> Publication:
    """A frozen version of the project's dataset with its answers in it. Publishing the same twice makes one version.

    `tell` gets the number of answered tasks that have been processed. Raises Conflict `nothing_to_publish` if no answer passes the choice,
    and what the new version refuses.
    """
    choice = choice or usual(project)
    review_new(project)
    built_on, account = base(project, choice), Account()
    lineage = {
        "from": "annotation",
        "base": built_on.number,
        "base_id": built_on.pk,
        "project": project.pk,
        "project_name": project.name,
        "kind": project.kind,
        "annotated_version": project.version.number,
        "choice": choice.told(),
    }
    with transaction.atomic():
        records = _records(project, built_on, choice, account, tell)
        version = datasets.new_version(
            membership, project.version.dataset, records, built_on if choice.rest else None, lineage, as_given=True
        )
        if not any(each.fate == Fate.KEPT and not each.reason for each in account.cases):
            raise Conflict(NOTHING[choice.what], "nothing_to_publish")
        version = datasets.freeze(membership, version)
        return _recorded(membership, project, version, choice, account, _counts(account, built_on, choice))


def _counts(account: Account, built_on: DatasetVersion, choice: Choice) -> dict[str, Any]:
    """The counts as in `Publication.counts`."""
    rows = Row.objects.filter(memberships__version=built_on)
    rest = (rows.aggregate(sum=Sum("preference_count"))["sum"] or 0) - account.labels_before
    kept, left = (rest, 0) if choice.rest else (0, rest)
    return {**account.counts(), "untouched": kept, "left_out": left}


def _recorded(
    membership: Membership,
    project: Project,
    version: DatasetVersion,
    choice: Choice,
    account: Account,
    counts: dict[str, Any],
) -> Publication:
    """Records the publication. The same request again replaces the earlier record."""
    Publication.objects.filter(project=project, version=version, choice=choice.told()).delete()
    made = Publication.objects.create(
        project=project, version=version, choice=choice.told(), counts=counts, made_by=membership.user
    )
    PublishedCase.objects.bulk_create((_row(made, each) for each in account.cases), batch_size=2_000)
    audit.record(membership, membership.user, "project.published", project, version=version.number, labels=counts)
    facts = {"project": project.pk, "name": project.name, "dataset": version.dataset_id, "version": version.number}
    announce(project.workspace_id, "project.published", {**facts, "labels": counts}, by=membership.user_id)
    return made


def _row(made: Publication, case: LabelFate) -> PublishedCase:
    return PublishedCase(
        publication=made,
        fate=case.fate,
        reason=case.reason,
        example=case.example,
        task_id=case.task,
        whose=case.whose[:200],
        says=case.says[:SAYS],
        answers=case.answers,
    )


def _records(
    project: Project, built_on: DatasetVersion, choice: Choice, account: Account, tell: Tell
) -> Iterator[Example]:
    """Each annotated example as it is in the base, with its judgements."""
    foreign = built_on.pk != project.version_id  # only then may the base have labels that this project published
    for keys, given in _judged(project, choice, account, tell):
        by_key: dict[str, list[GivenJudgement]] = defaultdict(list)
        for each in given:
            by_key[each.task.example.key].append(each)
        wanted = keys if foreign else {key: keys[key] for key in by_key}
        now = Row.objects.filter(dataset_id=built_on.dataset_id, memberships__version=built_on, key__in=wanted)
        current = {row.key: row.content for row in now}
        for key, original in wanted.items():
            if key in current:
                record = _record(project, current[key], original, by_key.get(key, []), choice, account)
                if record is not None:
                    yield record
            else:
                _refuse(by_key.get(key, []), Reason.GONE, account)


def _record(
    project: Project,
    content: dict[str, Any],
    original: Row,
    given: list[GivenJudgement],
    choice: Choice,
    account: Account,
) -> Example | None:
    """The example as it is published; None if nothing in it changes."""
    if given:
        change = published_example.with_judgements(content, project, given, choice.what, choice.replace)
    else:
        change = published_example.without_own(content, project, original.content)
        if change.content == content:
            return None
    try:
        record = Example.model_validate(change.content)
    except (ValidationError, KeyError):  # its responses have changed since it was annotated
        _refuse(given, Reason.CHANGED, account)
        return None
    account.cases += change.cases
    account.labels_before += len(content.get("preferences", ()))
    for each in given:
        words = _words(project, each.content)
        account.cases.append(LabelFate(Fate.KEPT, "", record.key, each.rater, words, each.task.pk, each.answers))
    return record


def _refuse(given: Iterable[GivenJudgement], reason: str, account: Account) -> None:
    for each in given:
        words = _words(each.task.project, each.content)
        account.cases.append(
            LabelFate(Fate.DROPPED, reason, each.task.example.key, each.rater, words, each.task.pk, each.answers)
        )


def _words(project: Project, content: dict[str, Any]) -> str:
    return says({"kind": project.kind, "content": content})


def _judged(
    project: Project, choice: Choice, account: Account, tell: Tell
) -> Iterator[tuple[dict[str, Row], list[GivenJudgement]]]:
    """A few hundred examples at a time: {key: example} of those with answers, and their judgements that pass the choice."""
    known = raters(project)
    tasks = _answered(project)
    after = looked = 0
    while True:
        rows = tasks.filter(example_id__gt=after).order_by("example_id").values_list("example_id", flat=True)
        examples = list(rows.distinct()[:BATCH])
        if not examples:
            return
        after = examples[-1]
        listed = tasks.filter(example_id__in=examples).select_related("example", "review", "resolution", "project")
        batch = list(listed.order_by("id"))
        said = _said(project, batch, known)
        given = [each for task in batch for each in _passing(task, said[task.pk], choice, account)]
        looked += len(batch)
        tell(looked)
        yield {task.example.key: task.example for task in batch}, given


def _said(project: Project, tasks: list[Task], known: dict[int, Rater]) -> dict[int, list[PublishedAnswer]]:
    by_id = {task.pk: task for task in tasks}
    answers = Answer.objects.filter(current=True, assignment__task__in=by_id).order_by("id")
    found: dict[int, list[PublishedAnswer]] = defaultdict(list)
    fields = ("id", "assignment__task_id", "assignment__user_id", "assignment__state", "content")
    rows = list(answers.values_list(*fields))
    if any(user not in known for _, _, user, _, _ in rows):  # somebody has joined since the publication began
        known |= raters(project)
    for pk, task, user, state, content in rows:
        rater = f"{known[user].pseudonym}{published_example.rater_suffix(project)}"
        stands = state == Assignment.State.SUBMITTED
        found[task].append(PublishedAnswer(pk, by_id[task], rater, content, stands, _words(project, content)))
    return found


def _passing(task: Task, said: list[PublishedAnswer], choice: Choice, account: Account) -> list[GivenJudgement]:
    """The judgements of one task that are published; all others are recorded as dropped, with the reason."""
    if task.overlap is None:
        account.drop(said, Reason.GOLD)
        return []
    account.drop([each for each in said if not each.stands], Reason.OPEN)
    standing = [each for each in said if each.stands]
    review = getattr(task, "review", None)
    agreement = review.agreement if review else None
    if choice.minimum > 0 and (agreement is None or agreement < choice.minimum):
        account.drop(standing, Reason.ALONE if agreement is None else Reason.AGREEMENT)
        return []
    if choice.what == "answers":
        return [GivenJudgement(task, each.rater, each.content, "answer", agreement) for each in standing]
    resolution: Resolution | None = getattr(task, "resolution", None)
    why = _unfit(resolution, choice, [each.id for each in said])
    if resolution is None or why:
        account.drop(standing, why)
        return []
    rater = f"{resolution.source}{published_example.rater_suffix(task.project)}"
    return [GivenJudgement(task, rater, resolution.content or {}, resolution.source, agreement, len(standing))]


def _unfit(resolution: Resolution | None, choice: Choice, said: list[int]) -> str:
    """The reason why a resolved answer is not published; empty if it is. People may have changed the answers behind it since the tasks were
    reviewed."""
    if resolution is None:
        return Reason.UNDECIDED
    if not rests_on(resolution.source, resolution.trace, said):
        return Reason.STALE
    if resolution.content is None:
        return Reason.UNRESOLVED
    return "" if resolution.source in choice.sources else Reason.SOURCE
