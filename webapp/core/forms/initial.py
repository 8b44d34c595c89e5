"""A raw config that a link to a form fills in."""

from collections.abc import Mapping
from typing import Any

MAX_PATH, MAX_GIVEN = 100, 200  # characters of what a link fills in


def set_at_path(raw: dict[str, Any], path: list[str], text: Any) -> None:
    """Sets the text at its place in a raw config; a number in the path is an item of a list, which is made if there is none."""
    node: Any = raw
    for part, following in zip(path, [*path[1:], ""], strict=True):
        value: Any = text if not following else ([] if following.isdigit() else {})
        if isinstance(node, dict):
            found = node.get(part)
            keep = following and isinstance(found, type(value))
            node[part] = found if keep else value
            node = node[part]
        elif isinstance(node, list) and part == "0":
            if not node:
                node.append(value)
            elif not isinstance(node[0], type(value)):
                node[0] = value
            node = node[0]
        else:
            return


def fill_in(raw: dict[str, Any], given: Mapping[str, str]) -> None:
    """Sets texts at dotted paths of a raw config; what the config lacks is left out. No text at a section switches it off."""
    for path, text in given.items():
        if len(path) <= MAX_PATH and len(text) <= MAX_GIVEN and "\0" not in text:
            _of_another_kind(raw, path.split("."), text)
            if not text and isinstance(raw.get(path, text), dict | None):  # None: it was switched off before
                raw[path] = None
            else:
                set_at_path(raw, path.split("."), text)


def _of_another_kind(raw: dict[str, Any], path: list[str], kind: str) -> None:
    """Empties the first item of a list if its kind is about to change, because another kind has other fields."""
    items = raw.get(path[0])
    if path[1:] == ["0", "kind"] and isinstance(items, list) and items and isinstance(items[0], dict):
        items[0] = {} if items[0].get("kind") != kind else items[0]
