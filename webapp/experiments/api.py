"""Recipes, experiments and runs. Reading needs the role reviewer, changing anything researcher."""

from decimal import Decimal
from typing import Annotated, Any, Literal

from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from ninja import Header, Path, Query, Router, Status
from pydantic import Field

from trainer.config import RECIPES
from trainer.contracts import RunState
from trainer.contracts.rollout_examples import Wanted
from webapp.accounts.access import require
from webapp.accounts.models import Role
from webapp.core import audit
from webapp.core.archive import respond
from webapp.core.numbers import whole
from webapp.core.openapi import sends
from webapp.core.paging import Limit, page
from webapp.core.problems import Invalid
from webapp.core.strict_query import OneOf
from webapp.inference.access import model_write
from webapp.judging.models import JudgeVersion
from webapp.judging.schemas import JudgeVersionOut
from webapp.weights.api import WeightsJobOut
from webapp.weights.models import WeightsJob

from . import (
    access,
    alarms,
    budgets,
    checks,
    choices,
    declared,
    exporting,
    gallery,
    likeness,
    outputs,
    people,
    queries,
    reason_matches,
    rollout_datasets,
    rollouts,
    services,
    shapes,
    trained_judges,
    trained_on,
)
from . import judge_schemas as j
from . import schemas as s
from .models import Artifact, Run

router = Router(tags=["runs"])
RunId = Path[Annotated[int, Field(ge=1, lt=2**63)]]
Step = Annotated[int, Field(ge=0, lt=2**31)]
Key = Annotated[str, Field(min_length=1, max_length=80)]
MAX_COMPARED = 8
LaunchKey = Annotated[
    str | None,
    Header(
        alias="Idempotency-Key",
        max_length=64,
        description="Sent again with the same body, it answers with the same run; else 422",
    ),
]


@router.get("/recipes", response=s.RecipeList, summary="What a run can do", tags=["recipes"])
def recipes(request: HttpRequest) -> dict[str, Any]:
    access.may_read(require(request))
    return {"items": list(RECIPES.values()), "next": None}


@router.get("/recipes/fit", response=s.FitList, summary="What a dataset holds for each recipe", tags=["recipes"])
def recipes_fit(
    request: HttpRequest,
    dataset: Annotated[str, Query(max_length=200, description="Its name, its id, or `<id>:<version>`")],
) -> dict[str, Any]:
    """`fits` is null while a large version is counted: ask again in a minute."""
    membership = access.may_read(require(request))
    version = choices.named_version(membership.workspace_id, dataset)
    if version is None:
        raise Http404("no such dataset")
    return {"items": [shapes.card(card) for card in gallery.cards(membership.workspace_id, version)], "next": None}


@router.get("/recipes/{name}/metrics", response=s.RecipeMetricsOut, summary="What a recipe measures", tags=["recipes"])
def recipe_metrics(request: HttpRequest, name: str) -> dict[str, Any]:
    """Titles, units, help and places of every metric: all that a chart needs."""
    access.may_read(require(request))
    if name not in RECIPES:
        raise Http404("no such recipe")
    return declared.metrics(name)


@router.get("/recipes/{name}/schema", response=dict[str, Any], summary="JSON Schema of the config", tags=["recipes"])
def recipe_schema(request: HttpRequest, name: str) -> dict[str, Any]:
    """Defaults, bounds, help (`description`), `unit` and `advanced`: all that a form needs."""
    access.may_read(require(request))
    if name not in RECIPES:
        raise Http404("no such recipe")
    return RECIPES[name].schema.model_json_schema()


@router.post(
    "/recipes/{name}/check", response=s.ConfigCheckOut, summary="Check a config, launch nothing", tags=["recipes"]
)
def check_config(request: HttpRequest, name: str, payload: s.ConfigCheckIn) -> dict[str, Any]:
    """The complete config, or 422 with every field that is wrong; with a dataset also what would leak."""
    membership = access.may_read(require(request))
    if name not in RECIPES:
        raise Http404("no such recipe")
    config = services.check_config(name, payload.config)
    if payload.dataset is None:
        return {"config": config, "leaks": None, "near": None}
    choice = s.choice(payload.dataset)
    version = checks.version_of(membership, choice)
    if version is None:
        raise Invalid("There is no such dataset.", {"dataset": checks.missing(choice)})
    found = trained_on.leaking(membership.workspace_id, version, name, config)
    return {"config": config, "leaks": found["leaks"], "near": [each.json() for each in found["near"]]}


