"""The keys of a config that a sweep may change, as the form of a run knows them."""

from collections.abc import Iterator, Mapping
from typing import Any

from trainer.config import RECIPES
from webapp.core.forms.formtree import FormGroup, Input, Tree
from webapp.core.forms.model_schemas import schema_of

from ..table_facts import SEED
from .space import Value

KINDS = ("int", "float", "bool", "choice", "text")
NONE = "none"


def sweepable_keys(recipe: str, config: Mapping[str, Any]) -> dict[str, Input]:
    """The keys by path, in the order of the form: those that have an effect with the rest of the config. The seed is a separate axis."""
    tree = Tree(schema_of(RECIPES[recipe].schema))
    return {each.path: each for each in _inputs(tree.draw(dict(config), {})) if each.path != SEED}


def _inputs(group: FormGroup) -> Iterator[Input]:
    if not (group.on and group.applies):
        return
    yield from (each for each in group.inputs if each.applies and each.kind in KINDS)
    for inner in [*group.groups, *group.items]:
        yield from _inputs(inner)


def read(key: Input, text: str) -> Value:
    """The value of typed text. Text that is not such a value stays text, which the config then refuses at its field."""
    text = text.strip()
    if key.nullable and text.lower() == NONE:
        return None
    if key.kind == "bool":
        return {"true": True, "false": False}.get(text.lower(), text)
    try:
        return int(text) if key.kind == "int" else float(text) if key.kind == "float" else text
    except ValueError:
        return text


def value_text(value: Value) -> str:
    """The value in the form that `read` takes and tables show."""
    if value is None:
        return NONE
    if isinstance(value, bool):
        return "true" if value else "false"
    return f"{value:g}" if isinstance(value, float) and float(f"{value:g}") == value else str(value)
