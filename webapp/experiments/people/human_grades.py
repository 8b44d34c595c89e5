"""Sends a share of the responses that a judge grades to people, and measures how far they agree with it.

The draw is stored together with the response; a worker makes the tasks later. So nothing is lost if a worker dies, a response that is sent
twice is drawn once, and responses that still wait when a run ends are asked about too.
"""

import hashlib
import logging
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.db import transaction
from pydantic import ValidationError

from trainer.contracts import Example, Response, RolloutRecord, Rubric
from trainer.metrics.estimate import wilson
from webapp.accounts.models import Membership, Role
from webapp.annotation.models import Answer, Project
from webapp.annotation.projects import grading
from webapp.core.database.paging import page
from webapp.core.problems import Problem
from webapp.core.tasks import enqueue, silent
from webapp.datasets.queries import examples_by_key

from .. import access
from ..bulk import RolloutRow
from ..models import GradedResponse, Rollout, Run

logger = logging.getLogger(__name__)
BATCH = 200  # responses of one version of the project's dataset
LOST_AFTER = timedelta(minutes=1)
MET = {"met": True, "not_met": False}
State = GradedResponse.State
Place = tuple[int, str, int, int]  # step, phase, group, index


class LeftOut(Exception):
    """Raised if people cannot be asked about a response; the message says why."""


def share(run: Run) -> float:
    """The share that goes to people; 0 for recipes without it."""
    found = run.config.get("people")
    return float(found.get("share", 0.0)) if isinstance(found, dict) else 0.0


def project_name(config: Mapping[str, Any]) -> str:
    """The name of the project that the config names; empty if people are asked in the standing one, or not at all."""
    found = config.get("people") or {}
    return str(found.get("project", "")) if found.get("share") else ""


def chosen(workspace_id: int, config: Mapping[str, Any]) -> Project | None:
    name = project_name(config)
    return grading.named(workspace_id, name) if name else None


def unfit(workspace_id: int, name: str) -> str:
    """The reason why people cannot be asked in the project of this name; empty if they can."""
    found = grading.named(workspace_id, name)
    if found is None:
        return f"no project is called {name!r}"
    why = grading.unfit(found)
    return f"{name!r} {why}" if why else ""


def draw(run: Run, rows: Iterable[RolloutRow]) -> None:
    """Stores which of the judged responses people grade, in the transaction that stores them."""
    wanted, seed = share(run), run.config.get("seed")
    if not wanted:
        return
    drawn = [
        GradedResponse(run=run, step=row.step, phase=each.phase, group=each.group, index=each.index)
        for row in rows
        if _judged(each := row.record) and chance(seed, (row.step, each.phase, each.group, each.index)) < wanted
    ]
    if drawn:
        GradedResponse.objects.bulk_create(drawn, ignore_conflicts=True)
        enqueue("workers.runs.ask_people", run.pk)


def chance(seed: object, place: Place) -> float:
    """A number in [0, 1) that depends on the run's seed and the response's place only (the first 8 bytes of SHA-256)."""
    digest = hashlib.sha256(":".join(map(str, (seed, "people", *place))).encode()).digest()
    return int.from_bytes(digest[:8], "big") / 2**64


def _judged(record: RolloutRecord) -> dict[str, bool]:
    """The judge's verdicts on criteria, if it has given any."""
    return {
        each.verdict.criterion_id: each.verdict.met
        for each in record.criteria
        if each.verdict.source == "judge" and each.verdict.met is not None
    }


def ask_waiting() -> None:
    """Queues again the runs whose drawn responses nobody turns into tasks, because their message or their worker was lost."""
    waiting = GradedResponse.objects.filter(silent("created_at", LOST_AFTER), state=State.WAITING)
    for run_id in waiting.values_list("run_id", flat=True).distinct():
        enqueue("workers.runs.ask_people", run_id)


def ask(run_id: int) -> None:
    """Makes tasks of the responses that wait. Called twice at once, the second finds nothing left to do."""
    while True:
        try:
            if _ask(run_id) < BATCH:
                return
        except Problem:
            logger.exception("the tasks of run %s are made later", run_id)
            return


