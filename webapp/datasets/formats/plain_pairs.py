"""Makes a record of the most common row, a prompt with a better and a worse answer, without the general validator.

Every part is checked here for exactly the types and values that the record wants, so that the result is what `Example.model_validate` would
give; all other rows are left to it. On a million pairs this saves a third of our work.
"""

from math import isfinite
from typing import Any, TypeVar, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import from_json, to_json

from trainer.contracts import Example, Message, Preference, Response
from trainer.contracts.example import Role, Split

from .fields import CHOSEN

ROLES = frozenset(get_args(Role))
SIDES = get_args(Split)
WRITTEN = to_json(CHOSEN)
PREFERENCES = tuple(Preference.model_validate(each) for each in CHOSEN)
ALLOWED = frozenset({"key", "prompt", "responses", "preferences", "meta", "source", "domain", "split"})
# every field in its order, so that values that replace it keep the record's order
DEFAULTS = {name: info.get_default(call_default_factory=True) for name, info in Example.model_fields.items()}

TEXT = frozenset({str})
SIMPLE = frozenset({str, int, bool, type(None)})
NUMBERS = SIMPLE | {float}
SAID, ANSWERED = {"role", "content"}, {"id", "text"}  # the fields that are given to a message and to a response

R = TypeVar("R", bound=BaseModel)
_new = object.__new__
_set_values, _set_given, _set_extra, _set_private = (
    BaseModel.__dict__[name].__set__
    for name in ("__dict__", "__pydantic_fields_set__", "__pydantic_extra__", "__pydantic_private__")
)


def pair(data: dict[str, Any]) -> Example | None:
    """The example, or None if the data is not a plain pair of the shape that `fields.pair` gives."""
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
    chosen, rejected = data["responses"]
    if data.get("split", "train") not in SIDES:
        return None
    texts = (chosen["text"], rejected["text"], data.get("source", ""), data.get("domain", ""))
    prompt = tuple(map(_message, data["prompt"]))
    if not TEXT.issuperset(map(type, texts)) or not prompt or not all(prompt):
        return None
    values = DEFAULTS | data
    values["prompt"], values["preferences"] = prompt, PREFERENCES
    values["responses"] = (_response("a", texts[0]), _response("b", texts[1]))
    return _made(Example, values, set(data))


def read_back(data: Any) -> dict[str, Any]:
    """An importer's data in the canonical form, as JSON has it; empty if it makes no example."""
    try:
        example = pair(data) or Example.model_validate(data)
        found: dict[str, Any] = from_json(canonical(example))
    except (ValidationError, ValueError):
        return {}
    return found


def canonical(example: Example) -> bytes:
    """The text of `Example.canonical` in UTF-8: written here for a record that `pair` made and whose `meta` holds texts and numbers at
    most. Raises ValueError for content that JSON cannot hold."""
    if (
        example.preferences is not PREFERENCES
        or example.group
        or not NUMBERS.issuperset(map(type, example.meta.values()))
    ):
        return example.canonical().encode()
    a, b = example.responses
    try:
        prompt = b",".join(
            [b'{"content":%b,"role":"%b"}' % (to_json(each.content), each.role.encode()) for each in example.prompt]
        )
        # the keys in their order, and nothing that is a default
        return (
            b'{%b"key":%b%b,"preferences":%b,"prompt":[%b],"responses":[{"id":"a","text":%b},{"id":"b","text":%b}]%b%b}'
            % (
                b'"domain":%b,' % to_json(example.domain) if example.domain else b"",
                to_json(example.key),
                b',"meta":%b' % _written(dict(sorted(example.meta.items()))) if example.meta else b"",
                WRITTEN,
                prompt,
                to_json(a.text),
                to_json(b.text),
                b',"source":%b' % to_json(example.source) if example.source else b"",
                b',"split":"%b"' % example.split.encode() if example.split else b"",
            )
        )
    except ValueError:  # half a character, for which the general way has a message
        return example.canonical().encode()


def _written(meta: dict[str, Any]) -> bytes:
    if SIMPLE.issuperset(map(type, meta.values())):
        return to_json(meta)
    # `to_json` writes some numbers with a point in another form than Python
    return b"{%b}" % b",".join([b"%b:%b" % (to_json(name), _number(each)) for name, each in meta.items()])


def _number(value: Any) -> bytes:
    """Raises ValueError for a number that is not finite."""
    if type(value) is not float:
        return to_json(value)
    if not isfinite(value):
        raise ValueError("not finite")
    return repr(value).encode()


def _message(item: dict[str, Any]) -> Message | None:
    if len(item) != 2 or item.get("role") not in ROLES or type(item.get("content")) is not str:
        return None
    return _made(Message, {"role": item["role"], "content": item["content"]}, SAID)


def _response(id: str, text: str) -> Response:
    return _made(Response, {"id": id, "text": text, "origin": "", "tags": (), "steps": ()}, ANSWERED)


def _made(kind: type[R], values: dict[str, Any], given: set[str]) -> R:
    """The record with these values, as the validator leaves it."""
    record = _new(kind)
    _set_values(record, values)
    _set_given(record, given)
    _set_extra(record, None)
    _set_private(record, None)
    return record
