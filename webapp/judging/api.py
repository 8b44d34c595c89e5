"""Judges, versions, verdicts and trials. Reading needs the role reviewer, changing anything researcher."""

from typing import Annotated, Any, Literal

from django.db import transaction
from django.http import HttpRequest
from ninja import Path, Router, Status

from trainer.judges.spec import KINDS, Kind
from webapp.accounts.access import require
from webapp.annotation import access as projects
from webapp.annotation.jobs.queries import jobs
from webapp.annotation.models import Job, Project
from webapp.annotation.work.suggestion_queries import standing
from webapp.annotation.work.suggestions import take_away
from webapp.core.paging import Limit, page
from webapp.inference.access import endpoint_read

from . import access, queries, services
from . import schemas as s
from .models import Judge, JudgeVersion, Trial, Verdict
from .services.trials import Extra

router = Router(tags=["judges"])
Id = Annotated[int, Path(ge=1, le=2**63 - 1)]
Number = Annotated[int, Path(ge=1, lt=2**31)]
VerdictState = Literal["", "done", "missing", "failed"]


@router.get("/judge-kinds", response=s.JudgeKindList, summary="What judges can do, with their default templates")
def kinds(request: HttpRequest) -> dict[str, Any]:
    access.may_read(require(request))
    return {"items": [_kind(kind) for kind in KINDS.values()]}


def _kind(kind: Kind) -> dict[str, Any]:
    spec = kind.default()
    return {
        "name": kind.name,
        "title": kind.title,
        "help": kind.help,
        "variables": kind.variables,
        "required": kind.required,
        "spec": spec.model_dump(mode="json"),
        "spec_schema": kind.spec.model_json_schema(),
        "answer_schema": kind.schema(spec),
    }


@router.get("/judges", response=s.JudgeList, summary="Judges, newest first")
def judges(request: HttpRequest, cursor: str | None = None, limit: Limit = 50, archived: bool = False) -> object:
    membership = access.may_read(require(request))
    return page(queries.judges(membership.workspace_id, archived=archived), cursor, limit)


@router.post("/judges", response={201: s.JudgeVersionOut}, summary="Make a judge; answers with its first version")
def create_judge(request: HttpRequest, payload: s.JudgeIn) -> Status[JudgeVersion]:
    membership = access.may_write(require(request))
    endpoint = endpoint_read(membership, payload.endpoint)
    made = services.create_judge(membership, name=payload.name, spec=payload.spec, endpoint=endpoint, note=payload.note)
    return Status(201, made)


@router.get("/judges/{judge_id}", response=s.JudgeOut, summary="One judge")
def judge(request: HttpRequest, judge_id: Id) -> Judge:
    return access.judge_read(require(request), judge_id)


@router.patch("/judges/{judge_id}", response=s.JudgeOut, summary="Rename, put away, or choose the fixed examples")
@transaction.atomic  # several services: all of what is asked for, or nothing
def change_judge(request: HttpRequest, judge_id: Id, payload: s.JudgeChange) -> Judge:
    membership = require(request)
    row = access.judge_write(membership, judge_id)
    if payload.name is not None:
        services.rename(membership, row, payload.name)
    if payload.fixed_examples is not None:
        services.fix_examples(membership, row, payload.fixed_examples)
    if payload.archived is not None:
        (services.archive if payload.archived else services.restore)(membership, row)
    return access.judge_read(membership, judge_id)


@router.get("/judges/{judge_id}/versions", response=s.JudgeVersionList, summary="A judge's versions, newest first")
def versions(request: HttpRequest, judge_id: Id, cursor: str | None = None, limit: Limit = 50) -> object:
    return page(queries.versions(access.judge_read(require(request), judge_id)), cursor, limit)


@router.post("/judges/{judge_id}/versions", response={201: s.JudgeVersionOut}, summary="Make the next version")
def new_version(request: HttpRequest, judge_id: Id, payload: s.VersionIn) -> Status[JudgeVersion]:
    """What an earlier version already says is answered with that version."""
    membership = require(request)
    row = access.judge_write(membership, judge_id)
    endpoint = endpoint_read(membership, payload.endpoint)
    made = services.new_version(membership, row, spec=payload.spec, endpoint=endpoint, note=payload.note)
    return Status(201, made)


