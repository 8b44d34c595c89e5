"""The commonest row there is, a prompt with a better and a worse answer, made a record without the general validator.

Every part is checked here for exactly the types and values that the record wants, so that the result is what
`Example.model_validate` would give; whatever is not that plain is left to it. On a million pairs this saves a third of
our work.
"""

from typing import Any, TypeVar, get_args

from pydantic import BaseModel
from pydantic_core import to_json

from trainer.contracts import Example, Message, Preference, Response
from trainer.contracts.example import Role

from .shapes import CHOSEN

ROLES = frozenset(get_args(Role))
PREFERENCES = tuple(Preference.model_validate(each) for each in CHOSEN)
ALLOWED = frozenset({"key", "prompt", "responses", "preferences", "meta", "source", "domain"})
# every field in its order, so that values put over it stay in the record's order
DEFAULTS = {name: info.get_default(call_default_factory=True) for name, info in Example.model_fields.items()}

SIMPLE = frozenset({str, int, bool, type(None)})

R = TypeVar("R", bound=BaseModel)
_set = object.__setattr__


def pair(data: dict[str, Any]) -> Example | None:
    """The example, or None where the data is not a plain pair of the shape that `shapes.pair` gives."""
    if data.get("preferences") is not CHOSEN or not data.keys() <= ALLOWED:
        return None
    key, meta = data.get("key"), data.get("meta")
    if type(key) is not str or not 1 <= len(key) <= 200 or type(meta) is not dict or not all(map(_is_text, meta)):
        return None
    labels = {name: data[name] for name in ("source", "domain") if name in data}
    if not all(map(_is_text, labels.values())):
        return None
    prompt = tuple(map(_message, data["prompt"]))
    chosen, rejected = data["responses"]
    if not prompt or None in prompt or not _is_text(chosen["text"]) or not _is_text(rejected["text"]):
        return None
    values = DEFAULTS | labels
    values |= {"key": key, "prompt": prompt, "preferences": PREFERENCES, "meta": meta}
    values["responses"] = (_response("a", chosen["text"]), _response("b", rejected["text"]))
    return _made(Example, values, set(data))


def canonical(example: Example) -> str | None:
    """The text of `Example.canonical` for a record that `pair` made; None where `meta` holds more than texts and whole
    numbers, whose form only the general way knows."""
    if example.preferences is not PREFERENCES or not SIMPLE.issuperset(map(type, example.meta.values())):
        return None
    a, b = example.responses
    # the keys in their order, and nothing that is a default
    data: dict[str, Any] = {"domain": example.domain} if example.domain else {}
    data["key"] = example.key
    if example.meta:
        data["meta"] = dict(sorted(example.meta.items()))
    data["preferences"] = CHOSEN
    data["prompt"] = [{"content": message.content, "role": message.role} for message in example.prompt]
    data["responses"] = [{"id": "a", "text": a.text}, {"id": "b", "text": b.text}]
    if example.source:
        data["source"] = example.source
    if example.split:
        data["split"] = example.split
    return to_json(data).decode()


def _is_text(value: object) -> bool:
    return type(value) is str


def _message(item: dict[str, Any]) -> Message | None:
    if item.keys() != {"role", "content"} or item["role"] not in ROLES or type(item["content"]) is not str:
        return None
    return _made(Message, {"role": item["role"], "content": item["content"]}, {"role", "content"})


def _response(id: str, text: str) -> Response:
    return _made(Response, {"id": id, "text": text, "origin": "", "tags": ()}, {"id", "text"})


def _made(kind: type[R], values: dict[str, Any], given: set[str]) -> R:
    """The record with these values, as the validator leaves it."""
    record = kind.__new__(kind)
    _set(record, "__dict__", values)
    _set(record, "__pydantic_fields_set__", given)
    _set(record, "__pydantic_extra__", None)
    _set(record, "__pydantic_private__", None)
    return record
