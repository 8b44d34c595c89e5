"""Pages of evaluations. Reading needs the role reviewer, changing anything researcher; foreign ones are 404."""

from typing import Any
from uuid import uuid4

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import get_object_or_404, redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from trainer.config.errors import ConfigInvalid
from webapp.accounts.access import member, require
from webapp.accounts.models import Membership, Role
from webapp.core import audit, sure
from webapp.core.numbers import whole
from webapp.core.paging import page
from webapp.core.problems import Invalid, Problem

from . import access, asking, export, leaders, leaking, pages, queries, services, studies
from .forms import EvaluationForm
from .models import Evaluation
from .recipes import RECIPES

State = Evaluation.State
PAGE = 50
EXPORTS = {"json": export.as_json, "html": export.as_html, "csv": export.as_csv}


@member(access.READER)
@never_cache
@require_GET
def evaluations(request: HttpRequest) -> HttpResponseBase:
    """All evaluations of the workspace, newest first, each with its headline number."""
    membership = require(request)
    filters = {name: request.GET.get(name, "").strip().replace("\0", "") for name in ("q", "state", "recipe")}
    found = queries.filtered(
        membership.workspace_id, state=filters["state"], recipe=filters["recipe"], words=filters["q"]
    )
    try:
        listed = page(found, request.GET.get("cursor"), PAGE)
    except Problem:  # a cursor of another list, cut or typed by hand: begin at the beginning
        return redirect("evaluations")
    headlines = queries.headlines([row.pk for row in listed.items])
    rest = request.GET.copy()
    rest["cursor"] = listed.next or ""
    context = {
        "rows": [(row, headlines.get(row.pk), RECIPES.get(row.recipe)) for row in listed.items],
        "filters": filters,
        "filtered": any(filters.values()),
        "states": State.choices,
        "recipes": RECIPES.values(),
        "next": rest.urlencode() if listed.next else "",
        "may_write": membership.may(Role.RESEARCHER),
        "request_key": uuid4().hex,
    }
    return render(request, "evaluation/evaluations.html", context)


@member(access.WRITER)
@never_cache
@require_http_methods(["GET", "POST"])
def evaluation_new(request: HttpRequest) -> HttpResponseBase:
    """Without a recipe the choice of recipes, with one its form."""
    membership = require(request)
    recipe = request.GET.get("recipe", "")
    if recipe not in RECIPES:
        return render(request, "evaluation/choose.html", {"recipes": RECIPES.values()})
    if request.method == "POST":
        return _submitted(request, EvaluationForm.posted(membership, recipe, request.POST))
    return render(request, "evaluation/new.html", {"form": EvaluationForm.blank(membership, recipe, request.GET)})


@member(access.WRITER)
@never_cache
@require_http_methods(["GET", "POST"])
def evaluation_again(request: HttpRequest, evaluation_id: int) -> HttpResponseBase:
    """The form filled in as that evaluation was; what is changed is marked."""
    membership = require(request)
    row = access.evaluation_write(membership, evaluation_id)
    if row.recipe not in RECIPES:
        raise Http404("this recipe is no longer known")
    if request.method == "POST":
        return _submitted(request, EvaluationForm.posted(membership, row.recipe, request.POST, row))
    return render(request, "evaluation/new.html", {"form": EvaluationForm.of(membership, row)})


def _submitted(request: HttpRequest, form: EvaluationForm) -> HttpResponse:
    if request.POST.get("action") == "start":
        row = form.create()
        if row is not None:
            if request.headers.get("HX-Request"):
                return HttpResponse(status=204, headers={"HX-Redirect": reverse("evaluation", args=[row.pk])})
            return redirect("evaluation", row.pk)
    else:
        form.check()
    if request.headers.get("HX-Request"):
        return render(request, "evaluation/_form.html", {"form": form})
    return render(request, "evaluation/new.html", {"form": form}, status=422 if form.problems else 200)


@member(access.WRITER)
@require_POST
def recording_new(request: HttpRequest) -> HttpResponseBase:
    """Takes a file of recorded verdicts and goes on with the form that it is for."""
    membership = require(request)
    recipe = request.POST.get("recipe", "")
    recipe = recipe if recipe in RECIPES else "judge_audit"
    file = request.FILES.get("file")
    try:
        if file is None:
            raise Invalid("Nothing was sent.", {"file": "choose a file of recorded verdicts"})
        row = services.store_recording(membership, (file.name or "")[:100], file.read(services.MAX_RECORDING + 1))
    except Invalid as problem:
        form = EvaluationForm.blank(membership, recipe, request.GET)
        refused = f"{problem.message} {problem.fields.get('file', '')}"
        return render(request, "evaluation/new.html", {"form": form, "refused": refused}, status=422)
    return redirect(f"{reverse('evaluation_new')}?recipe={recipe}&recording={row.pk}")