@router.get("/judges/{judge_id}/versions/{number}", response=s.VersionDetail, summary="One version")
def version(request: HttpRequest, judge_id: Id, number: Number) -> JudgeVersion:
    return access.version_read(require(request), judge_id, number)


@router.get("/judges/{judge_id}/versions/{number}/verdicts", response=s.VerdictList, summary="What a version said")
def verdicts(
    request: HttpRequest,
    judge_id: Id,
    number: Number,
    state: VerdictState = "",
    cursor: str | None = None,
    limit: Limit = 50,
) -> object:
    row = access.version_read(require(request), judge_id, number)
    return page(queries.verdict_list(row, state), cursor, limit)


@router.get("/verdicts/{verdict_id}", response=s.VerdictOut, summary="One verdict, down to the raw text")
def verdict(request: HttpRequest, verdict_id: Id) -> Verdict:
    return access.verdict_read(require(request), verdict_id)


@router.post("/judge-trials", response={201: s.TrialOut}, summary="Try a draft on examples")
def try_draft(request: HttpRequest, payload: s.TrialIn) -> Status[Trial]:
    """Nothing of it enters the verdict store. Ask for the trial until its state is finished or failed."""
    membership = access.may_write(require(request))
    made = services.start_trial(
        membership,
        spec=payload.spec,
        endpoint=endpoint_read(membership, payload.endpoint),
        examples=payload.examples,
        extra=Extra(**payload.extra.dict()),
        judge=None if payload.judge is None else access.judge_write(membership, payload.judge),
    )
    return Status(201, made)


@router.post("/judges/{judge_id}/comparisons", response={201: s.TrialOut}, summary="Compare two versions")
def compare(request: HttpRequest, judge_id: Id, payload: s.ComparisonIn) -> Status[Trial]:
    membership = require(request)
    row = access.judge_write(membership, judge_id)
    made = services.start_comparison(
        membership,
        row,
        before=access.version_read(membership, judge_id, payload.before),
        after=access.version_read(membership, judge_id, payload.after),
        extra=Extra(**payload.extra.dict()),
    )
    return Status(201, made)


@router.get("/judge-trials/{trial_id}", response=s.TrialOut, summary="One trial or comparison")
def trial(request: HttpRequest, trial_id: Id) -> Trial:
    return access.trial_read(require(request), trial_id)


@router.get(
    "/projects/{int:project_id}/suggestions", response=s.SuggestionsOut, summary="What judges suggest for its tasks"
)
def suggestions(request: HttpRequest, project_id: Id) -> dict[str, Any]:
    """How many tasks have a judge's view, whose, and how often people answered as it did, apart for each way it was shown."""
    return _suggestions(projects.project_read(require(request), project_id))


def _suggestions(project: Project) -> dict[str, Any]:
    far = standing(project)
    job = jobs(project).get(Job.Kind.SUGGEST)
    return {"tasks": far.tasks, "suggested": far.with_one, "by": far.by, "agreement": dict(far.agreement), "job": job}


@router.post(
    "/projects/{int:project_id}/suggestions", response={202: s.SuggestionsOut}, summary="Ask a judge about its tasks"
)
def suggest(request: HttpRequest, project_id: Id, payload: s.SuggestIn) -> Status[dict[str, Any]]:
    """A job asks it about every task; `GET` says how far it is. `settings.suggestions` says when people are shown it. 409 while
    a judge is being asked."""
    membership = require(request)
    project = projects.project_write(membership, project_id)
    version = access.version_read(membership, payload.judge, payload.number)
    services.ask_judge(membership, project, version, payload.tokens)
    return Status(202, _suggestions(project))


@router.delete(
    "/projects/{int:project_id}/suggestions",
    response=s.RemovedOut,
    summary="Stop the judge, and take its suggestions away",
)
def remove_suggestions(request: HttpRequest, project_id: Id) -> dict[str, Any]:
    """What answers recorded stays. While the judge is being asked: 409, and it is stopped; ask again once it has ended."""
    membership = require(request)
    project = projects.project_write(membership, project_id)
    return {"removed": take_away(membership, project)}
