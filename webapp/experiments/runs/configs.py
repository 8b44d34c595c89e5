"""Configs of runs by dotted path, and where they differ."""

from typing import Any

from webapp.core.forms.formtree import flatten


def config_diff(configs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The dotted paths whose values are not equal in all `configs`, sorted."""
    flat = [flatten(config) for config in configs]
    found = []
    for path in sorted(set().union(*flat)):
        values = [config.get(path) for config in flat]
        if any(value != values[0] for value in values):
            found.append({"path": path, "values": values})
    return found
