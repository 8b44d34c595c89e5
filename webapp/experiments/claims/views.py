"""Pages of claims: a card for each method, the form that launches a study, and the state of a study."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode
from uuid import uuid4

from django.http import Http404, HttpRequest, HttpResponseBase
from django.shortcuts import redirect, render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from trainer.config import RECIPES, ConfigInvalid, Recipe
from trainer.metrics.claims import PLANS, RULE, ClaimPart, ClaimResult, Plan, Setting
from trainer.metrics.claims.methods import METHODS, Method
from webapp.accounts.access import member, require
from webapp.accounts.models import Membership, Role
from webapp.core.problems import Problem
from webapp.core.requests import idempotency
from webapp.core.requests.numbers import whole_number
from webapp.inference import queries as inference

from .. import access, queries
from ..launch import checks
from ..models import ClaimStudy, ClaimTask
from ..recipes import choices, gallery
from . import services, tasks

MOST_SHOWN = 50  # studies on the page, the newest
MAX_JSON = 100_000
SEEDS = 5


@dataclass(frozen=True)
class ClaimCard:
    """`seconds` of one run with the recipe's defaults, by the pace of this workspace; None: not known yet."""

    method: Method
    seconds: float | None
    studies: list["StudyCost"]

    @property
    def link(self) -> str:
        """The form, filled in."""
        if self.method.evaluation:
            return f"/evaluations/new?{urlencode({'recipe': self.method.evaluation})}"
        given = {f"at.{path}": value for path, value in self.method.at.items()}
        return f"/runs/new?{urlencode({'recipe': self.method.recipe, **given})}"


@dataclass(frozen=True)
class StudyCost:
    """The cost of testing a plan: its runs with five seeds, and their seconds one after the other."""

    plan: Plan
    runs: int
    seconds: float | None


def cards(workspace_id: int) -> list[ClaimCard]:
    """The cards in the order of the registry; one query."""
    paces = gallery.pace_by_recipe(workspace_id)
    return [_card(method, paces) for method in METHODS]


def _card(method: Method, paces: Mapping[str, gallery.StepPace]) -> ClaimCard:
    pace = paces.get(method.recipe)
    steps = RECIPES[method.recipe].schema.model_fields["steps"].default if method.recipe else 0
    costs = []
    for plan in (PLANS[name] for name in method.plans):
        known = [paces.get(plan.recipe_of(arm)) for arm in plan.arms]
        each = [pace.total_s(plan.shared["steps"]) for pace in known if pace]
        costs.append(StudyCost(plan, len(known) * SEEDS, sum(each) * SEEDS if len(each) == len(known) else None))
    return ClaimCard(method, pace.total_s(steps) if pace else None, costs)


@dataclass
class StudyForm:
    """The choices before a study is launched. `shared` is JSON; `own`: use the plan's constructed task, and ignore the other choices of
    data."""

    membership: Membership
    plan: Plan
    dataset: str = ""
    model: str = ""
    seeds: str = str(SEEDS)
    shared: str = ""
    size: str = ""
    own: bool = False
    key: str = field(default_factory=lambda: uuid4().hex)
    problems: dict[str, str] = field(default_factory=dict)

    @classmethod
    def blank(cls, membership: Membership, plan: Plan, size: str = "") -> "StudyForm":
        """The form with the settings of this size of the plan, or of its smallest."""
        version = choices.fitting_version(membership.workspace_id, RECIPES[plan.recipe])
        chosen = f"{version.dataset_id}:{version.number}" if version else ""
        form = cls(membership, plan, dataset=chosen, size=size)
        form.shared = json.dumps(form.setting.config, indent=2)
        return form

    @classmethod
    def posted(cls, membership: Membership, plan: Plan, post: Mapping[str, str]) -> "StudyForm":
        return cls(
            membership,
            plan,
            dataset=post.get("dataset", ""),
            model=post.get("model", ""),
            seeds=post.get("seeds", ""),
            shared=post.get("shared", ""),
            size=post.get("size", ""),
            own=bool(post.get("own")),
            key=post.get("key", "")[:64] or uuid4().hex,
        )

    @property
    def setting(self) -> Setting:
        """The setting of the chosen size."""
        return next((setting for size, setting in self.plan.sizes.items() if size == self.size), self.smallest)

    @property
    def smallest(self) -> Setting:
        return next(iter(self.plan.sizes.values()))

    @property
    def other_sizes(self) -> list[str]:
        return [size for size, setting in self.plan.sizes.items() if setting is not self.setting]

    @property
    def offers_task(self) -> bool:
        """Whether the shown settings are those of its constructed task."""
        return self.plan.constructed is self.setting

    @property
    def task(self) -> ClaimTask | None:
        """The constructed task of the plan, if it exists already."""
        found = tasks.of_plan(self.membership.workspace_id, self.plan) if self.offers_task else None
        return found if found and tasks.is_ready(found) else None

    @property
    def recipes(self) -> list[Recipe]:
        """The recipes that train its arms, each once."""
        return [RECIPES[name] for name in dict.fromkeys(map(self.plan.recipe_of, self.plan.arms))]

    @property
    def needed(self) -> list[str]:
        """The data that each recipe needs, in words."""
        return [f"{recipe.title}: {_needed(recipe)}" for recipe in self.recipes]

    @property
    def dataset_choices(self) -> list[tuple[str, str]]:
        workspace_id = self.membership.workspace_id
        rows = choices.versions(workspace_id, choices.named_version(workspace_id, self.dataset))[: choices.MOST_OFFERED]
        return [(f"{row.dataset_id}:{row.number}", f"{row.dataset.name} · v{row.number}") for row in rows]

    @property
    def model_choices(self) -> list[str]:
        named = inference.usable(self.membership.workspace_id).values_list("name", flat=True)
        return list(named[: choices.MOST_OFFERED])

    @property
    def model_problem(self) -> str:
        return self.problems.get("model.name", "")

    @property
    def other_problems(self) -> dict[str, str]:
        """Problems of the settings that all arms share: one field shows them."""
        return {path: why for path, why in self.problems.items() if path not in ("dataset", "model.name", "seeds")}

    def launch(self) -> ClaimStudy | None:
        """The study, or None with `problems` filled."""
        shared = self._shared()
        if self.problems:
            return None
        dataset, _, version = self.dataset.partition(":")
        try:
            return services.launch(
                self.membership,
                self.plan.name,
                dataset=None
                if self.own
                else checks.DatasetChoice(id=whole_number(dataset), version=whole_number(version, 9)),
                model=None if self.own else self.model,
                seeds=whole_number(self.seeds, 4) or 0,
                config=shared,
                key=self.key,
            )
        except idempotency.KeyReused:  # the browser went back to a form that has launched, and it was changed
            self.key = uuid4().hex
            return self.launch()
        except ConfigInvalid as error:
            self.problems = {problem.path: problem.message for problem in reversed(error.problems)}
        except Problem as error:
            self.problems = dict(error.fields) or {"": error.message}
        return None

    def _shared(self) -> dict[str, Any]:
        try:
            if len(self.shared) > MAX_JSON:
                raise ValueError(f"longer than {MAX_JSON:,} characters")
            found = json.loads(self.shared or "{}")
            if not isinstance(found, dict):
                raise ValueError("the settings are a JSON object: { ... }")
            return found
        except (ValueError, RecursionError) as error:
            self.problems["shared"] = f"not valid JSON: {error}"
            return {}