@router.get("/experiments", response=s.ExperimentList, summary="Experiments, newest first", tags=["experiments"])
def experiments(request: HttpRequest, cursor: str | None = None, limit: Limit = 50) -> dict[str, Any]:
    membership = access.may_read(require(request))
    found = page(queries.experiments(membership.workspace_id), cursor, limit)
    return {"items": [shapes.experiment(row, row.run_count) for row in found.items], "next": found.next}  # type: ignore[attr-defined]


@router.post("/experiments", response={201: s.ExperimentOut}, summary="Make an experiment", tags=["experiments"])
def create_experiment(request: HttpRequest, payload: s.ExperimentIn) -> Status[dict[str, Any]]:
    membership = access.may_write(require(request))
    row = services.create_experiment(membership, payload.name, payload.description)
    return Status(201, shapes.experiment(row, 0))


@router.get("/runs", response=s.RunList, summary="Runs, newest first")
def runs(
    request: HttpRequest,
    cursor: str | None = None,
    limit: Limit = 50,
    experiment: Annotated[int | None, Query(lt=2**63)] = None,
    state: Literal["active"] | RunState | None = None,
    recipe: Annotated[str, OneOf(tuple(RECIPES))] | None = None,
) -> dict[str, Any]:
    membership = access.may_read(require(request))
    wanted = queries.filtered_runs(membership.workspace_id, experiment=experiment, state=state, recipe=recipe)
    found = page(queries.with_outputs(wanted), cursor, limit)
    return {"items": [shapes.run(row) for row in found.items], "next": found.next}


@router.post("/runs", response={201: s.RunOut}, summary="Launch a run")
def launch(request: HttpRequest, payload: s.LaunchIn, idempotency_key: LaunchKey = None) -> Status[dict[str, Any]]:
    """422 with every field that is wrong, before anything is queued."""
    run = services.launch(
        access.may_write(require(request)),
        recipe=payload.recipe,
        config=payload.config,
        dataset=s.choice(payload.dataset),
        model=payload.model,
        experiment=payload.experiment,
        name=payload.name,
        key=idempotency_key,
    )
    return Status(201, shapes.run(run))


@router.get("/runs/compare", response=s.CompareOut, summary="Where runs differ: configs and curves")
def compare(
    request: HttpRequest,
    ids: str,
    named: Annotated[str | None, Query(alias="keys")] = None,
    max_points: Annotated[int, Query(ge=2, le=2000)] = 300,
) -> dict[str, Any]:
    """`ids`: up to 8 runs, separated by commas; `keys`: metric keys, by default what their recipes show on top."""
    membership = require(request)
    wanted = list(dict.fromkeys(whole(part.strip()) for part in ids.split(",") if part.strip()))
    if not 1 <= len(wanted) <= MAX_COMPARED or None in wanted:
        raise Invalid("These runs cannot be compared.", {"ids": f"1 to {MAX_COMPARED} run ids, separated by commas"})
    rows = [access.run_read(membership, run_id) for run_id in wanted if run_id is not None]
    found = queries.compare(rows, queries.top_keys(rows) if named is None else _split(named), max_points)
    return found | {"unlike": {str(row.id): why for row, why in zip(rows, likeness.unlike(rows), strict=True) if why}}


@router.get("/runs/{run_id}", response=s.RunOut, summary="One run")
def run(request: HttpRequest, run_id: RunId) -> dict[str, Any]:
    return shapes.run(_read(request, run_id))


@router.patch("/runs/{run_id}", response=s.RunOut, summary="Rename a run")
def rename(request: HttpRequest, run_id: RunId, payload: s.RenameIn) -> dict[str, Any]:
    membership = require(request)
    return shapes.run(services.rename(membership, access.run_write(membership, run_id), payload.name))


