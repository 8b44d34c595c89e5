"""The pages of the objectives: formula, knobs, what is reported, a worked example, and the calculator."""

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from django.http import Http404, HttpRequest, HttpResponseBase
from django.shortcuts import render
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_POST

import trainer.config
from trainer.config.objectives.catalogue import CATALOGUE, DIAGNOSTICS, ObjectiveEntry
from trainer.config.objectives.policy import CHOICES
from webapp.accounts.access import member, require
from webapp.accounts.models import Role
from webapp.core.forms.formtree import Input, Tree
from webapp.core.forms.model_schemas import schema_of
from webapp.core.problems import Problem
from webapp.core.requests.numbers import whole_number

from . import calculator
from .calculator import Calculation

FAMILIES = (
    ("policy", "Policies", "Objectives for sampled responses with rewards. A policy run offers these."),
    ("preference", "Preferences", "Objectives for pairs of responses, one of them chosen."),
    ("supervised", "Imitation", "Objectives for responses that are right as they are."),
)
WORKED = Path(trainer.config.objectives.__file__).parent / "worked.json"
COUNTS = ("tokens", "sequences", "excluded")
INPUTS = {
    "logp_old": "the old policy's log-probabilities",
    "logp_roll": "the sampler's log-probabilities",
    "logp_ref": "a reference's log-probabilities",
    "logp_teacher": "a teacher's log-probabilities",
    "rewards": "rewards",
    "chosen": "chosen responses",
    "rejected": "rejected responses",
}


@dataclass(frozen=True)
class TokenRow:
    """One response of a result: what pushed it, and the gradient of each of its tokens, coloured by sign."""

    label: str
    advantage: Any
    gradient: list[float]


@cache
def _worked() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(WORKED.read_text())
    return found


@member(Role.REVIEWER)
@require_GET
def objectives(request: HttpRequest) -> HttpResponseBase:
    families = [
        {"title": title, "text": text, "entries": [entry for entry in CATALOGUE.values() if entry.family == family]}
        for family, title, text in FAMILIES
    ]
    return render(request, "objectives/objectives.html", {"families": families, "choices": CHOICES})


@member(Role.REVIEWER)
@require_GET
def objective(request: HttpRequest, name: str) -> HttpResponseBase:
    entry = _entry(name)
    worked = _worked()[name]
    context = {
        "entry": entry,
        "family": next(title for family, title, _ in FAMILIES if family == entry.family),
        "knobs": _knobs(entry),
        "needs": [INPUTS[each] for each in entry.needs],
        "needs_with": [(knob, INPUTS[each]) for knob, each in entry.needs_with.items()],
        "diagnostics": [(key, DIAGNOSTICS[key]) for key in worked["result"]["diagnostics"]],
        "record": written(worked["record"]),
        "shown": _shown(worked["result"]),
        "command": f"python -m trainer objective {name} record.json",
        "in_runs": name in CHOICES,
        "others": [each for each in CATALOGUE.values() if each.family == entry.family],
    }
    return render(request, "objectives/objective.html", context)


@member(Role.REVIEWER)
@require_POST
def calculate(request: HttpRequest, name: str) -> HttpResponseBase:
    """A fragment that asks for the answer until it is there; 422 with what is wrong with the record."""
    entry = _entry(name)
    try:
        made = calculator.start(require(request), name, request.POST.get("record", ""))
    except Problem as problem:
        why = "; ".join(f"{field} {reason}" for field, reason in problem.fields.items()) or problem.message
        return render(request, "objectives/_result.html", {"error": why, "entry": entry}, status=problem.status)
    return render(request, "objectives/_result.html", _answer(calculator.find(require(request), made.id), 0))


@member(Role.REVIEWER)
@never_cache
@require_GET
def calculation(request: HttpRequest, calculation_id: str) -> HttpResponseBase:
    found = calculator.find(require(request), calculation_id)
    if found is None:
        raise Http404("no such calculation")
    before = whole_number(request.GET.get("asked", "0"), 9)
    return render(request, "objectives/_result.html", _answer(found, 0 if before is None else before + 1))


def _answer(found: Calculation | None, asked: int) -> dict[str, Any]:
    if found is None:
        return {"error": "The cache does not answer, so there is no result. Try again."}
    if found.result:
        return {"shown": _shown(found.result)}
    if not found.done and asked > calculator.PATIENCE_S:
        return {"error": "No worker has answered. Is one running? The command below works without a worker."}
    return {"error": found.error, "waiting": None if found.done else found, "asked": asked}


def _entry(name: str) -> ObjectiveEntry:
    if name not in CATALOGUE:
        raise Http404("no such objective")
    return CATALOGUE[name]


def _knobs(entry: ObjectiveEntry) -> list[Input]:
    return Tree(schema_of(entry.parameters)).draw({}, {}).inputs


def _shown(result: dict[str, Any]) -> dict[str, Any]:
    """A calculator's answer for the page. Pairs give a gradient for each side, and no advantages."""
    gradient, advantages = result["grad_logp"], result["advantages"]
    if isinstance(gradient, dict):
        rows = [TokenRow(side, None, _flat(values)) for side, values in gradient.items()]
    else:
        pushed = advantages or [None] * len(gradient)
        rows = [TokenRow(str(i + 1), pushed[i], _flat(values)) for i, values in enumerate(gradient)]
    reported = {key: int(value) if key in COUNTS else value for key, value in result["diagnostics"].items()}
    return {"loss": result["loss"], "rows": rows, "diagnostics": reported, "pushed": advantages is not None}


def _flat(values: list[Any]) -> list[float]:
    return [each for value in values for each in (value if isinstance(value, list) else [value])]


def written(record: dict[str, Any]) -> str:
    """JSON with one field a line, which is how people edit a record."""
    lines = [f"  {json.dumps(key)}: {json.dumps(value)}" for key, value in record.items()]
    return "{\n" + ",\n".join(lines) + "\n}"
