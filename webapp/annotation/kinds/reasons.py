"""Atomic reasons, which pairs and rationales have: their checks against what was shown, and their names in the other frame."""

from collections.abc import Callable, Mapping
from typing import Any


def texts(view: Mapping[str, Any]) -> dict[str, str]:
    """{letter: text} of what the person saw."""
    return {one["letter"]: one["text"] for one in view["responses"]}


def beyond(text: str) -> str:
    return f"lies beyond the end of the response, which has {len(text):,} characters"


def complaints(record: Any, view: Mapping[str, Any]) -> dict[str, str]:
    """{path: sentence} for reasons that are empty, or that name something that was not shown."""
    known, fields = texts(view), {}
    for index, reason in enumerate(record.reasons):
        if not reason.text.strip():
            fields[f"reasons.{index}.text"] = "must not be empty"
        if reason.response is None:
            continue
        if reason.response not in known:
            fields[f"reasons.{index}.response"] = f"names {reason.response!r}; shown are {', '.join(known)}"
        elif reason.end is not None and reason.end > len(known[reason.response]):
            fields[f"reasons.{index}.end"] = beyond(known[reason.response])
    return fields


def renamed(content: dict[str, Any], name: Callable[[str], str]) -> dict[str, Any]:
    """`content` with the responses of its reasons under their other names."""
    if "reasons" not in content:
        return dict(content)
    moved = [{**r, "response": name(r["response"])} if r.get("response") else r for r in content["reasons"]]
    return {**content, "reasons": moved}
