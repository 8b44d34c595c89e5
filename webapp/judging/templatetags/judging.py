"""Shows verdicts, and what they are about, on pages."""

import json
from collections.abc import Mapping
from typing import Any

from django import template
from django.utils.html import format_html
from django.utils.safestring import SafeString

from trainer.contracts.plurals import with_noun
from trainer.judges.spec import KINDS
from webapp.core.templatetags.ui import icon

register = template.Library()
_STATES = {
    "done": {"tone": "good", "icon": "circle-check", "words": "done"},
    "missing": {"tone": "warn", "icon": "circle-slash", "words": "missing"},
    "failed": {"tone": "bad", "icon": "circle-x", "words": "failed"},
    "uncalled": {"tone": "info", "icon": "circle-dashed", "words": "not called"},
}


@register.filter
def pretty(value: Any) -> str:
    """JSON with indentation and with letters as they are."""
    return json.dumps(value, ensure_ascii=False, indent=2)


@register.filter
def short(value: Any) -> str:
    """A decision in one line: words for yes and no, the names of its parts, JSON for what is nested deeper."""
    if isinstance(value, dict) and all(isinstance(each, dict) for each in value.values()):
        return "; ".join(f"{name}: {_parts(each)}" for name, each in value.items()) or "none"
    return _parts(value) if isinstance(value, dict) else _word(value)


def _parts(value: Mapping[str, Any]) -> str:
    """A single part needs no name."""
    if len(value) == 1:
        return _word(next(iter(value.values())))
    return ", ".join(f"{name.replace('_', ' ')} {_word(each)}" for name, each in value.items())


def _word(value: Any) -> str:
    if isinstance(value, bool):
        return "met" if value else "not met"
    if isinstance(value, list) and all(isinstance(each, str) for each in value):
        return "; ".join(value) or "none"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


@register.filter
def decided(parsed: Mapping[str, Any] | None, kind: str) -> str:
    """The decision of an answer in one line; a dash if there is no answer."""
    return "–" if parsed is None else short(KINDS[kind].decision(parsed))


@register.filter
def about(subject: Mapping[str, Any]) -> str:
    """`{"example": "e1", "response": "x", "criterion": "a"}` as words, in the order people look for."""
    parts = [str(subject.get("example", ""))]
    if "a" in subject:
        parts.append(f"{subject['a']} against {subject['b']}, {subject['order']}")
    if "response" in subject:
        parts.append(f"response {subject['response']}")
    if "criterion" in subject:
        parts.append(f"criterion {subject['criterion']}")
    elif isinstance(subject.get("criteria"), list):
        parts.append(with_noun(len(subject["criteria"]), "criteria"))
    if "sample" in subject:
        parts.append(f"sample {subject['sample'] + 1}")
    return " · ".join(filter(None, parts))


@register.simple_tag
def verdict_state(name: str) -> SafeString:
    """The state of a call by shape, word and colour."""
    known = _STATES.get(name, _STATES["uncalled"])
    return format_html('<span class="chip" data-tone="{tone}">{0}{words}</span>', icon(known["icon"]), **known)