@member(access.READER)
@never_cache
@require_GET
def evaluation(request: HttpRequest, evaluation_id: int) -> HttpResponseBase:
    """What it found, or how far it is."""
    context = _context(request, evaluation_id, "result")
    row = context["evaluation"]
    if row.recipe == "rubricbench" and row.state == State.FINISHED:
        context["studies"] = list(studies.studies(row)[:PAGE])
    if row.recipe in RECIPES:
        context["leaking"] = leaking.told(row.workspace_id, RECIPES[row.recipe], row.config, row.dataset_version)
    return render(request, "evaluation/result.html", context)


@member(access.READER)
@never_cache
@require_GET
def evaluation_state(request: HttpRequest, evaluation_id: int) -> HttpResponseBase:
    """The state and progress as a fragment; once it is over the page is loaded anew."""
    context = _context(request, evaluation_id, "result")
    if context["evaluation"].state in services.OVER and request.GET.get("was") not in services.OVER:
        return HttpResponse(status=204, headers={"HX-Refresh": "true"})
    return render(request, "evaluation/_state.html", context)


@member(access.READER)
@never_cache
@require_GET
def evaluation_cases(request: HttpRequest, evaluation_id: int) -> HttpResponseBase:
    """The cases that carry every `tag` that is asked for."""
    context = _context(request, evaluation_id, "cases")
    row = context["evaluation"]
    tags = [tag for tag in request.GET.getlist("tag") if tag][: queries.MAX_TAGS]
    try:
        listed = queries.cases(row, tags, request.GET.get("cursor"))
    except Problem:
        return redirect("evaluation_cases", row.pk)
    known = (row.results or {}).get("tags", {})
    rest = request.GET.copy()
    rest["cursor"] = listed.next or ""
    context |= {
        "cases": listed.items,
        "tags": tags,
        "facets": pages.facets(known, tags),
        "total": queries.count_cases(row, tags),
        "next": rest.urlencode() if listed.next else "",
    }
    return render(request, "evaluation/cases.html", context)


@member(access.READER)
@never_cache
@require_GET
def evaluation_case(request: HttpRequest, evaluation_id: int, number: int) -> HttpResponseBase:
    """One case: prompt, responses, and what was said about them, down to the raw text."""
    membership = require(request)
    case = access.case_read(membership, evaluation_id, number)
    context = _context(request, evaluation_id, "cases") | pages.case(case)
    return render(request, "evaluation/case.html", context)


@member(access.READER)
@never_cache
@require_GET
def evaluation_compare(request: HttpRequest, evaluation_id: int) -> HttpResponseBase:
    """All that the models said to one prompt, side by side."""
    context = _context(request, evaluation_id, "cases")
    found = pages.side_by_side(context["evaluation"], request.GET.get("example", "").replace("\0", ""))
    if found is None:
        raise Http404("no model answered such an example")
    return render(request, "evaluation/compare.html", context | found)


@member(access.READER)
@never_cache
@require_GET
def evaluation_config(request: HttpRequest, evaluation_id: int) -> HttpResponseBase:
    context = _context(request, evaluation_id, "config")
    context |= {"config_rows": pages.config_rows(context["evaluation"]), "rerun_key": uuid4().hex}
    context["asks_judges"] = pages.asks_judges(context["evaluation"])
    return render(request, "evaluation/config.html", context)


@member(access.READER)
@require_GET
def evaluation_export(request: HttpRequest, evaluation_id: int, kind: str) -> HttpResponseBase:
    """`json`: everything with all cases; `html`: one file that needs nothing else; `csv`: a line for each number."""
    membership = require(request)
    row = access.evaluation_read(membership, evaluation_id)
    if kind not in EXPORTS or (kind == "csv" and (row.results is None or row.recipe not in RECIPES)):
        raise Http404("no such export")
    audit.record(membership, membership.user, "evaluation.exported", row, format=kind)
    return EXPORTS[kind](row)


@member(access.WRITER)
@require_POST
def evaluation_rerun(request: HttpRequest, evaluation_id: int) -> HttpResponseBase:
    """Exactly the same again, from the stored config; with `resample`, judges are asked anew."""
    membership = require(request)
    row = access.evaluation_write(membership, evaluation_id)
    try:
        key, resample = request.POST.get("key", "")[:64] or None, request.POST.get("resample") == "1"
        again = services.rerun(membership, row, key, resample=resample)
    except (Problem, ConfigInvalid) as problem:
        messages.error(request, f"It cannot be run again as it was: {problem}")
        return redirect("evaluation_config", evaluation_id)
    return redirect("evaluation", again.pk)


