"""The commonest row there is, a prompt with a better and a worse answer, made a record without the general validator.

Every part is checked here for exactly the types and values that the record wants, so that the result is what
`Example.model_validate` would give; whatever is not that plain is left to it. On a million pairs this saves a third of
our work.
"""

from json.encoder import encode_basestring
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import from_json, to_json

from trainer.contracts import Example, Message, Preference, Response
from trainer.contracts.example import Role

from .shapes import CHOSEN

ROLES = frozenset(get_args(Role))
WRITTEN = to_json(CHOSEN).decode()
PREFERENCES = tuple(Preference.model_validate(each) for each in CHOSEN)
ALLOWED = frozenset({"key", "prompt", "responses", "preferences", "meta", "source", "domain"})
# every field in its order, so that values put over it stay in the record's order
DEFAULTS = {name: info.get_default(call_default_factory=True) for name, info in Example.model_fields.items()}

TEXT = frozenset({str})
SIMPLE = frozenset({str, int, bool, type(None)})
SAID, ANSWERED = {"role", "content"}, {"id", "text"}  # the fields that are given to a message and to a response

R = TypeVar("R", bound=BaseModel)
_quoted = encode_basestring  # as the encoder of `Example.canonical` writes a text
_set_values, _set_given, _set_extra, _set_private = (
    BaseModel.__dict__[name].__set__
    for name in ("__dict__", "__pydantic_fields_set__", "__pydantic_extra__", "__pydantic_private__")
)


def pair(data: dict[str, Any]) -> Example | None:
    """The example, or None where the data is not a plain pair of the shape that `shapes.pair` gives."""
    if data.get("preferences") is not CHOSEN or not data.keys() <= ALLOWED:
        return None
    key, meta = data.get("key"), data.get("meta")
    if (
        type(key) is not str
        or not 1 <= len(key) <= 200
        or type(meta) is not dict
        or not TEXT.issuperset(map(type, meta))
    ):
        return None
    labels = {name: data[name] for name in ("source", "domain") if name in data}
    chosen, rejected = (each["text"] for each in data["responses"])
    if not TEXT.issuperset(map(type, (chosen, rejected, *labels.values()))):
        return None
    prompt = tuple(map(_message, data["prompt"]))
    if not prompt or None in prompt:
        return None
    values = DEFAULTS | labels
    values |= {"key": key, "prompt": prompt, "preferences": PREFERENCES, "meta": meta}
    values["responses"] = (_response("a", chosen), _response("b", rejected))
    return _made(Example, values, set(data))


def read_back(data: Any) -> dict[str, Any]:
    """An importer's data in the canonical form, as JSON has it; empty where it makes no example."""
    try:
        example = pair(data) or Example.model_validate(data)
        found: dict[str, Any] = from_json(canonical(example) or example.canonical())
    except (ValidationError, ValueError):
        return {}
    return found


def canonical(example: Example) -> str | None:
    """The text of `Example.canonical` for a record that `pair` made; None where `meta` holds more than texts and whole
    numbers, whose form only the general way knows."""
    if example.preferences is not PREFERENCES or not SIMPLE.issuperset(map(type, example.meta.values())):
        return None
    a, b = example.responses
    prompt = ",".join([f'{{"content":{_quoted(each.content)},"role":"{each.role}"}}' for each in example.prompt])
    # the keys in their order, and nothing that is a default
    domain = f'"domain":{_quoted(example.domain)},' if example.domain else ""
    meta = f',"meta":{to_json(dict(sorted(example.meta.items()))).decode()}' if example.meta else ""
    source = f',"source":{_quoted(example.source)}' if example.source else ""
    split = f',"split":"{example.split}"' if example.split else ""
    return (
        f'{{{domain}"key":{_quoted(example.key)}{meta},"preferences":{WRITTEN},"prompt":[{prompt}],"responses":'
        f'[{{"id":"a","text":{_quoted(a.text)}}},{{"id":"b","text":{_quoted(b.text)}}}]{source}{split}}}'
    )


def _message(item: dict[str, Any]) -> Message | None:
    if len(item) != 2 or item.get("role") not in ROLES or type(item.get("content")) is not str:
        return None
    return _made(Message, {"role": item["role"], "content": item["content"]}, SAID)


def _response(id: str, text: str) -> Response:
    return _made(Response, {"id": id, "text": text, "origin": "", "tags": ()}, ANSWERED)


def _made(kind: type[R], values: dict[str, Any], given: set[str]) -> R:
    """The record with these values, as the validator leaves it."""
    record = kind.__new__(kind)
    _set_values(record, values)
    _set_given(record, given)
    _set_extra(record, None)
    _set_private(record, None)
    return record