@router.delete("/runs/{run_id}", response={204: None}, summary="Delete a run that is over")
def delete(request: HttpRequest, run_id: RunId) -> Status[None]:
    membership = require(request)
    services.delete(membership, access.run_write(membership, run_id))
    return Status(204, None)


@router.post("/runs/{run_id}/stop", response=s.RunOut, summary="Stop after the present step, with a checkpoint")
def stop(request: HttpRequest, run_id: RunId) -> dict[str, Any]:
    """Stopping a run that is over changes nothing."""
    membership = require(request)
    return shapes.run(services.stop(membership, access.run_write(membership, run_id)))


@router.post("/runs/{run_id}/resume", response=s.RunOut, summary="Go on from the last checkpoint")
def resume(request: HttpRequest, run_id: RunId) -> dict[str, Any]:
    """409 unless the run is stopped or failed."""
    membership = require(request)
    return shapes.run(services.resume(membership, access.run_write(membership, run_id)))


@router.post("/runs/{run_id}/extend", response=s.RunOut, summary="Go on to more steps")
def extend(request: HttpRequest, run_id: RunId, payload: s.ExtendIn) -> dict[str, Any]:
    """From the last checkpoint of a finished or stopped run. 409 where its model is in use, or no checkpoint is kept."""
    membership = require(request)
    return shapes.run(services.extend(membership, access.run_write(membership, run_id), payload.steps))


@router.get("/runs/{run_id}/judges", response=j.RunJudgeList, summary="What the judges of its rewards have used")
def run_judges(request: HttpRequest, run_id: RunId) -> dict[str, Any]:
    """Those that the run has asked through this server so far."""
    run = access.run_read(require(request), run_id)
    known = budgets.licences(run)
    return {"items": [shapes.run_judge(row, known[row.version_id]) for row in budgets.judges(run)], "next": None}


@router.patch("/runs/{run_id}/judges/{judge_id}", response=j.RunJudgeOut, summary="Change a judge's budget")
def change_budget(request: HttpRequest, run_id: RunId, judge_id: RunId, payload: s.BudgetIn) -> dict[str, Any]:
    """A run that waits because a budget is used up goes on within a minute."""
    membership = require(request)
    given = payload.dict(exclude_unset=True)
    money = given.get("budget_money", budgets.KEEP)
    row = budgets.change(
        membership,
        access.judge_write(membership, run_id, judge_id),
        given.get("budget_tokens", budgets.KEEP),
        Decimal(str(money)) if isinstance(money, float) else money,
    )
    return shapes.run_judge(row, budgets.licences(row.run)[row.version_id])


@router.get(
    "/runs/{run_id}/reasons", response=j.ReasonsOut, summary="How far its matcher of reasons agrees with people"
)
def run_reasons(request: HttpRequest, run_id: RunId) -> dict[str, Any]:
    """And the judgement that waits to be matched, without what the matcher found."""
    return shapes.reasons(_read(request, run_id))


@router.post("/runs/{run_id}/reasons", response={201: j.ReasonsOut}, summary="Match the reasons of a judgement")
def match_reasons(request: HttpRequest, run_id: RunId, payload: j.ReasonsMatchedIn) -> Status[dict[str, Any]]:
    """409 where somebody has matched it meanwhile. The answer has the next one."""
    membership = require(request)
    run = access.run_read(membership, run_id)
    pairs = [f"{human}-{model}" for human, model in payload.matches]
    reason_matches.save(membership, run, payload.judgement, pairs)
    return Status(201, shapes.reasons(run))


@router.get("/runs/{run_id}/alarms", response=j.AlarmList, summary="Signs that its policy games its reward")
def run_alarms(request: HttpRequest, run_id: RunId) -> dict[str, Any]:
    """The newest step first; one of each sign."""
    return {"items": [shapes.alarm(each) for each in alarms.shown(_read(request, run_id))], "next": None}