@transaction.atomic
def _ask(run_id: int) -> int:
    """Makes tasks of up to a batch of waiting responses; returns their number."""
    # the lock on the rows: a second worker waits here, and then finds them asked
    rows = list(
        GradedResponse.objects.select_for_update().filter(run_id=run_id, state=State.WAITING).order_by("id")[:BATCH]
    )
    run = Run.objects.with_names().filter(pk=run_id).first()
    membership = _membership(run) if run and rows else None
    if run is None or membership is None:
        return 0
    records = _records(run, rows)
    tasks = grading.grade(membership, list(records.values()), run.graded_in_id) if records else {}
    for row in rows:
        record = records.get(row.pk)
        if record is not None:
            row.state, row.task = State.ASKED, tasks[record.key]
    GradedResponse.objects.bulk_update(rows, ["state", "problem", "verdicts", "task"])
    return len(rows)


def _membership(run: Run) -> Membership | None:
    """The member in whose name people are asked: the person who launched the run, or an owner of the workspace if they have left or may not
    launch any more."""
    workspace_id = run.experiment.workspace_id
    owners = Membership.objects.filter(workspace_id=workspace_id, role=Role.OWNER, user__is_active=True)
    return access.launcher(workspace_id, run.created_by_id) or owners.order_by("id").first()


def _records(run: Run, rows: list[GradedResponse]) -> dict[int, Example]:
    """The records that people see, by id of the row; rows without a record say why."""
    steps = {row.step for row in rows}
    stored = Rollout.objects.filter(run=run, step__in=steps).values_list("step", "phase", "group", "index", "content")
    wanted = {_place(row) for row in rows}
    contents = {(step, *rest): content for step, *rest, content in stored if (step, *rest) in wanted}
    rollouts = {place: RolloutRecord.model_validate(content) for place, content in contents.items()}
    examples = examples_by_key(run.data, [each.example_key for each in rollouts.values()])
    found = {}
    for row in rows:
        rollout = rollouts.get(_place(row))
        try:
            if rollout is None:
                raise LeftOut("the response is gone")
            found[row.pk] = _record(run, row, rollout, examples.get(rollout.example_key))
        except LeftOut as why:
            row.state, row.problem = State.LEFT_OUT, str(why)[:500]
    return found


def _place(row: GradedResponse) -> Place:
    return row.step, row.phase, row.group, row.index


def _record(run: Run, row: GradedResponse, rollout: RolloutRecord, example: Example | None) -> Example:
    """The prompt and the criteria as the judge saw them, with this one response. Raises LeftOut."""
    row.verdicts = _judged(rollout)
    if example is None or example.rubric is None:
        raise LeftOut("the dataset has no rubric for it")
    criteria = tuple(criterion for criterion in example.rubric.criteria if criterion.id in row.verdicts)
    if not criteria:  # an alarm sends what no judge has graded, too
        raise LeftOut("no judge has decided a criterion of it")
    try:
        return Example(
            key=f"run-{run.pk}-{row.phase}-{row.step}-{row.group}-{row.index}",
            prompt=example.prompt,
            split=example.split,
            group=example.group,
            domain=example.domain,
            source=grading.LINEAGE,
            rubric=Rubric(criteria=criteria),
            responses=(Response(id="sample", text=rollout.response, origin=f"run {run.pk}"),),
            reference=example.reference,
        )
    except ValidationError as error:
        raise LeftOut(error.errors(include_url=False)[0]["msg"]) from None


@dataclass(frozen=True)
class JudgeAgreement:
    """Judge against people. `decided` counts criteria of `responses` on which more people say one thing than the other; `low` and `high`
    are None without any.

    The 95% interval (Wilson) counts responses, not criteria: people's grades of one response depend on each other, so the interval is
    rather too wide than too narrow.
    """

    share: float
    drawn: int
    waiting: int
    left_out: int
    responses: int
    decided: int
    agreeing: int
    undecided: int
    low: float | None
    high: float | None
    project: Project | None

    @property
    def value(self) -> float | None:
        return self.agreeing / self.decided if self.decided else None


