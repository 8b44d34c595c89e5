"""Pages of runs. Reading needs the role reviewer, changing anything researcher; foreign runs are 404."""

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from trainer.config import RECIPES, ConfigInvalid
from trainer.contracts.counted import counted
from webapp.accounts.access import member, require
from webapp.accounts.models import Role
from webapp.annotation import access as annotation
from webapp.core.numbers import whole
from webapp.core.problems import Problem
from webapp.datasets.leakage import leaks
from webapp.inference.access import model_write

from . import (
    access,
    alarms,
    answers_to_model,
    budgets,
    choices,
    declared,
    gallery,
    pages,
    people,
    queries,
    reason_matches,
    rollout_datasets,
    services,
    shapes,
    starting_points,
    trained_judges,
)
from .forms import RunForm
from .models import ClaimRun, RunTag
from .states import ALIVE, OVER, State

TABS = ("charts", "rollouts", "log", "config", "lineage")
MAX_COMPARED = 8


@member(access.WRITER)
@never_cache
@require_http_methods(["GET", "POST"])
def run_new(request: HttpRequest) -> HttpResponseBase:
    membership = require(request)
    if request.method == "POST":
        return _submitted(request, RunForm.posted(membership, request.POST))
    dataset = request.GET.get("dataset", "")[:120].replace("\0", "")
    if request.GET.get("recipe") not in RECIPES:
        return _gallery(request, dataset)
    form = RunForm.blank(membership, request.GET["recipe"], dataset)
    form.experiment = request.GET.get("experiment", "")[:120]
    form.fill({path[3:]: value for path, value in request.GET.items() if path.startswith("at.")})
    return render(request, "experiments/run_new.html", {"form": form})


def _gallery(request: HttpRequest, dataset: str) -> HttpResponseBase:
    """What a run can do, with what the chosen version holds for it."""
    workspace_id = require(request).workspace_id
    version = choices.named_version(workspace_id, dataset) or choices.newest_version(workspace_id)
    context = {
        "version": version,
        "datasets": gallery.datasets(workspace_id, version),
        "cards": gallery.cards(workspace_id, version),
        **(leaks.of(version) if version else {}),
        "experiment": request.GET.get("experiment", "")[:120],
    }
    return render(request, "experiments/gallery.html", context)


@member(access.WRITER)
@never_cache
@require_GET
def trainable(request: HttpRequest) -> HttpResponseBase:
    """A fragment for a dataset's page: what this version can train, with counts."""
    workspace_id = require(request).workspace_id
    version = choices.named_version(workspace_id, request.GET.get("dataset", ""))
    if version is None:
        raise Http404("no such version")
    cards = gallery.cards(workspace_id, version)
    context = {
        "version": version,
        "cards": cards,
        "counting": any(card.fit is None for card in cards),
        "nothing": not any(card.fit and card.fit.ok for card in cards),
    }
    return render(request, "experiments/_trainable.html", context)


@member(access.READER)
@never_cache
@require_GET
def trained(request: HttpRequest) -> HttpResponseBase:
    """A fragment for the pages of a version: the runs that it has trained, and the models that they left behind."""
    workspace_id = require(request).workspace_id
    version = choices.named_version(workspace_id, request.GET.get("dataset", ""))
    if version is None:
        raise Http404("no such version")
    runs, more = queries.trained_by(version)
    return render(request, "experiments/_trained.html", {"version": version, "runs": runs, "more": more})


@member(access.WRITER)
@never_cache
@require_http_methods(["GET", "POST"])
def run_fork(request: HttpRequest, run_id: int) -> HttpResponseBase:
    """The form filled in as run `run_id` was; what is changed is marked."""
    membership = require(request)
    run = access.run_write(membership, run_id)
    if request.method == "POST":
        return _submitted(request, RunForm.posted(membership, request.POST, forked_from=run))
    start = whole(request.GET.get("step", ""), 9) or 0
    if start and not any(each.step == start for each in starting_points.checkpoints(run)):
        messages.info(request, f"{run} no longer keeps its checkpoint of step {start}: this form begins anew.")
        start = 0
    return render(request, "experiments/run_new.html", {"form": RunForm.of_run(membership, run, start)})


def _submitted(request: HttpRequest, form: RunForm) -> HttpResponse:
    """Launches on the launch button; every other change only checks and draws the form again."""
    action = request.POST.get("action", "")
    if action == "launch":
        run = form.launch()
        if run is not None:
            if request.headers.get("HX-Request"):
                return HttpResponse(status=204, headers={"HX-Redirect": f"/runs/{run.id}"})
            return redirect("run", run.id)
    else:
        form.check()
    if request.headers.get("HX-Request"):
        return render(request, "experiments/_form.html", {"form": form})
    return render(request, "experiments/run_new.html", {"form": form}, status=422 if form.problems else 200)