@router.post(
    "/runs/{run_id}/alarms/{alarm_id}/people",
    response={202: j.AlarmAskedOut},
    summary="Send the responses of an alarm to people",
)
def ask_about_alarm(request: HttpRequest, run_id: RunId, alarm_id: RunId) -> Status[dict[str, int]]:
    """People grade them in the project that grades the run's responses, blind to the judge. A second call sends none."""
    membership = require(request)
    alarm = access.alarm_write(membership, run_id, alarm_id)
    return Status(202, {"sent": alarms.ask(membership, alarm.run, alarm)})


@router.get("/runs/{run_id}/people", response=j.PeopleOut, summary="How far people agree with its judge")
def run_people(request: HttpRequest, run_id: RunId) -> dict[str, Any]:
    """Of what `people.share` has drawn so far. The interval counts responses, not criteria."""
    return shapes.people(people.agreement(_read(request, run_id)))


@router.get("/runs/{run_id}/people/cases", response=j.GradedList, summary="What judge and people say, case by case")
def run_people_cases(
    request: HttpRequest, run_id: RunId, cursor: str | None = None, limit: Limit = 50
) -> dict[str, Any]:
    """Every response that was drawn, in the order they came, with the verdicts of its criteria. People are counted, not
    named."""
    found, following = people.cases(_read(request, run_id), cursor, limit)
    return {"items": [shapes.graded(each) for each in found], "next": following}


@router.post("/runs/{run_id}/fork", response={201: s.RunOut}, summary="Run again with changes")
def fork(
    request: HttpRequest,
    run_id: RunId,
    payload: s.ForkIn,
    idempotency_key: LaunchKey = None,
) -> Status[dict[str, Any]]:
    membership = require(request)
    new = services.fork(
        membership,
        access.run_write(membership, run_id),
        overrides=payload.config,
        dataset=s.choice(payload.dataset) if payload.dataset is not None else None,
        model=payload.model,
        experiment=payload.experiment,
        name=payload.name,
        start_step=payload.start_step,
        key=idempotency_key,
    )
    return Status(201, shapes.run(new))


@router.get("/runs/{run_id}/metrics", response=s.MetricsOut, summary="Every point of one metric")
def metrics(
    request: HttpRequest,
    run_id: RunId,
    key: Key,
    after_step: Step | None = None,
    limit: Annotated[int, Query(ge=1, le=queries.MAX_POINTS_PER_PAGE)] = queries.MAX_POINTS_PER_PAGE,
) -> dict[str, Any]:
    return queries.points(_read(request, run_id), key, after_step, limit)


@router.get("/runs/{run_id}/curves", response=s.CurvesOut, summary="Charts: thinned curves that keep every spike")
def curves(
    request: HttpRequest,
    run_id: RunId,
    named: Annotated[str | None, Query(alias="keys")] = None,  # ninja cannot have a parameter called `keys`
    max_points: Annotated[int, Query(ge=2, le=5000)] = 600,
) -> HttpResponse:
    """`keys`: metric keys separated by commas; all of them if left out."""
    found = queries.curves(_read(request, run_id), None if named is None else _split(named), max_points)
    return HttpResponse(found, content_type="application/json; charset=utf-8")


@router.get(
    "/runs/{run_id}/histograms", response=s.MetricHistogramsOut, summary="One metric's histograms over the steps"
)
def histograms(request: HttpRequest, run_id: RunId, key: Key) -> dict[str, Any]:
    return queries.histograms(_read(request, run_id), key)


@router.get("/runs/{run_id}/rollouts", response=s.RolloutList, summary="Sampled responses with their verdicts")
def list_rollouts(
    request: HttpRequest,
    run_id: RunId,
    wanted: Query[s.RolloutFilters],
    sort: rollouts.Sort | None = None,
    cursor: str | None = None,
    limit: Annotated[int, Query(ge=1, le=100)] = 20,
) -> dict[str, Any]:
    """Without `step`, filters look at the newest 20,000 rollouts; `oldest_step` then says how far back that was."""
    found = rollouts.rollouts(_read(request, run_id), wanted.filters(), sort=sort, cursor=cursor, limit=limit)
    return {
        "items": [shapes.rollout(row) for row in found.items],
        "next": found.next,
        "oldest_step": found.oldest_step,
    }


