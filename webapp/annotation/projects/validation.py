"""Checks before a project is written. Every problem is reported at its field, all of them at once."""

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from webapp.core.forms.error_messages import error_text
from webapp.core.problems import Invalid
from webapp.core.text.texts import NO_NUL
from webapp.datasets.models import DatasetVersion

from ..kinds import KINDS, Settings
from ..models import MAX_OVERLAP, Project
from ..work import stress_judges
from .strategies import STRATEGIES

MAX_NAME, MAX_GUIDELINES = 120, 100_000
Problems = dict[str, str]


def plan(
    *, name: str, kind: str, version: DatasetVersion, overlap: int, strategy: str, settings: Mapping[str, Any]
) -> tuple[str, dict[str, Any]]:
    """(name, settings) as they are stored. Raises Invalid with every wrong field."""
    problems: Problems = {}
    name = _name(name, problems)
    if kind not in KINDS:
        problems["kind"] = f"must be one of {', '.join(KINDS)}"
    elif reason := KINDS[kind].problem(version):
        problems["dataset"] = reason
    _overlap(overlap, problems)
    if strategy not in STRATEGIES:
        problems["strategy"] = f"must be one of {', '.join(STRATEGIES)}"
    stored = _settings(kind, settings, problems)
    _stress_judge(version.dataset.workspace_id, stored, problems)
    refuse(problems)
    return name, stored


def refuse(problems: Problems) -> None:
    if problems:
        raise Invalid("The project cannot be set up like this.", problems)


def change(project: Project, changes: Mapping[str, Any]) -> dict[str, Any]:
    """The given ones of `name`, `overlap` and `settings`, checked. Raises Invalid at the fields."""
    problems: Problems = {}
    checked: dict[str, Any] = {}
    if "name" in changes:
        checked["name"] = _name(changes["name"], problems)
    if "overlap" in changes:
        _overlap(changes["overlap"], problems)
        checked["overlap"] = changes["overlap"]
    if "settings" in changes:
        checked["settings"] = _settings(project.kind, {**project.settings, **changes["settings"]}, problems)
        if checked["settings"].get("stress_judge") != project.settings.get("stress_judge"):
            _stress_judge(project.workspace_id, checked["settings"], problems)
    refuse(problems)
    return checked


def guidelines(text: str) -> str:
    """The text with one kind of line end, in place of those of browsers and scripts. Raises Invalid at `guidelines`."""
    text = text.replace("\r\n", "\n").replace("\r", "\n").strip()
    if len(text) > MAX_GUIDELINES:
        raise Invalid("The guidelines are too long.", {"guidelines": f"at most {MAX_GUIDELINES:,} characters"})
    if "\0" in text:
        raise Invalid("The guidelines hold a character that cannot be stored.", {"guidelines": "holds a NUL"})
    return text


def _name(text: str, problems: Problems) -> str:
    text = " ".join(text.split())
    if not text:
        problems["name"] = "give it a name"
    elif len(text) > MAX_NAME:
        problems["name"] = f"must have 1 to {MAX_NAME} characters"
    elif "\0" in text:
        problems["name"] = NO_NUL
    return text


def _overlap(overlap: int, problems: Problems) -> None:
    if not 1 <= overlap <= MAX_OVERLAP:
        problems["overlap"] = f"must be between 1 and {MAX_OVERLAP}"


def _stress_judge(workspace_id: int, settings: Mapping[str, Any], problems: Problems) -> None:
    """A judge that is already chosen is not checked again: if it is archived later, the other settings can still be saved."""
    if reason := stress_judges.problem(workspace_id, settings.get("stress_judge")):
        problems["settings.stress_judge"] = reason


def _settings(kind: str, raw: Mapping[str, Any], problems: Problems) -> dict[str, Any]:
    try:
        found = Settings.model_validate(dict(raw))
    except ValidationError as error:
        for each in error.errors(include_url=False):
            path = ".".join(["settings", *map(str, each["loc"])])
            problems.setdefault(path, error_text(each))
        return {}
    for path, message in (KINDS[kind].problems(found) if kind in KINDS else {}).items():
        problems[f"settings.{path}"] = message
    for path, names in (("dimensions", found.dimensions), ("scales", [scale.name for scale in found.scales])):
        if len(set(names)) < len(names):
            problems[f"settings.{path}"] = "each name may occur once"
    for action, key in found.keys.items():
        if not key.strip():
            problems[f"settings.keys.{action}"] = "press a key, or leave the action out to keep its usual key"
        elif [other for other, used in found.keys.items() if used == key and other < action]:
            problems[f"settings.keys.{action}"] = f"{key} already does something else"
    stored: dict[str, Any] = found.model_dump(mode="json")
    return stored
