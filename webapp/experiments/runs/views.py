"""Pages of runs: the list, one run by tabs, and runs side by side."""

from typing import Any
from uuid import uuid4

from django.http import Http404, HttpRequest, HttpResponseBase
from django.shortcuts import redirect, render
from django.utils import timezone
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

from trainer.config import RECIPES
from webapp.accounts.access import member, require
from webapp.accounts.models import Membership, Role
from webapp.core.problems import Problem

from .. import access, recipe_metrics, serializers
from ..after import drawing
from ..after import queries as chains
from ..alarms import services as alarms
from ..charts import axes
from ..charts import queries as charts
from ..launch import checks, discarding, drafts
from ..launch.typed_limits import TypedLimits
from ..lifecycle import step_times, token_limit, utc_times
from ..lifecycle.limits import RunLimits
from ..lifecycle.services import RESUMABLE
from ..lifecycle.states import WORKING, State
from ..metrics import curves
from ..models import ACTIVE, ALIVE, OVER, ClaimRun, Run, RunTag, SweepRun
from ..outputs import starting_points
from ..people import human_grades, reason_matches
from ..recipes import choices
from ..rewards import budgets
from ..rollouts import datasets
from . import history, pages
from . import queries as runs_queries

TABS = ("charts", "rollouts", "log", "config", "lineage", "chain", "history")
LOGGED_TABS = ("charts", "config", "lineage", "history")


def _what_can_be_done(run: Run, may_write: bool) -> dict[str, bool]:
    return {
        "may_write": may_write,
        "may_make_dataset": may_write and not run.is_logged and datasets.asked_the_data(run),
        "can_stop": run.state in ACTIVE and run.state != State.STOPPING,
        "can_pause": run.state in WORKING | {State.QUEUED} and not run.is_logged,
        "can_schedule": run.state not in ALIVE and not run.is_logged,
        "can_resume": run.state in RESUMABLE and not run.is_logged,
        "is_over": run.state in OVER,
        "can_extend": run.state in (State.FINISHED, State.STOPPED) and not run.is_logged,
    }


def _of_tab(membership: Membership, run: Run, tab: str, cursor: str | None) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if run.state == State.FAILED:
        found["last_lines"] = pages.last_lines(run)
        found["resuming"] = starting_points.resuming(run)
    if tab == "config":
        found["config_rows"] = pages.config_rows(run)
    if tab == "lineage":
        found["lineage"] = pages.lineage(run)
    if tab == "charts":
        found["phases"] = recipe_metrics.phases(run)
        found["charts"] = charts.shown(membership, run) | {
            "axes": axes.axes(run),
            "keys": curves.curve_keys(run.id),
            "may_write": membership.may(Role.RESEARCHER),
        }
    if tab == "chain":
        nodes = chains.chain(run)
        found["chain"], found["recipes"] = [each for each in nodes if not each.before], list(RECIPES.values())
        found["picture"] = drawing.picture(nodes) if len(nodes) > 1 else None
        found["also_choices"] = chains.joinable(run)
        found["judges_offered"] = chains.judges(run.experiment.workspace_id)
        found["key"] = uuid4().hex
    if tab == "history":
        try:
            found["history"], found["older"] = history.events(run, cursor)
            found["later"] = cursor
        except Problem:  # a cursor of another list, cut or typed by hand: begin at the beginning
            found["history"], found["older"] = history.events(run)
    return found


@member(access.READER)
@never_cache
@require_GET
def run_page(request: HttpRequest, run_id: int, tab: str = "charts") -> HttpResponseBase:
    membership = require(request)
    try:
        run = access.run_read(membership, run_id)
    except Http404:
        return _discarded_page(request, membership, run_id)
    if run.is_draft:
        return _draft_page(request, membership, run) if tab == "charts" else redirect("run", run_id)
    tabs = LOGGED_TABS if run.is_logged else TABS
    if tab not in TABS:
        raise Http404("no such tab")
    if tab not in tabs:  # an address of a notice or of a person, who need not know how the run came here
        return redirect("run", run_id)
    context = _context(membership, run, tab, tabs) | _of_tab(membership, run, tab, request.GET.get("cursor"))
    return render(request, f"experiments/run_{tab}.html", context)


