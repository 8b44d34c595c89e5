"""Pages on which people create a judge: the kinds, the editor, and examples for a trial. They need the role researcher."""

from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import path
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from trainer.config.errors import ConfigInvalid
from trainer.contracts.plurals import with_noun
from trainer.judges.spec import KINDS, Kind
from webapp.accounts.access import member, require
from webapp.accounts.models import Membership, Role
from webapp.core.problems import Invalid, Problem
from webapp.core.requests.numbers import whole_number
from webapp.datasets.models import Dataset, Example
from webapp.datasets.queries import datasets as dataset_list
from webapp.inference.models import Endpoint

from .. import access, queries
from ..judges import services
from ..models import Judge
from ..trials.services import start_trial
from ..trials.views import fragment
from .forms import JudgeForm

OFFERED = 40  # examples to choose from
FIRST = 2  # of them are chosen to begin with
NEEDS = {  # variable -> the count of a version that says whether its examples have it
    "response": "responses",
    "response_a": "responses",
    "criterion": "criteria",
    "criteria": "criteria",
    "reference_items": "criteria",
    "human_reasons": "preferences",
    "rationale": "preferences",
}
FAMILIES = (
    ("A response by a rubric", ("criterion", "checklist", "likert", "pointwise")),
    ("Two responses", ("pairwise", "pairwise_rubric")),
    ("Rubrics themselves", ("rubric_generator", "rubric_quality", "rubric_matcher", "necessity")),
    ("Reasons", ("reasons", "reason_matcher", "flaws")),
)


@member(Role.RESEARCHER)
@require_http_methods(["GET", "POST"])
def judge_new(request: HttpRequest) -> HttpResponseBase:
    membership = require(request)
    kind = KINDS.get(request.GET.get("kind", ""))
    if kind is None:
        families = [(title, [KINDS[name] for name in names]) for title, names in FAMILIES]
        return render(request, "judging/kinds.html", {"families": families})
    initial = JudgeForm.initial_of(kind.default().model_dump(mode="json"))
    form = JudgeForm(kind, membership.workspace_id, request.POST or None, named=True, initial=initial)
    if request.method == "POST" and form.is_valid():
        data = form.cleaned_data
        try:
            made = services.create_judge(
                membership, name=data["name"], spec=form.spec(), endpoint=data["endpoint"], note=data["note"]
            )
        except (ConfigInvalid, Problem) as problem:
            form.tell(problem)
        else:
            messages.success(request, f"{made.judge.name} is saved as version 1.")
            return redirect("judge", made.judge_id)
    return _editor(request, form, None)


@member(Role.RESEARCHER)
@require_http_methods(["GET", "POST"])
def judge_edit(request: HttpRequest, judge_id: int) -> HttpResponseBase:
    """Edits the next version, beginning with the newest one or the one that is named."""
    membership = require(request)
    judge = access.judge_write(membership, judge_id)
    versions = judge.versions.order_by("-number")
    number = whole_number(request.GET.get("from", ""), 8)
    chosen = None if number is None else versions.filter(number=number).first()
    base = chosen or versions.first()
    initial = {**JudgeForm.initial_of(base.spec), "endpoint": base.endpoint_id} if base else {}
    form = JudgeForm(KINDS[judge.kind], membership.workspace_id, request.POST or None, named=False, initial=initial)
    if request.method == "POST" and form.is_valid():
        data = form.cleaned_data
        try:
            made = services.new_version(
                membership, judge, spec=form.spec(), endpoint=data["endpoint"], note=data["note"]
            )
        except (ConfigInvalid, Problem) as problem:
            form.tell(problem)
        else:
            messages.success(request, f"This is version {made.number}.")
            return redirect("judge_version", judge.pk, made.number)
    return _editor(request, form, judge, number=base.number if base else None)


def _editor(request: HttpRequest, form: JudgeForm, judge: Judge | None, **more: Any) -> HttpResponseBase:
    membership = require(request)
    kind = form.kind
    rows = [row for row in dataset_list(membership.workspace_id).order_by("name") if row.latest]  # type: ignore[attr-defined]
    context = {
        "form": form,
        "kind": kind,
        "judge": judge,
        "variables": [(name, text, name in kind.required) for name, text in _variables(kind).items()],
        "schema": kind.schema(kind.default()),
        "datasets": rows,
        "fitting": next((row.pk for row in rows if _fits(kind, row)), None),
        "needed": " and ".join(dict.fromkeys(NEEDS[name] for name in kind.required if name in NEEDS)),
        "examples": queries.fixed_examples(judge) if judge else [],
        "chosen": set(judge.fixed_examples) if judge else set(),
        "has_endpoint": Endpoint.objects.filter(workspace=membership.workspace, archived_at=None)
        .exclude(kind=Endpoint.Kind.REWARD)
        .exists(),
        **more,
    }
    return render(request, "judging/editor.html", context, status=422 if form.is_bound else 200)


