"""A raw config that a link to a form fills in."""

from typing import Any


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