@member(access.READER)
@never_cache
@require_GET
def run_page(request: HttpRequest, run_id: int, tab: str = "charts") -> HttpResponseBase:
    if tab not in TABS:
        raise Http404("no such tab")
    membership = require(request)
    run = access.run_read(membership, run_id)
    may_write = membership.may(Role.RESEARCHER)
    context = {
        "run": run,
        "tab": tab,
        "tabs": TABS,
        "data": {**shapes.run(run, config=False), "may_write": may_write},
        "result": declared.result(run),
        "brief": declared.brief(run),
        "claim": ClaimRun.objects.select_related("study").filter(run=run).first(),
        "stats": pages.stats(run),
        "recipe_metrics": declared.metrics(run.recipe),
        "samples": declared.SAMPLES[declared.samples(run.recipe)],
        "viewer": declared.samples(run.recipe),
        "people": people.agreement(run),
        "alarms": alarms.shown(run),
        "tags": list(RunTag.objects.filter(run=run).order_by("name").values_list("name", flat=True)),
        "matches_reasons": reason_matches.matches_reasons(run),
        "agreements": reason_matches.agreements(run) if reason_matches.matches_reasons(run) else [],
        "may_write": may_write,
        "may_make_dataset": may_write and rollout_datasets.asked_the_data(run),
        "can_stop": run.state in ALIVE | {State.QUEUED} and run.state != State.STOPPING,
        "can_resume": run.state in (State.STOPPED, State.FAILED),
        "is_over": run.state in OVER,
        "can_extend": run.state in (State.FINISHED, State.STOPPED),
        "command": pages.curl(run),
        "judges": budgets.shown(run),
        "licences": list(budgets.licences(run).values()),
    }
    if run.state == State.FAILED:
        context["last_lines"] = pages.last_lines(run)
    if tab == "config":
        context["config_rows"] = pages.config_rows(run)
    if tab == "lineage":
        context["lineage"] = pages.lineage(run)
    if tab == "charts":
        context["phases"] = declared.phases(run)
    return render(request, f"experiments/run_{tab}.html", context)


@member(access.READER)
@never_cache
@require_GET
def run_people(request: HttpRequest, run_id: int) -> HttpResponseBase:
    """A fragment: how far people agree with the run's judge, as it goes and after its end."""
    run = access.run_read(require(request), run_id)
    found = people.agreement(run)
    if found is None:
        raise Http404("nobody is asked")
    return render(request, "experiments/_people.html", {"run": run, "people": found})


@member(access.READER)
@never_cache
@require_GET
def run_alarms(request: HttpRequest, run_id: int) -> HttpResponseBase:
    """A fragment: the alarms of a run as they come."""
    membership = require(request)
    run = access.run_read(membership, run_id)
    context = {"run": run, "alarms": alarms.shown(run), "may_write": membership.may(Role.RESEARCHER)}
    return render(request, "experiments/_alarms.html", context | {"is_over": run.state in OVER})


@member(access.WRITER)
@require_POST
def run_alarm_people(request: HttpRequest, run_id: int, alarm_id: int) -> HttpResponseBase:
    """One click from an alarm to tasks for people."""
    membership = require(request)
    alarm = access.alarm_write(membership, run_id, alarm_id)
    try:
        sent = alarms.ask(membership, alarm.run, alarm)
    except Problem as problem:
        messages.error(request, problem.message)
        return redirect("run", run_id)
    told = f"{counted(sent, 'responses')} went to people." if sent else "These responses went to people before."
    messages.success(request, told)
    return redirect("run", run_id)


@member(access.READER)
@never_cache
@require_GET
def run_judges(request: HttpRequest, run_id: int) -> HttpResponseBase:
    """A fragment: what the judges have used, as it goes."""
    membership = require(request)
    run = access.run_read(membership, run_id)
    if not (judges := budgets.shown(run)):
        raise Http404("no judge is asked")
    context = {"run": run, "judges": judges, "is_over": run.state in OVER, "may_write": membership.may(Role.RESEARCHER)}
    return render(request, "experiments/_judges.html", context)


@member(access.WRITER)
@require_POST
def run_stop(request: HttpRequest, run_id: int) -> HttpResponseBase:
    """A second press finds the run stopping, or over, and changes nothing."""
    membership = require(request)
    services.stop(membership, access.run_write(membership, run_id))
    return redirect("run", run_id)


@member(access.WRITER)
@require_POST
def run_resume(request: HttpRequest, run_id: int) -> HttpResponseBase:
    """A second press, or a press on a page that has aged, finds the run under way and only shows it."""
    membership = require(request)
    try:
        services.resume(membership, access.run_write(membership, run_id))
    except Problem as problem:
        messages.info(request, problem.message)
    return redirect("run", run_id)