def _needed(recipe: Recipe) -> str:
    """The needs of the recipe; of those that share an `either`, one is enough."""
    groups: dict[str, list[str]] = {}
    for need in recipe.needs:
        groups.setdefault(need.either or need.count, []).append(need.words)
    return "; ".join(" or ".join(words) for words in groups.values()) or "prompts"


@member(access.READER)
@never_cache
@require_GET
def methods(request: HttpRequest) -> HttpResponseBase:
    """A card for each method, and the studies of this workspace."""
    membership = require(request)
    studies = list(queries.studies(membership.workspace_id)[:MOST_SHOWN])
    told = services.verdicts(studies)
    context = {
        "cards": cards(membership.workspace_id),
        "studies": [(row, PLANS[row.plan], told.get(row.pk, "")) for row in studies],
        "may_write": membership.may(Role.RESEARCHER),
    }
    return render(request, "experiments/claims.html", context)


@member(access.WRITER)
@never_cache
@require_http_methods(["GET", "POST"])
def study_new(request: HttpRequest, plan: str) -> HttpResponseBase:
    """The form that launches every arm of a plan."""
    membership = require(request)
    found = PLANS.get(plan)
    if found is None:
        raise Http404("no such claim")
    form = StudyForm.blank(membership, found, request.GET.get("size", ""))
    if request.method == "POST":
        form = StudyForm.posted(membership, found, request.POST)
        study = form.launch()
        if study is not None:
            return redirect("claim_study", study.pk)
    return render(request, "experiments/claim_new.html", {"form": form}, status=422 if form.problems else 200)


@member(access.READER)
@never_cache
@require_GET
def study(request: HttpRequest, study_id: int) -> HttpResponseBase:
    """The verdict and the table of runs, as they finish."""
    return render(request, "experiments/claim_study.html", _standing(request, study_id))


@member(access.WRITER)
@require_POST
def study_again(request: HttpRequest, study_id: int) -> HttpResponseBase:
    """Makes or launches again what failed."""
    membership = require(request)
    services.again(membership, access.study_write(membership, study_id))
    return redirect("claim_study", study_id)


@member(access.READER)
@never_cache
@require_GET
def study_standing(request: HttpRequest, study_id: int) -> HttpResponseBase:
    """A fragment of that page, which asks for it again until all runs are over."""
    return render(request, "experiments/_claim_standing.html", _standing(request, study_id))


def _standing(request: HttpRequest, study_id: int) -> dict[str, Any]:
    membership = require(request)
    found = services.standing_of(access.study_read(membership, study_id))
    table = [
        (row.arm, cell, [(title, cell.measures.get(key)) for title, key in found.plan.columns])
        for row in found.rows
        for cell in row.cells
    ]
    results = [
        (each, _meaning(each), [(part, _compared(found.plan, part.part)) for part in each.parts])
        for each in found.results
    ]
    told = {"standing": found, "table": table, "results": results, "rule": RULE}
    return told | {"may_write": membership.may(access.WRITER)}


def _compared(plan: Plan, part: ClaimPart) -> str:
    """The arms of a part."""
    better = plan.arm(part.better).title
    return f"{better} against {plan.arm(part.worse).title}" if part.worse else better


def _meaning(result: ClaimResult) -> str:
    """The reason for a verdict, by the interval of its parts, in words."""
    several = len(result.parts) > 1
    if result.corrected == "holds":
        return f"The whole interval {'of each part ' if several else ''}is above 0."
    if result.corrected == "does not hold here":
        return f"The whole interval {'of a part ' if several else ''}is below the difference that would matter."
    if any(each.difference.low is None for each in result.parts):
        return "Two seeds with a result are needed for an interval."
    if result.verdict == "holds":
        return "Alone it would hold. Of several claims one can seem to hold by chance, so each needs more."
    return f"The interval {'of a part ' if several else ''}contains 0, and also differences that would matter. More seeds make it narrower."
