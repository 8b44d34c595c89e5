"""Configs of runs by dotted path, and where they differ."""

from typing import Any


def config_diff(configs: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The dotted paths whose values are not equal in all `configs`, sorted."""
    flat = [flattened(config) for config in configs]
    found = []
    for path in sorted(set().union(*flat)):
        values = [config.get(path) for config in flat]
        if any(value != values[0] for value in values):
            found.append({"path": path, "values": values})
    return found


def flattened(config: Any, prefix: str = "") -> dict[str, Any]:
    """`{"optim": {"lr": 1}}` -> `{"optim.lr": 1}`; items of lists are numbered, empty sections stay as they are."""
    if isinstance(config, dict) and config:
        items = list(config.items())
    elif isinstance(config, list) and config:
        items = [(str(i), item) for i, item in enumerate(config)]
    else:
        return {prefix: config}
    out: dict[str, Any] = {}
    for key, value in items:
        out.update(flattened(value, f"{prefix}.{key}" if prefix else key))
    return out