@member(access.WRITER)
@require_POST
def evaluation_tasks(request: HttpRequest, evaluation_id: int) -> HttpResponseBase:
    """The examples of the cases that carry every `tag` become a project, which opens."""
    membership = require(request)
    row = access.evaluation_write(membership, evaluation_id)
    try:
        project = asking.make_tasks(
            membership,
            row,
            request.POST.getlist("tag"),
            name=request.POST.get("name", ""),
            kind=request.POST.get("kind", "pairwise"),
            overlap=whole(request.POST.get("overlap", "2"), 3) or 0,
        )
    except Problem as problem:
        reasons = "; ".join(problem.fields.values())
        messages.error(request, f"{problem.message} {reasons}")
        return redirect("evaluation_cases", evaluation_id)
    return redirect("project", project.pk)


@member(access.WRITER)
@require_POST
def evaluation_study(request: HttpRequest, evaluation_id: int) -> HttpResponseBase:
    """People judge the pairs by either rubric: the project in two arms, which opens."""
    membership = require(request)
    row = access.evaluation_write(membership, evaluation_id)
    number = whole(request.POST.get("people", "1"), 3) or 0
    try:
        project = studies.make(membership, row, name=request.POST.get("name", ""), people=number)
    except Problem as problem:
        messages.error(request, f"{problem.message} {'; '.join(problem.fields.values())}")
        return redirect("evaluation", evaluation_id)
    return redirect("project", project.pk)


@member(access.WRITER)
@require_POST
def evaluation_study_read(request: HttpRequest, evaluation_id: int, project_id: int) -> HttpResponseBase:
    """An evaluation of the answers that a study has by now."""
    membership = require(request)
    row = access.evaluation_write(membership, evaluation_id)
    project = get_object_or_404(studies.studies(row), pk=project_id)
    return redirect("evaluation", studies.read(membership, project, request.POST.get("key", "")[:64] or None).pk)


@member(access.READER)
@never_cache
@require_GET
def leaderboards(request: HttpRequest) -> HttpResponseBase:
    """The benchmarks that something was measured on."""
    boards = leaders.boards(require(request).workspace_id)
    return render(request, "evaluation/leaderboards.html", {"boards": boards})


@member(access.READER)
@never_cache
@require_GET
def leaderboard(request: HttpRequest, benchmark: str) -> HttpResponseBase:
    board = leaders.board(require(request).workspace_id, benchmark)
    if board is None:
        raise Http404("no such benchmark")
    return render(request, "evaluation/leaderboard.html", {"board": board})


@member(access.WRITER)
@require_POST
def evaluation_move(request: HttpRequest, evaluation_id: int) -> HttpResponseBase:
    """Pause, resume or cancel. A page that has aged finds it as it is now."""
    membership = require(request)
    row = access.evaluation_write(membership, evaluation_id)
    to, back = request.POST.get("to", ""), reverse("evaluation", args=[row.pk])
    text = "It cannot go on afterwards. What judges have answered stays in their verdicts, and is not asked for again."
    title = f"Cancel “{row.name}” for good?"
    if to == State.CANCELLED and (asked := sure.question(request, title=title, text=text, yes="Cancel it", back=back)):
        return asked
    try:
        services.move(membership, row, to)
    except Problem as problem:
        messages.info(request, problem.message)
    return redirect("evaluation", row.pk)


@member(access.WRITER)
@require_POST
def evaluation_rename(request: HttpRequest, evaluation_id: int) -> HttpResponseBase:
    membership = require(request)
    row = access.evaluation_write(membership, evaluation_id)
    try:
        services.rename(membership, row, request.POST.get("name", ""))
    except Problem as problem:
        messages.error(request, problem.fields.get("name", problem.message))
    return redirect("evaluation", row.pk)


@member(access.WRITER)
@require_POST
def evaluation_delete(request: HttpRequest, evaluation_id: int) -> HttpResponseBase:
    membership = require(request)
    row = access.evaluation_write(membership, evaluation_id)
    title = str(row)
    try:
        services.delete(membership, row)
    except Problem as problem:
        messages.error(request, problem.message)
        return redirect("evaluation", evaluation_id)
    messages.success(request, f"Deleted {title}.")
    return redirect("evaluations")


def _context(request: HttpRequest, evaluation_id: int, tab: str) -> dict[str, Any]:
    membership: Membership = require(request)
    row = access.evaluation_read(membership, evaluation_id)
    return {
        "evaluation": row,
        "recipe": RECIPES.get(row.recipe),
        "results": row.results,
        "tab": tab,
        "over": row.state in services.OVER,
        "may_write": membership.may(Role.RESEARCHER),
        "request_key": uuid4().hex,
    }
