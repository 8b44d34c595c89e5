"""Compares two versions of a judge: their templates line by line, everything else field by field."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from webapp.core.text.text_diff import DiffLine, lines

from ..models import JudgeVersion

TEMPLATES = ("system", "prompt")


@dataclass(frozen=True)
class TemplateDiff:
    """`lines` holds what changed and some lines around it; it is empty if nothing changed."""

    name: str
    lines: list[DiffLine]


@dataclass(frozen=True)
class SettingChange:
    path: str
    before: Any
    after: Any


def templates(before: JudgeVersion, after: JudgeVersion) -> list[TemplateDiff]:
    return [TemplateDiff(name, lines(before.spec[name], after.spec[name])) for name in TEMPLATES]


def fields(before: JudgeVersion, after: JudgeVersion) -> list[SettingChange]:
    """Settings that differ, the endpoint first."""
    olds, news = dict(_flat(before.spec)), dict(_flat(after.spec))
    paths = [path for path in {**olds, **news} if path not in TEMPLATES]
    found = [SettingChange(path, olds.get(path), news.get(path)) for path in paths]
    endpoint = SettingChange("endpoint", before.endpoint.name, after.endpoint.name)
    return [each for each in (endpoint, *found) if each.before != each.after]


def _flat(spec: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in spec.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value