def agreement(run: Run) -> JudgeAgreement | None:
    """The agreement as far as people have answered; None if none are asked. Two queries for any number of responses."""
    wanted = share(run)
    if not wanted:
        return None
    drawn = GradedResponse.objects.filter(run=run, alarm=None)
    rows = list(drawn.values_list("state", "task_id", "verdicts", "task__project_id"))
    judged = {task: verdicts for _, task, verdicts, _ in rows if task is not None}
    responses = [_compared(judged[task], said) for task, said in _votes(judged).items()]
    decided = [each for compared in responses for each in compared if each is not None]
    n = sum(any(each is not None for each in compared) for compared in responses)
    low, high = wilson(sum(decided) / len(decided), n) if decided else (None, None)
    states = [state for state, *_ in rows]
    projects = [project for *_, project in rows if project is not None]
    return JudgeAgreement(
        share=wanted,
        drawn=len(rows),
        waiting=states.count(State.WAITING),
        left_out=states.count(State.LEFT_OUT),
        responses=n,
        decided=len(decided),
        agreeing=sum(decided),
        undecided=sum(map(len, responses)) - len(decided),
        low=low,
        high=high,
        project=Project.objects.filter(pk=max(projects)).first() if projects else run.graded_in,
    )


@dataclass(frozen=True)
class GradedCriterion:
    """Verdicts of the judge and of people on one criterion. `people` None: as many say one thing as the other, or nobody could
    tell; `agree` then is None too."""

    id: str
    text: str
    judge: bool
    met: int
    not_met: int

    @property
    def people(self) -> bool | None:
        return None if self.met == self.not_met else self.met > self.not_met

    @property
    def agree(self) -> bool | None:
        return None if self.people is None else self.people == self.judge


@dataclass(frozen=True)
class DrawnResponse:
    """A drawn response with people's grades of its criteria so far; none if people are not asked."""

    row: GradedResponse
    example: str
    response: str
    criteria: list[GradedCriterion]


def cases(run: Run, cursor: str | None, limit: int) -> tuple[list[DrawnResponse], str | None]:
    """A page of the drawn responses in the order they came, and the cursor of the next. Two queries, however many."""
    rows = GradedResponse.objects.filter(run=run, alarm=None).select_related("task__example")
    found = page(rows, cursor, limit, "id")
    judged = {row.task_id: row.verdicts for row in found.items if row.task_id is not None}
    votes = _votes(judged)
    return [_case(row, votes.get(row.task_id or 0, {})) for row in found.items], found.next


def _case(row: GradedResponse, votes: Mapping[str, Sequence[bool]]) -> DrawnResponse:
    if row.task is None:
        return DrawnResponse(row, "", "", [])
    content = row.task.example.content
    texts = {each["id"]: each["text"] for each in content["rubric"]["criteria"]}
    said = {criterion: (sum(given), len(given)) for criterion, given in votes.items()}
    criteria = [
        GradedCriterion(each, texts.get(each, ""), judge, met, total - met)
        for each, judge in row.verdicts.items()
        for met, total in [said.get(each, (0, 0))]
    ]
    return DrawnResponse(row, row.task.example.key, content["responses"][0]["text"], criteria)


def _votes(judged: Mapping[int, Mapping[str, bool]]) -> dict[int, dict[str, list[bool]]]:
    """Task -> criterion -> people's votes; people who could not tell have no vote."""
    found: dict[int, dict[str, list[bool]]] = defaultdict(lambda: defaultdict(list))
    answers = Answer.objects.filter(current=True, assignment__task_id__in=list(judged))
    for task, content in answers.values_list("assignment__task_id", "content"):
        for grade in content.get("grades", ()):
            if grade["verdict"] in MET and grade["criterion"] in judged[task]:
                found[task][grade["criterion"]].append(MET[grade["verdict"]])
    return found


def _compared(judge: Mapping[str, bool], people: Mapping[str, Sequence[bool]]) -> list[bool | None]:
    """Criterion by criterion whether most people say what the judge says; None if as many say one thing as the other."""
    leads = {criterion: 2 * sum(votes) - len(votes) for criterion, votes in people.items()}
    return [None if lead == 0 else (lead > 0) == judge[criterion] for criterion, lead in leads.items()]