def _context(membership: Membership, run: Run, tab: str, tabs: tuple[str, ...]) -> dict[str, Any]:
    """All that every tab shows of the run."""
    may_write, shown = membership.may(Role.RESEARCHER), alarms.described_alarms(run)
    return {
        "run": run,
        "tab": tab,
        "tabs": tabs,
        "data": {**serializers.run(run, config=False), "may_write": may_write, "expected_s": _expected(run)},
        "result": recipe_metrics.result(run),
        "brief": recipe_metrics.brief(run),
        "claim": ClaimRun.objects.select_related("study").filter(run=run).first(),
        "swept": SweepRun.objects.select_related("trial__sweep").filter(run=run).first(),
        "stats": pages.stats(run),
        "has_siblings": pages.has_siblings(run),
        "recipe_metrics": recipe_metrics.metrics(run.recipe, recipe_metrics.unmeasured(run)),
        "samples": recipe_metrics.samples_title(run.recipe),
        "viewer": recipe_metrics.samples(run.recipe),
        "people": human_grades.agreement(run),
        "alarms": shown,
        "alarms_title": alarms.heading(shown),
        "tags": _tags(run),
        "matches_reasons": reason_matches.matches_reasons(run),
        "agreements": reason_matches.agreements(run) if reason_matches.matches_reasons(run) else [],
        **_what_can_be_done(run, may_write),
        "command": "" if run.is_logged else pages.curl(run),
        "judges": (judges := budgets.judge_budgets(run)),
        "spent": budgets.spending_of(judges),
        "generated": token_limit.generated(run),
        **_early(run),
        "not_before": utc_times.field(run.not_before),
        "repeated": may_write and run.repeats.exists(),
        "limit_hours": run.time_limit.total_seconds() / 3600 if run.time_limit else "",
        "licences": list(budgets.licences(run).values()),
    }


def _discarded_page(request: HttpRequest, membership: Membership, run_id: int) -> HttpResponseBase:
    name = discarding.restorable_name(membership, run_id)
    if name is None:
        raise Http404("no such run")
    context: dict[str, Any] = {"name": name, "run_id": run_id, "may_write": membership.may(Role.RESEARCHER)}
    return render(request, "experiments/run_discarded.html", context, status=404)


def _draft_page(request: HttpRequest, membership: Membership, run: Run) -> HttpResponseBase:
    kept, rows = drafts.of_run(run), pages.config_rows(run)
    context = {
        "run": run,
        "recipe": RECIPES.get(run.recipe),
        "version": checks.version_of(membership, kept.dataset),
        "problems": drafts.problems(membership, run),
        "limits": kept.limits.words(run.recipe) if kept.limits else "",
        "config_rows": rows,
        "changed_rows": [row for row in rows if row.changed],
        "may_write": membership.may(Role.RESEARCHER),
        "tags": _tags(run),
        "history": history.events(run)[0],
    }
    return render(request, "experiments/run_draft.html", context)


def _tags(run: Run) -> list[str]:
    return list(RunTag.objects.filter(run=run).order_by("name").values_list("name", flat=True))


def _early(run: Run) -> dict[str, Any]:
    """The rule by which the run stops early, and what its dialog offers."""
    limits, rule = TypedLimits.of_run(run), RunLimits.of_run(run).stop_early
    words = rule.words(run.recipe) if rule else ""
    return {"early": words, "early_typed": limits.early, "early_metrics": limits.metrics}


def _expected(run: Run) -> float | None:
    """Seconds that the run takes, by earlier runs like it, while its own process has not said so; None if that is not known."""
    if run.state not in (Run.State.QUEUED, Run.State.STARTING, Run.State.RUNNING) or run.eta_s is not None:
        return None
    return serializers.within_limit(
        run, step_times.seconds_left(run, step_times.step_s([run]).get(run.pk)), timezone.now()
    )


@member(access.READER)
@never_cache
@require_GET
def trained(request: HttpRequest) -> HttpResponseBase:
    """A fragment for the pages of a version: the runs that it has trained, and the models that they left."""
    workspace_id = require(request).workspace_id
    version = choices.named_version(workspace_id, request.GET.get("dataset", ""))
    if version is None:
        raise Http404("no such version")
    runs, more = runs_queries.trained_by(version)
    return render(request, "experiments/_trained.html", {"version": version, "runs": runs, "more": more})
