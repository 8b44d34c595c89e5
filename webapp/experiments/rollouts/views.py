"""The page on which the rollouts of a run become a dataset: filters in their order, each with its count and its cases."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from django.http import Http404, HttpRequest, HttpResponseBase, QueryDict
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods

from trainer.contracts.rollout_examples import LEFT_OUT, FilterStep, SampledResponse
from webapp.accounts.access import member, require
from webapp.core.problems import Problem
from webapp.core.requests.numbers import whole_number

from .. import access
from ..models import Run
from . import datasets
from .datasets import SWITCHED, Preview

CASES = 20
BEGINS = {"no_reward", "repeated", "cut"}
"""Filters that are on in a new form."""
TITLES = {
    "no_example": "Prompts that the dataset does not have",
    "no_reward": "Without a reward",
    "repeated": "Duplicates",
    "short": "Too short",
    "cut": "Truncated",
    "format": "Format",
    "incorrect": "Correctness",
    "low": "Reward or judge",
    "protocol": "Protocol of tools",
    "not_best": "Best of each prompt",
}
HELP = {
    "no_reward": "Responses that could not be scored. If you switch this off, they stay, without a reward.",
    "repeated": "Responses with the same text as an earlier response to the same prompt.",
    "short": "Fewer characters than this.",
    "cut": "Responses that end at the limit of tokens.",
    "format": "Responses without this form: tags, keys of a JSON object, or an expression that matches the whole.",
    "incorrect": "Responses for which fewer than this share of the criteria with a verifier came out as the rubric wants. "
    "Responses that no verifier can decide go on to the next filter.",
    "low": "Responses with less than this: in the reward, or in one part of it, such as a judge's.",
    "protocol": "Attempts that their environment ended with an error, or whose part of the reward for calls and final state is "
    "below 1.",
    "not_best": "Responses beyond this many for each prompt. Those with the highest reward stay; earlier ones come first.",
}


FIELDS = {
    "short": ("shortest",),
    "format": ("form", "form_of"),
    "incorrect": ("correct",),
    "low": ("least", "part"),
    "protocol": ("protocol_part",),
    "not_best": ("best",),
}
"""The values of the filters, by the names of the inputs."""
_PLACED = {"first", "last", "steps", "name", *(field for fields in FIELDS.values() for field in fields)}
"""Fields whose problems the page shows beside them."""


@dataclass(frozen=True)
class FilterRow:
    """A filter as the page draws it. `step` is None if it is off, has no value, or nothing was counted. `problem` is what is wrong with its
    value."""

    key: str
    on: bool
    step: FilterStep | None = None
    shown: bool = False
    url: str = ""
    problem: str = ""

    @property
    def title(self) -> str:
        return TITLES[self.key]

    @property
    def help(self) -> str:
        return HELP.get(self.key, "")

    @property
    def share(self) -> float:
        """The share of responses that passed this filter, of those that reached it."""
        return self.step.stayed / self.step.came if self.step and self.step.came else 0.0


@dataclass
class Form:
    """The values of the inputs, and what the filters would do. `problems` by field."""

    given: Mapping[str, str]
    on: list[str]
    preview: Preview | None = None
    problem: str = ""
    problems: dict[str, str] = field(default_factory=dict)

    @property
    def elsewhere(self) -> list[str]:
        """Problems of values that have no input on the page."""
        return [f"{path}: {why}" for path, why in self.problems.items() if path not in _PLACED]

    def problem_of(self, key: str) -> str:
        """The problem of a filter's value; empty if there is none."""
        return "; ".join(self.problems[field] for field in FIELDS.get(key, ()) if field in self.problems)


@member(access.WRITER)
@never_cache
@require_http_methods(["GET", "POST"])
def run_rollouts_dataset(request: HttpRequest, run_id: int) -> HttpResponseBase:
    """GET counts and makes nothing; POST creates the dataset, and the import's page shows the progress. A POST with `count` only redirects to
    the page with the counts for the form."""
    membership = require(request)
    run = access.run_read(membership, run_id)
    if not datasets.asked_the_data(run):
        raise Http404("its prompts are questions about pairs, not prompts of the data")
    if "count" in request.POST:
        return redirect(f"{request.path}{_url(request.POST)}")
    sent = request.POST if request.method == "POST" else request.GET
    form = _read(run, sent)
    if request.method == "POST" and not form.problem:
        try:
            wanted = datasets.wanted_of(form.given, form.on)
            job = datasets.start(membership, run, wanted, sent.get("name", ""))
            return redirect("import_job", job.pk)
        except Problem as problem:
            _note(form, problem)
    return render(
        request, "experiments/rollout_dataset.html", _context(run, form, sent), status=422 if form.problem else 200
    )


def _read(run: Run, sent: QueryDict) -> Form:
    given = {name: str(value)[:500].replace("\0", "") for name, value in sent.items()}
    on = [key for key in sent.getlist("on") if key in SWITCHED] if "filtered" in sent else sorted(BEGINS)
    form = Form(given, on)
    try:
        form.preview = datasets.preview(run, datasets.wanted_of(given, on))
    except Problem as problem:
        _note(form, problem)
    return form


def _note(form: Form, problem: Problem) -> None:
    form.problem, form.problems = problem.message, dict(problem.fields or {})


def _context(run: Run, form: Form, sent: QueryDict) -> dict[str, Any]:
    show, page = sent.get("show", ""), whole_number(sent.get("page", ""), 6) or 0
    steps = {step.key: step for step in form.preview.steps} if form.preview else {}
    rows = [
        FilterRow(
            key,
            key not in SWITCHED or key in form.on,
            steps.get(key),
            key == show,
            _url(sent, show=key),
            form.problem_of(key),
        )
        for key in LEFT_OUT
        if key in SWITCHED or (key in steps and steps[key].left_out)
    ]
    chosen = steps.get(show)
    cases: list[tuple[SampledResponse, str]] = chosen.left_out[page * CASES : (page + 1) * CASES] if chosen else []
    more = bool(chosen) and len(chosen.left_out) > (page + 1) * CASES if chosen else False
    return {
        "run": run,
        "form": form,
        "rows": rows,
        "preview": form.preview,
        "shown": TITLES.get(show, "") if chosen else "",
        "count": len(chosen.left_out) if chosen else 0,
        "cases": cases,
        "first_case": page * CASES + 1,
        "next": _url(sent, show=show, page=str(page + 1)) if more else "",
        "before": _url(sent, show=show, page=str(page - 1)) if chosen and page else "",
        "parts": _parts(run),
        "forms": (("tags", "tags"), ("json", "JSON"), ("pattern", "expression")),
        "name": form.given.get("name") or f"rollouts of {run}",
    }


def _parts(run: Run) -> list[str]:
    """Names of the parts of its reward, as its newest responses have them."""
    newest = run.rollouts.order_by("-step").values_list("part_values", flat=True).first()
    return sorted(newest or {})


def _url(sent: QueryDict, **changes: str) -> str:
    """The address of this page with these changes, without the parameters of the form and the pager."""
    query = sent.copy()
    for name in ("csrfmiddlewaretoken", "page", "count"):
        query.pop(name, None)
    for name, value in changes.items():
        query[name] = value
    return f"?{query.urlencode()}#cases"