@member(access.WRITER)
@require_POST
def run_rollouts_dataset(request: HttpRequest, run_id: int) -> HttpResponseBase:
    """Makes a dataset of rollouts; the import's page says how far it is."""
    membership = require(request)
    run = access.run_read(membership, run_id)
    try:
        wanted = rollout_datasets.wanted_of(request.POST.dict())
        job = rollout_datasets.start(membership, run, wanted, request.POST.get("name", ""))
    except Problem as problem:
        messages.error(request, " ".join([problem.message, *(f"{path} {why}." for path, why in _fields(problem))]))
        return redirect("run_tab", run_id, "rollouts")
    return redirect("import_job", job.pk)


def _fields(problem: Problem) -> list[tuple[str, str]]:
    return [(path.capitalize(), why) for path, why in (problem.fields or {}).items()]


@member(access.WRITER)
@require_POST
def run_extend(request: HttpRequest, run_id: int) -> HttpResponseBase:
    """More steps for a run that is over; a second press finds it under way."""
    membership = require(request)
    try:
        services.extend(membership, access.run_write(membership, run_id), whole(request.POST.get("steps", ""), 9) or 0)
    except ConfigInvalid as error:
        messages.error(request, "; ".join(problem.message for problem in error.problems))
    except Problem as problem:
        messages.error(request, problem.message)
    return redirect("run", run_id)


@member(access.WRITER)
@require_POST
def run_budget(request: HttpRequest, run_id: int, judge_id: int) -> HttpResponseBase:
    """New limits for a judge of the run; an empty field is no limit."""
    membership = require(request)
    row = access.judge_write(membership, run_id, judge_id)
    try:
        budgets.change(membership, row, *pages.budget(request.POST))
    except Problem as problem:
        messages.error(request, "; ".join(problem.fields.values()) or problem.message)
    return redirect("run", run_id)


@member(access.WRITER)
@require_POST
def run_rename(request: HttpRequest, run_id: int) -> HttpResponseBase:
    membership = require(request)
    run = access.run_write(membership, run_id)
    try:
        services.rename(membership, run, request.POST.get("name", ""))
    except Problem as problem:
        messages.error(request, problem.fields.get("name", problem.message))
    return redirect("run", run_id)


@member(access.WRITER)
@require_POST
def run_delete(request: HttpRequest, run_id: int) -> HttpResponseBase:
    membership = require(request)
    run = access.run_write(membership, run_id)
    title = str(run)
    try:
        services.delete(membership, run)
    except Problem as problem:
        messages.error(request, problem.message)
        return redirect("run", run_id)
    messages.success(request, f"Deleted {title}.")
    return redirect("runs")


@member(access.READER)
@never_cache
@require_GET
def compare(request: HttpRequest) -> HttpResponseBase:
    """`?ids=1,2` or `?ids=1&ids=2`, at most 8 runs."""
    membership = require(request)
    parts = [part for value in request.GET.getlist("ids") for part in value.split(",") if part.strip()]
    ids = list(dict.fromkeys(part.strip() for part in parts))[:MAX_COMPARED]
    numbers = [whole(part) for part in ids]
    if None in numbers:
        raise Http404("not run ids")
    chosen = [access.run_read(membership, number) for number in numbers if number is not None]
    if len(chosen) < 2:
        messages.info(request, "Choose at least two runs to compare.")
        return redirect("runs")
    context = {"runs": chosen, "comparison": pages.comparison(chosen), "ids": ",".join(ids)}
    return render(request, "experiments/compare.html", context)


@member(access.WRITER)
@require_POST
def train_on_answers(request: HttpRequest, project_id: int) -> HttpResponseBase:
    """One click from people's comparisons to a reward model that learns from them."""
    membership = require(request)
    project = annotation.project_write(membership, project_id)
    try:
        run = answers_to_model.train(membership, project)
    except ConfigInvalid as error:
        messages.error(request, f"The run was not started. {'; '.join(each.message for each in error.problems)}")
        return redirect("project_answers", project.pk)
    except Problem as problem:
        messages.error(request, problem.message)
        return redirect("project_answers", project.pk)
    return redirect("run", run.pk)


@member(access.WRITER)
@require_POST
def model_as_judge(request: HttpRequest, model_id: int) -> HttpResponseBase:
    """One click from a trained judge or rubric writer to a version of a judge; a second one leads to the same."""
    membership = require(request)
    model = model_write(membership, model_id)
    try:
        version = trained_judges.use(membership, model)
    except Problem as problem:
        messages.error(request, problem.message)
        return redirect("model", model_id)
    messages.success(request, f"{version} answers as {model} was trained to. Audit it before it rewards anything.")
    return redirect("judge", version.judge_id)
