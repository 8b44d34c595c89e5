"""Answers become a version of the dataset, which can be trained on, explored and exported like any other.

The new version is the newest one with the annotated examples replaced, so that what other projects published meanwhile
stays. Pairs become preferences; what an example has no field for is kept under `meta.annotation`, by project.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from itertools import combinations
from typing import Any, Literal

from django.db.models import QuerySet
from pydantic import ValidationError

from trainer.contracts import Example
from webapp.accounts.models import Membership
from webapp.annotation.models import Answer, Job, Project, Resolution, Task
from webapp.annotation.queries.raters import Rater, raters
from webapp.core import audit
from webapp.core.problems import Conflict, Invalid
from webapp.datasets import services as datasets
from webapp.datasets.models import DatasetVersion
from webapp.datasets.models import Example as Row

from . import jobs
from .standing import STANDS, review_new

AT_ONCE = 500  # tasks a request publishes by itself; more are a job's
BATCH = 200  # examples read at a time
ORDERED = 2  # strength of "better" for a pair out of a ranking, which says which but not how much


@dataclass(frozen=True)
class Choice:
    """`what`: every answer as one person's, or only what stands for each task. `sources`: of what stands.

    `minimum`: least agreement of a task. `replace`: labels that the annotated pairs had before give way. `rest`: the
    version keeps examples nobody annotated.
    """

    what: Literal["answers", "resolutions"] = "resolutions"
    minimum: float = 0.0
    sources: tuple[str, ...] = ("unanimous", "consolidated", "majority")
    replace: bool = True
    rest: bool = True

    def __post_init__(self) -> None:
        if self.what not in ("answers", "resolutions"):
            raise Invalid("What to publish is not known.", {"what": "must be answers or resolutions"})
        if not 0 <= self.minimum <= 1:
            raise Invalid("The least agreement is out of bounds.", {"minimum": "must be between 0 and 1"})
        if unknown := set(self.sources) - set(Resolution.Source.values):
            raise Invalid("A source is not known.", {"sources": f"unknown: {', '.join(sorted(unknown))}"})


@dataclass
class Given:
    """One judgement to publish: whose it is (a pseudonym, or the source of a resolution) and what it says."""

    task: Task
    rater: str
    content: dict[str, Any]
    source: str
    agreement: float | None


@dataclass
class Tally:
    """What a publication has come to. `gone`: examples that the newest version no longer has."""

    examples: int = 0
    judgements: int = 0
    gone: int = 0
    unfit: list[str] = field(default_factory=list)


def start(membership: Membership, project: Project, choice: Choice) -> DatasetVersion | None:
    """Publishes at once where there is little, else queues it and returns None. Raises as `publish`."""
    if _answered(project)[: AT_ONCE + 1].count() <= AT_ONCE:
        return publish(membership, project, choice)
    if jobs.start(project, Job.Kind.PUBLISH, membership, **asdict(choice)) is None:
        raise Conflict("This project is being published already.", "publishing")
    return None


@jobs.does(Job.Kind.PUBLISH)
def carry_out(job: Job, report: jobs.Report) -> None:
    """The job of `start`. Nothing of a version is there before all of it is, so a lost worker's is begun anew."""
    assert job.membership is not None  # noqa: S101  `start` names one
    choice = Choice(**{**job.params, "sources": tuple(job.params["sources"])})
    total = _answered(job.project).count()
    version = publish(job.membership, job.project, choice, lambda done: report.at(done, total))
    job.result = {"dataset": version.dataset_id, "version": version.number}


def _answered(project: Project) -> QuerySet[Task]:
    return Task.objects.filter(project=project, overlap__isnull=False, done__gt=0)


