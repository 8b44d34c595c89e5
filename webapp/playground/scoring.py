"""The score that a rubric, a judge or a reward model gives an answer in *Try it*.

Verifiers answer at once; a judge and a reward model are asked by a worker, through the endpoint's limits and a budget.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from time import monotonic
from typing import Any

from django.db import transaction
from pydantic import ValidationError

from trainer.contracts import Criterion, Message, Rubric, Verdict
from trainer.judges.spec import KINDS
from trainer.rubrics import breakdown, report_score, verdicts
from webapp.accounts.models import Membership
from webapp.core.background.jobs import OPEN, JobKind
from webapp.core.database import locks
from webapp.core.problems import Invalid
from webapp.core.requests.limits import count_seconds
from webapp.core.tasks import enqueue
from webapp.datasets.models import Example
from webapp.inference.folders.tokenizers import unloadable
from webapp.inference.models import RegisteredModel
from webapp.judging import queries as judging
from webapp.judging.models import JudgeVersion

from .models import TriedScore

CRITERIA = ("criterion", "checklist")  # kinds that decide the criteria of a rubric
RUBRIC = (*CRITERIA, "likert")  # kinds that need one
SINGLE = (*RUBRIC, "pointwise")  # kinds that say something of one answer
KEPT = 200  # of a person; older ones go
SECONDS = 1.0  # of verifiers; what they have not said by then is missing
SCORE = JobKind(
    TriedScore.objects.select_related("judge_version__judge", "judge_version__endpoint", "reward_model__base"),
    locks.Work.TRIED_SCORE,
    "workers.playground.score",
)
State = TriedScore.State


@dataclass
class ShownScore:
    """`score` None: `why` says why there is none. `scale`: in what it counts (`rubric` and `rating` from 0 to 1 unless points
    are negative, `reward` without bounds). `words`: what the judge said of the answer as a whole."""

    score: float | None
    scale: str = "rubric"
    why: str = ""
    words: str = ""
    missing: int = 0
    partial: bool = False
    criteria: list[dict[str, Any]] = field(default_factory=list)
    verdicts: list[int] = field(default_factory=list)

    def json(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class ScoreRequest:
    """`text` is the answer. The rubric is that of `example`, unless `criteria` are given."""

    text: str
    example: Example | None = None
    messages: Sequence[Message] = ()
    criteria: Sequence[dict[str, Any]] = ()
    judge: int | None = None
    reward_model: int | None = None
    tokens: int = 20_000

    @property
    def rubric(self) -> Rubric | None:
        """The rubric by which the answer is scored, if there is one. Raises Invalid at `criteria`."""
        if not self.criteria:
            return self.example.record.rubric if self.example else None
        try:
            rows = [Criterion(id=f"c{i}", **each) for i, each in enumerate(self.criteria, 1)]
            return Rubric(criteria=tuple(rows))
        except ValidationError as error:
            said = "; ".join(item["msg"].removeprefix("Value error, ") for item in error.errors()[:3])
            raise Invalid("This is not a rubric.", {"criteria": said}) from error

    @property
    def prompt(self) -> Sequence[Message]:
        return self.messages or (self.example.record.prompt if self.example else ())


def by_rubric(rubric: Rubric, given: Sequence[Verdict]) -> ShownScore:
    """Points of the criteria met over all positive points, among the decided criteria."""
    found = report_score(rubric, given)
    listed = [
        {"text": each.text, "points": each.points, "met": each.verdict.met, "note": each.verdict.note}
        for each in breakdown(rubric, given)
    ]
    why = "" if found.score is not None else "no criterion with positive points is decided, or an essential one is open"
    return ShownScore(found.score, "rubric", why, "", found.missing, found.partial, listed)


def start(membership: Membership, asked: ScoreRequest) -> tuple[ShownScore | None, TriedScore | None]:
    """The score where verifiers alone say it, else the row that a worker fills.

    Raises Invalid at `example`, `criteria`, `judge`, `reward_model` or `messages`; then nothing was written.
    """
    rubric = asked.rubric
    if asked.judge is None and asked.reward_model is None:
        if rubric is None:
            raise Invalid("There is nothing that could score this answer.", {"example": "has no rubric"})
        with count_seconds(membership.user_id):  # the criteria may be one's own, and so the patterns in them
            return by_rubric(rubric, verdicts(rubric, asked.text, monotonic() + SECONDS)), None
    judge, model = _chosen(membership, asked, rubric)
    with transaction.atomic():
        row = TriedScore.objects.create(
            workspace=membership.workspace,
            judge_version=judge,
            reward_model=model,
            key=asked.example.record.key if asked.example and not asked.criteria else _key(asked),
            messages=[message.model_dump() for message in asked.prompt],
            text=asked.text,
            criteria=[each.model_dump(mode="json") for each in rubric.criteria] if rubric else [],
            reference=(asked.example.record.reference or "") if asked.example else "",
            tokens=asked.tokens,
            created_by=membership.user,
        )
        mine = TriedScore.objects.filter(created_by=membership.user).exclude(state__in=OPEN).order_by("-id")
        TriedScore.objects.filter(id__in=list(mine.values_list("id", flat=True)[KEPT:])).delete()
        enqueue("workers.playground.score", row.pk)
    return None, row


def _chosen(
    membership: Membership, asked: ScoreRequest, rubric: Rubric | None
) -> tuple[JudgeVersion | None, RegisteredModel | None]:
    problems: dict[str, str] = {}
    judge = model = None
    if asked.judge is not None:
        rows = judging.usable_versions(membership.workspace_id, list(KINDS))
        judge = rows.filter(pk=asked.judge).first()
        problems |= _judge_problem(judge, rubric)
    if asked.reward_model is not None:
        model = RegisteredModel.objects.filter(workspace=membership.workspace, pk=asked.reward_model).first()
        problems |= _model_problem(model)
        if judge is not None:
            problems["reward_model"] = "choose a judge or a reward model, one of the two"
    if not asked.prompt:
        problems["messages"] = "give the question, or name an example"
    if problems:
        raise Invalid("This answer cannot be scored like this.", problems)
    return judge, model


def _judge_problem(judge: JudgeVersion | None, rubric: Rubric | None) -> dict[str, str]:
    if judge is None:
        return {"judge": "this workspace has no such judge, or it or its endpoint is archived"}
    kind = judge.judge.kind
    if kind not in SINGLE:
        return {"judge": f"{judge} is of kind {kind} and does not judge a single answer; choose {', '.join(SINGLE)}"}
    if kind in RUBRIC and rubric is None:
        return {"criteria": f"{judge} judges by a rubric: choose a prompt that has one, or write criteria"}
    return {}


def _model_problem(model: RegisteredModel | None) -> dict[str, str]:
    if model is None:
        return {"reward_model": "this workspace has no such model"}
    if model.head != RegisteredModel.Head.SCALAR:
        return {"reward_model": f"{model.name} writes text; choose a reward model"}
    why = unloadable(model)
    return {"reward_model": why} if why else {}


def _key(asked: ScoreRequest) -> str:
    """A key that the same prompt has again."""
    said = "\n".join(f"{message.role}: {message.content}" for message in asked.prompt)
    return f"tried-{hashlib.sha256(said.encode()).hexdigest()[:24]}"