@router.get("/runs/{run_id}/rollouts/facets", response=s.FacetsOut, summary="What rollouts can be filtered by")
def rollout_facets(request: HttpRequest, run_id: RunId, step: Step | None = None) -> dict[str, Any]:
    return rollouts.facets(_read(request, run_id), step)


@router.post(
    "/runs/{run_id}/rollouts/dataset",
    response={202: s.RolloutDatasetOut},
    summary="Make a dataset of what it has sampled",
)
def make_dataset(request: HttpRequest, run_id: RunId, payload: s.RolloutDatasetIn) -> Status[dict[str, Any]]:
    """One example per prompt, with the responses, their rewards in `meta.rewards`, the model and the steps. A worker gathers
    them: follow `GET imports/{import_id}`, whose `origin` then says how many there are and what was left out, why."""
    membership = require(request, Role.RESEARCHER)
    given = payload.model_dump()
    name = given.pop("name")
    job = rollout_datasets.start(membership, access.run_read(membership, run_id), Wanted(**given), name)
    return Status(202, {"import_id": job.pk, "dataset": job.dataset_name})


@router.get("/runs/{run_id}/log", response=s.LogOut, summary="The log's newest lines, or those after one")
def log(
    request: HttpRequest,
    run_id: RunId,
    after_seq: Annotated[int | None, Query(ge=0, lt=2**63)] = None,
    before_seq: Annotated[int | None, Query(ge=0, lt=2**63)] = None,
) -> dict[str, Any]:
    """`before_seq`: the lines just before that one, to read backwards."""
    return queries.log(_read(request, run_id), after_seq, before_seq=before_seq)


@router.get("/runs/{run_id}/artifacts", response=s.ArtifactList, summary="Checkpoints and models it left behind")
def artifacts(request: HttpRequest, run_id: RunId, cursor: str | None = None, limit: Limit = 50) -> dict[str, Any]:
    """`present` is false where the files are gone: a run keeps only its newest checkpoints."""
    rows = Artifact.objects.filter(run=_read(request, run_id)).select_related("registered")
    found = page(rows, cursor, limit)
    return {"items": [shapes.artifact(row, outputs.is_there(row)) for row in found.items], "next": found.next}


@router.get(
    "/runs/{run_id}/artifacts/{artifact_id}/download",
    summary="The files of an artifact",
    openapi_extra=sends("application/x-tar", "application/octet-stream", ranges=True),
)
def download_artifact(request: HttpRequest, run_id: RunId, artifact_id: RunId) -> HttpResponseBase:
    """A folder comes as an uncompressed tar. A download that broke off goes on with `Range` (`curl -C -`)."""
    membership = require(request)
    row = access.artifact_read(membership, run_id, artifact_id)
    found = outputs.download(row)
    audit.record(membership, membership.user, "artifact.downloaded", row, run=run_id)
    return respond(request, found)


@router.post(
    "/runs/{run_id}/artifacts/{artifact_id}/export",
    response={201: WeightsJobOut},
    summary="Make a model of the registry out of a kept checkpoint",
)
def export_artifact(request: HttpRequest, run_id: RunId, artifact_id: RunId) -> Status[WeightsJob]:
    """A job of the cluster does it: follow it under `/weights-jobs`. 409 where the checkpoint is gone."""
    membership = access.may_write(require(request))
    return Status(201, exporting.export(membership, access.artifact_read(membership, run_id, artifact_id)))


@router.post(
    "/models/{model_id}/judge",
    response={201: JudgeVersionOut},
    summary="Use a trained judge or rubric writer as a judge",
    tags=["judges"],
)
def model_as_judge(request: HttpRequest, model_id: RunId, payload: j.TrainedJudgeIn) -> Status[JudgeVersion]:
    """A judge with the prompt and the reader that the run trained the model with, and an endpoint with its weights. What was
    made before is answered again. 409 where the model is no output of a run that trains judges, or its files are gone."""
    membership = require(request)
    return Status(201, trained_judges.use(membership, model_write(membership, model_id), payload.name))


def _read(request: HttpRequest, run_id: int) -> Run:
    return access.run_read(require(request), run_id)


def _split(keys: str) -> list[str]:
    return [key.strip() for key in keys.split(",") if key.strip()]