def _fits(kind: Kind, dataset: Dataset) -> bool:
    """Whether the newest version of the dataset has what this kind of judge must see."""
    counts = dataset.latest[0].counts  # type: ignore[attr-defined]
    return all(counts.get(NEEDS[name], 0) > 0 for name in kind.required if name in NEEDS)


def _variables(kind: Kind) -> dict[str, str]:
    return {**kind.variables, "answer_format": "the form of the answer, from the kind's schema"}


@member(Role.RESEARCHER)
@require_POST
def judge_try(request: HttpRequest) -> HttpResponseBase:
    """Runs a trial of the form on the chosen examples, and responds with the fragment of the trial."""
    membership = require(request)
    kind = KINDS.get(request.POST.get("kind", ""))
    if kind is None:
        return _refused(request, ["kind: not known"])
    form = JudgeForm(kind, membership.workspace_id, request.POST, named=False)
    if not form.is_valid():
        return _refused(request, [f"{name}: {reason}" for name, reasons in form.errors.items() for reason in reasons])
    judge = whole_number(request.POST.get("judge", ""))
    try:
        trial = start_trial(
            membership,
            spec=form.spec(),
            endpoint=form.cleaned_data["endpoint"],
            examples=_ids(request.POST.getlist("examples")),
            extra=form.extra(),
            judge=None if judge is None else access.judge_write(membership, judge),
        )
    except ConfigInvalid as problem:
        return _refused(request, [f"{each.path}: {each.message}" for each in problem.problems])
    except Problem as problem:
        return _refused(request, list(problem.fields.values()) or [problem.message])
    return fragment(request, trial)


def _refused(request: HttpRequest, problems: list[str]) -> HttpResponseBase:
    return render(request, "judging/_refused.html", {"problems": problems}, status=422)


def _ids(texts: list[str]) -> list[int]:
    return [number for text in texts if (number := whole_number(text)) is not None]


@member(Role.RESEARCHER)
@require_GET
def examples(request: HttpRequest) -> HttpResponseBase:
    """A fragment with the first examples of a dataset's newest version to choose from; `q` searches their keys."""
    offered = _offered(require(request), request.GET.get("dataset", ""), request.GET.get("q", "").replace("\0", ""))
    chosen = {each.pk for each in offered[:FIRST]}
    return render(request, "judging/_examples.html", {"examples": offered, "chosen": chosen, "asked": True})


def _offered(membership: Membership, dataset_id: str, words: str) -> list[Example]:
    if not _ids([dataset_id]):
        return []
    dataset = dataset_list(membership.workspace_id).filter(pk=int(dataset_id)).first()
    if dataset is None or not dataset.latest:  # type: ignore[attr-defined]
        return []
    rows = Example.objects.filter(memberships__version=dataset.latest[0])  # type: ignore[attr-defined]
    if words:
        rows = rows.filter(key__icontains=words[:200])
    return list(rows.only("id", "key", "excerpt").order_by("memberships__position")[:OFFERED])


@member(Role.RESEARCHER)
@require_http_methods(["GET", "POST"])
def judge_examples(request: HttpRequest, judge_id: int) -> HttpResponseBase:
    """Chooses the examples on which the judge's versions are compared."""
    membership = require(request)
    judge = access.judge_write(membership, judge_id)
    problem = ""
    if request.method == "POST":
        try:
            services.fix_examples(membership, judge, _ids(request.POST.getlist("examples")))
        except Invalid as refused:
            problem = refused.fields.get("examples", refused.message)
        else:
            messages.success(request, f"Versions are compared on {with_noun(len(judge.fixed_examples), 'examples')}.")
            return redirect("judge", judge.pk)
    rows = dataset_list(membership.workspace_id).order_by("name")
    context = {
        "judge": judge,
        "datasets": [row for row in rows if row.latest],  # type: ignore[attr-defined]
        "examples": queries.fixed_examples(judge),
        "chosen": set(judge.fixed_examples),
        "problem": problem,
    }
    return render(request, "judging/examples.html", context, status=422 if problem else 200)


urls = [
    path("judges/new", judge_new, name="judge_new"),
    path("judges/try", judge_try, name="judge_try"),
    path("judges/examples", examples, name="judge_pick"),
    path("judges/<int:judge_id>/edit", judge_edit, name="judge_edit"),
    path("judges/<int:judge_id>/examples", judge_examples, name="judge_examples"),
]