def publish(
    membership: Membership,
    project: Project,
    choice: Choice | None = None,
    tell: Callable[[int], None] = lambda judged: None,
) -> DatasetVersion:
    """A frozen version of the project's dataset with its answers in it. Publishing the same twice makes one version.

    `tell` hears how many answered tasks have been looked at.

    Raises Conflict `nothing_to_publish` when no answer passes the choice, or what the new version refuses.
    """
    choice = choice or Choice()
    review_new(project)
    dataset, tally = project.version.dataset, Tally()
    if not any(_judged(project, choice)):
        raise Conflict("No answer passes these filters, so there is nothing to publish.", "nothing_to_publish")
    lineage = {
        "from": "annotation",
        "project": project.pk,
        "project_name": project.name,
        "kind": project.kind,
        "annotated_version": project.version.number,
        "choice": {**asdict(choice), "sources": list(choice.sources)},
    }
    with datasets.newest(dataset) as newest:
        base = newest or project.version
        records = _records(project, base, choice, tally, tell)
        version = datasets.new_version(membership, dataset, records, base if choice.rest else None, lineage)
    version = datasets.freeze(membership, version)
    audit.record(membership, membership.user, "project.published", project, version=version.number, **asdict(tally))
    return version


def _records(
    project: Project, base: DatasetVersion, choice: Choice, tally: Tally, tell: Callable[[int], None]
) -> Iterator[Example]:
    """Each annotated example as it is in `base`, with what was said about it."""
    for given in _judged(project, choice, tell):
        by_key: dict[str, list[Given]] = defaultdict(list)
        for each in given:
            by_key[each.task.example.key].append(each)
        now = Row.objects.filter(dataset_id=base.dataset_id, memberships__version=base, key__in=by_key)
        current = {row.key: row.content for row in now}
        for key, judgements in by_key.items():
            if key not in current:
                tally.gone += 1
                continue
            try:
                record = Example.model_validate(_with(current[key], project, judgements, choice))
            except (ValidationError, KeyError):  # its responses have changed since it was annotated
                tally.unfit.append(key)
                continue
            tally.examples += 1
            tally.judgements += len(judgements)
            yield record


def _judged(
    project: Project, choice: Choice, tell: Callable[[int], None] = lambda judged: None
) -> Iterator[list[Given]]:
    """What passes the choice, the judgements of a few hundred examples at a time, each example whole."""
    known = raters(project)
    tasks = _answered(project)
    after = looked = 0
    while True:
        rows = tasks.filter(example_id__gt=after).order_by("example_id").values_list("example_id", flat=True)
        examples = list(rows.distinct()[:BATCH])
        if not examples:
            return
        after = examples[-1]
        listed = list(tasks.filter(example_id__in=examples).select_related("example", "review").order_by("id"))
        looked += len(listed)
        tell(looked)
        listed = [task for task in listed if _agrees(task, choice.minimum)]
        read = _answers if choice.what == "answers" else _resolutions
        if found := read(listed, choice, known):
            yield found


def _agrees(task: Task, minimum: float) -> bool:
    agreement = _agreement(task)
    return minimum == 0 or (agreement is not None and agreement >= minimum)


def _agreement(task: Task) -> float | None:
    review = getattr(task, "review", None)
    return review.agreement if review else None


def _answers(tasks: Sequence[Task], choice: Choice, known: dict[int, Rater]) -> list[Given]:
    by_id = {task.pk: task for task in tasks}
    answers = Answer.objects.filter(STANDS, assignment__task__in=by_id).order_by("id")
    found = []
    for task_id, user, content in answers.values_list("assignment__task_id", "assignment__user_id", "content"):
        task = by_id[task_id]
        rater = known[user].pseudonym if user in known else "annotator-0"
        found.append(Given(task, f"{rater}@project-{task.project_id}", content, "answer", _agreement(task)))
    return found


def _resolutions(tasks: Sequence[Task], choice: Choice, known: dict[int, Rater]) -> list[Given]:
    by_id = {task.pk: task for task in tasks}
    rows = Resolution.objects.filter(task__in=by_id, content__isnull=False, source__in=choice.sources).order_by(
        "task_id"
    )
    return [
        Given(
            by_id[row.task_id],
            f"{row.source}@project-{row.project_id}",
            row.content or {},
            row.source,
            _agreement(by_id[row.task_id]),
        )
        for row in rows
    ]


