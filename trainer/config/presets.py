"""Presets: named values with which the form of a recipe can begin."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

Values = Mapping[str, Any]


@dataclass(frozen=True)
class Preset:
    """`config` holds the fields that it sets, with sections as mappings; a list is set as a whole."""

    name: str
    title: str
    help: str
    config: Values


def quick(**values: Any) -> Preset:
    return Preset(
        "quick",
        "Quick look",
        "A few small steps, to see that data, model and reward work together. Its numbers say nothing about the method.",
        {"steps": 5, "evaluation": {"every": 0, "max_examples": 8}, **values},
    )


def small(**values: Any) -> Preset:
    """The least memory at which the recipe still does what it is for."""
    return Preset(
        "small",
        "Small machine",
        "Needs little memory: small adapters, few tokens in a pass, and activations that are computed twice instead of kept. Slower for that.",
        {
            "model": {"lora": {"rank": 8, "alpha": 16.0}},
            "optim": {"micro_batch_tokens": 256, "recompute_activations": True},
            **values,
        },
    )


def few(prompts: int = 2, group: int = 4, tokens: int = 32) -> Values:
    """A section `rollout` with so few responses."""
    return {"prompts_per_step": prompts, "group_size": group, "max_new_tokens": tokens}


def changes(raw: Values, wanted: Values, filled: Values, at: str = "") -> dict[str, Any]:
    """{dotted path: new value} for what `wanted` changes in an unchecked config. `filled` is the config that `wanted` gives alone.

    A section that becomes another choice is replaced as a whole, because the fields of one choice are not those of another.
    """
    found: dict[str, Any] = {}
    for key, value in wanted.items():
        path, now, new = f"{at}.{key}" if at else key, raw.get(key), filled[key]
        if (
            isinstance(value, Mapping)
            and isinstance(now, Mapping)
            and isinstance(new, Mapping)
            and set(now) == set(new)
        ):
            found |= changes(now, value, new, path)
        elif now != new:
            found[path] = new
    return found


def with_values(raw: Values, values: Values) -> dict[str, Any]:
    """`raw` with each value at its dotted path. A path whose section is not there is left out."""
    out = dict(raw)
    for path, value in values.items():
        *sections, last = path.split(".")
        node = out
        for section in sections:
            below = node.get(section)
            if not isinstance(below, Mapping):
                break
            node[section] = dict(below)
            node = node[section]
        else:
            node[last] = value
    return out


def values_at(raw: Values, paths: Values) -> dict[str, Any]:
    """The values of an unchecked config at these dotted paths."""
    found = {}
    for path in paths:
        node: Any = raw
        for part in path.split("."):
            node = node.get(part) if isinstance(node, Mapping) else None
        found[path] = node
    return found
