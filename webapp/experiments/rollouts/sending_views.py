"""The page on which rollouts are sent to annotation: what is chosen, what people are asked, and where."""

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.http import HttpRequest, HttpResponseBase, QueryDict
from django.shortcuts import redirect, render
from django.urls import reverse
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_http_methods
from pydantic import ValidationError

from webapp.accounts.access import member, require
from webapp.annotation import kinds
from webapp.annotation.models import Project
from webapp.annotation.projects import receiving
from webapp.core.problems import Invalid, Problem
from webapp.core.requests.numbers import whole_number

from .. import access
from ..models import Rollout, Run
from . import sending
from .queries import ORDERS
from .schemas import RolloutFilters
from .sending import ChosenGroup, Prepared
from .sent_examples import SHAPES

SHOWN = 5  # responses that the page shows
MOST_PROJECTS = 100
USUAL = 20  # of a list, unless somebody says another number
NEW = "new"
PLACE = ("step", "phase", "group", "index")
LISTED = ("most", "sort", *RolloutFilters.model_fields)


@dataclass(frozen=True)
class KindChoice:
    """A kind of task, and what would be made of the chosen rollouts. `problem` says why nothing can."""

    prepared: Prepared
    projects: list[Project]

    @property
    def kind(self) -> kinds.TaskKind:
        return kinds.get_kind(self.prepared.kind)

    @property
    def count(self) -> int:
        return len(self.prepared.records)

    @property
    def problem(self) -> str:
        return "" if self.count else self.prepared.left_out_words


class SendForm:
    """The choice in the address, and the person's typed values."""

    def __init__(self, run: Run, workspace_id: int, sent: QueryDict) -> None:
        self.run, self.workspace_id, self.sent = run, workspace_id, sent
        self.problem, self.problems = "", dict[str, str]()
        self.rows: list[Rollout] = []
        try:
            self.rows = self._read()
        except Problem as problem:
            self.note(problem)

    def note(self, problem: Problem) -> None:
        self.problem, self.problems = problem.message, dict(problem.fields or {})

    @property
    def of_list(self) -> bool:
        """Whether the rollouts are the first of a filtered list, not named by their places."""
        return "group" not in self.sent

    @property
    def most(self) -> str:
        return self.sent.get("most", str(USUAL))

    @property
    def address(self) -> list[tuple[str, str]]:
        """The choice, for the inputs that nobody sees."""
        names = LISTED if self.of_list else PLACE
        return [(name, value) for name in names if name != "most" for value in self.sent.getlist(name)]

    @property
    def back(self) -> str:
        """The rollouts from which the person came."""
        step = whole_number(self.sent.get("step", ""))
        where = {"step": "all" if step is None else step, "phase": self.sent.get("phase", "train")}
        return f"{reverse('run_tab', args=[self.run.pk, 'rollouts'])}?{urlencode(where)}"

    @cached_property
    def choices(self) -> list[KindChoice]:
        """The kinds of task, those first of which examples can be made."""
        projects = receiving.taking(self.workspace_id, tuple(SHAPES), MOST_PROJECTS)
        known = sending.prompts(self.run, self.rows)
        found = []
        for kind in SHAPES:
            prepared = sending.prepare(self.run, kind, self.rows, known)
            found.append(KindChoice(prepared, [each for each in projects if each.kind == kind]))
        return sorted(found, key=lambda choice: not choice.count)

    @property
    def any_project(self) -> bool:
        return any(choice.count and choice.projects for choice in self.choices)

    @property
    def shown(self) -> list[tuple[Rollout, str]]:
        return [(row, row.content["response"]) for row in self.rows[:SHOWN]]

    def _read(self) -> list[Rollout]:
        if not self.of_list:
            return sending.named(self.run, [_group(self.sent)])
        given: Mapping[str, Any] = {name: self.sent[name] for name in RolloutFilters.model_fields if name in self.sent}
        try:
            wanted = RolloutFilters.model_validate(given).filters()
        except ValidationError as error:
            fields = {".".join(map(str, each["loc"])): each["msg"] for each in error.errors(include_url=False)}
            raise Invalid("The filters cannot be read.", fields) from None
        sort: Any = self.sent.get("sort") if self.sent.get("sort") in ORDERS else None
        return sending.listed(self.run, wanted, sort, whole_number(self.most, 6) or 0)


def _group(sent: QueryDict) -> ChosenGroup:
    step, group = whole_number(sent.get("step", ""), 9), whole_number(str(sent["group"]), 9)
    index = [whole_number(str(each), 9) for each in sent.getlist("index")]
    if step is None or group is None or None in index:
        raise Invalid("There is no such rollout.", {"groups": "step, group and index must be whole numbers"})
    return ChosenGroup(step, sent.get("phase", "train")[:8], group, tuple(each for each in index if each is not None))


@member(access.WRITER)
@never_cache
@require_http_methods(["GET", "POST"])
def run_rollouts_annotate(request: HttpRequest, run_id: int) -> HttpResponseBase:
    """GET shows what would be sent. POST sends it: to a project, or into a dataset for which the form of a project opens."""
    membership = require(request)
    run = access.run_write(membership, run_id)
    form = SendForm(run, membership.workspace_id, request.POST if request.method == "POST" else request.GET)
    if request.method == "POST" and not form.problem:
        send = _to_new if request.POST.get("to", "") == NEW else _to_project
        try:
            return send(request, run, form)
        except Problem as problem:
            form.note(problem)
    context = {"run": run, "form": form, "name": request.POST.get("name") or f"Rollouts of {run}", "most": sending.MOST}
    return render(request, "experiments/rollouts_annotate.html", context, status=422 if form.problem else 200)


def _to_project(request: HttpRequest, run: Run, form: SendForm) -> HttpResponseBase:
    project_id = whole_number(request.POST.get("to", ""))
    known = {each.pk: choice.prepared for choice in form.choices for each in choice.projects}
    if project_id is None or project_id not in known:
        raise Invalid("The rollouts cannot be sent there.", {"project": "choose a project, or a new one"})
    found = sending.send(require(request), run, known[project_id], project_id)
    messages.success(request, sending.told(found))
    return redirect(form.back)


def _to_new(request: HttpRequest, run: Run, form: SendForm) -> HttpResponseBase:
    kind = request.POST.get("kind", "")
    choice = next((each for each in form.choices if each.kind.name == kind), None)
    if choice is None:
        raise Invalid("The rollouts cannot be sent.", {"kind": "choose what people are asked"})
    version, _ = sending.begin(require(request), run, choice.prepared, request.POST.get("name", ""))
    return redirect(f"{reverse('project_new')}?version={version.pk}&kind={kind}")