def _with(content: dict[str, Any], project: Project, given: Sequence[Given], choice: Choice) -> dict[str, Any]:
    changed = dict(content)
    preferences = [p for each in given for p in _preferences(project.kind, each)]
    if preferences:
        changed["preferences"] = _before(content, preferences, given, project, choice) + preferences
    if project.kind == "rubric" and choice.what == "resolutions":
        changed["rubric"] = given[-1].content["rubric"]
    note = {
        "project": project.name,
        "kind": project.kind,
        "what": choice.what,
        "tasks": [_note(project.kind, each, choice) for each in given],
    }
    meta = dict(content.get("meta", {}))
    noted = meta.get("annotation")
    noted = noted if isinstance(noted, dict) else {}  # an import may use the name for something else
    changed["meta"] = {**meta, "annotation": {**noted, str(project.pk): note}}
    return changed


def _before(
    content: dict[str, Any], new: list[dict[str, Any]], given: Sequence[Given], project: Project, choice: Choice
) -> list[dict[str, Any]]:
    """Earlier preferences that stay: never this project's own. Where labels give way, none of the pairs annotated now;
    a rationale only takes the place of the preference it explains."""
    mine = f"@project-{project.pk}"
    others = [p for p in content.get("preferences", ()) if not str(p.get("rater", "")).endswith(mine)]
    if not choice.replace:
        return others
    if project.kind == Project.Kind.RATIONALE:
        explained = [_explained(each) for each in given]
        return [p for p in others if p not in explained]
    pairs = {frozenset((p["a"], p["b"])) for p in new}
    return [p for p in others if frozenset((p["a"], p["b"])) not in pairs]


def _explained(given: Given) -> dict[str, Any] | None:
    """The preference a rationale is about, as it was when it was asked for; None where the person was given none."""
    index = given.task.subject.get("preference")
    if index is None:
        return None
    found: dict[str, Any] = given.task.example.content["preferences"][index]
    return found


def _preferences(kind: str, given: Given) -> list[dict[str, Any]]:
    content, subject = given.content, given.task.subject
    if kind == "pairwise":
        parts = {name: content[name] for name in ("verdict", "strength", "reasons")}
        return [{"a": subject["a"], "b": subject["b"], "rater": given.rater, **parts}]
    if kind == "ranking":
        place = {side: tier for tier, sides in enumerate(content["tiers"]) for side in sides}
        return [_ranked(one, two, place, given.rater) for one, two in combinations(sorted(place), 2)]
    judged = _explained(given) if kind == "rationale" else None
    if judged is not None:
        sides: dict[str, Any] = {name: judged[name] for name in ("a", "b", "strength", "verdict") if name in judged}
        return [{**sides, "rater": given.rater, "reasons": content["reasons"]}]
    return []


def _ranked(one: str, two: str, place: dict[str, int], rater: str) -> dict[str, Any]:
    order = (place[one] > place[two]) - (place[one] < place[two])
    return {"a": one, "b": two, "strength": ORDERED * order, "rater": rater}


def _note(kind: str, given: Given, choice: Choice) -> dict[str, Any]:
    """What was said, where an example has no field for it, and where it comes from."""
    found: dict[str, Any] = {"subject": given.task.subject, "source": given.source}
    if given.agreement is not None:
        found["agreement"] = round(given.agreement, 4)
    if choice.what == "answers":
        found["rater"] = given.rater
    content = given.content
    if kind == "pairwise" and content.get("dimensions"):
        found["dimensions"] = content["dimensions"]
    if kind == "grading":
        found["grades"] = {grade["criterion"]: grade["verdict"] for grade in content["grades"]}
    if kind == "rating":
        found["ratings"] = content["ratings"]
    if kind == "rubric" and choice.what == "answers":
        found["rubric"] = content["rubric"]
    if kind == "rationale":
        found |= {"rationale": content.get("source", ""), "reasons": content["reasons"]}
    return found
