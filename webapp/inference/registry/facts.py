"""The facts about a model, as its page names and writes them."""

import re
from collections.abc import Callable, Mapping
from typing import Any

from django.template.defaultfilters import filesizeformat

from trainer.config import RECIPES
from webapp.core.forms import formtree
from webapp.core.forms.model_schemas import schema_of

from ..folders.tokenizers import FACT
from ..models import RegisteredModel
from ..trials.outcomes import TRIAL

Words = tuple[str, Callable[[Any], str]]


def _number(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)


def _tokens(value: Any) -> str:
    return f"{_number(value)} tokens"


WORDS: dict[str, Words] = {
    "architecture": ("Architecture", str),
    "model_type": ("Model type", str),
    "parameters": ("Parameters", _number),
    "num_hidden_layers": ("Layers", _number),
    "hidden_size": ("Width", _number),
    "vocab_size": ("Vocabulary", _tokens),
    "max_position_embeddings": ("Longest text", _tokens),
    "weight_bytes": ("Weights", filesizeformat),
    "bytes": ("All files", filesizeformat),
    FACT: ("Tokenizer", lambda digest: f"SHA-256 {str(digest)[:12]}"),
}
"""Key of a fact -> its name on the page, and how its value is written."""


RECIPE = re.compile(r"^# .*, trained with recipe (\w+)$", re.MULTILINE)


def changed(card: str, config: Mapping[str, Any]) -> list[tuple[str, str]] | None:
    """The values of a config that differ from the defaults of the recipe that its card names; None if there is no such recipe here."""
    named = RECIPE.search(card)
    recipe = RECIPES.get(named[1]) if named else None
    if recipe is None:
        return None
    defaults = formtree.flatten(formtree.Tree(schema_of(recipe.schema)).defaults(dict(config)))
    given = formtree.flatten(dict(config))
    return [
        (path, formtree.as_text(value))
        for path, value in given.items()
        if path not in defaults or defaults[path] != value
    ]


def fact_lines(model: RegisteredModel) -> list[tuple[str, str]]:
    """Names and values in the order of WORDS; after them all other facts, by their keys without underscores."""
    known = [
        (name, write(model.facts[key])) for key, (name, write) in WORDS.items() if model.facts.get(key) is not None
    ]
    others = sorted(model.facts.keys() - WORDS.keys() - {TRIAL})
    return known + [(key.replace("_", " ").capitalize(), str(model.facts[key])) for key in others]
