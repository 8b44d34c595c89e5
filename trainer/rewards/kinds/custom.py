"""A user's own rewards: a service on the network, and a function of an installed package.

Both get a group of responses as JSON and answer with a list of the same length: for each response a number, null, or
`{"value": number or null, "why": text, "shown": anything}`.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from trainer.config.rewards.parts import HttpPart, PythonPart
from trainer.contracts.plurals import with_noun

from ..parts import JSON, Away, Item, Part, Service, Services, Unscored, part_of_answer

MOST_SHOWN = 20_000  # the most characters of JSON that come with a response


async def http(part: HttpPart, items: Sequence[Item], services: Services) -> list[Part]:
    return await _answered(services.endpoints[part.endpoint], items, None)


async def python(part: PythonPart, items: Sequence[Item], services: Services) -> list[Part]:
    return await _answered(services.functions[part.entry], items, part.seconds)


def as_json(item: Item) -> dict[str, JSON]:
    """A response in the form for a user's own reward."""
    return {
        "key": item.example.key,
        "place": item.place,
        "prompt": [{"role": message.role, "content": message.content} for message in item.example.prompt],
        "response": item.response,
        "facts": dict(item.facts),
        "reference": item.example.reference,
        "domain": item.example.domain,
        "meta": item.example.meta,
        "rubric": [
            {"id": c.id, "text": c.text, "points": c.points} for c in (item.rubric.criteria if item.rubric else ())
        ],
    }


def read(answer: JSON, count: int) -> list[Part]:
    """A part for each of `count` responses. Raises Unscored if the answer is not a list of that length."""
    if not isinstance(answer, list) or len(answer) != count:
        told = f"a list of {len(answer)}" if isinstance(answer, list) else f"a {type(answer).__name__}"
        raise Unscored(f"it answered {told}, not a list with one entry for each of {with_noun(count, 'responses')}")
    return [_one(entry) for entry in answer]


def _one(entry: Any) -> Part:
    if not isinstance(entry, Mapping):
        return part_of_answer(entry)
    if "value" not in entry:
        return Part(None, "it answered an object without a value")
    why, shown = entry.get("why") or "", entry.get("shown")
    if not isinstance(why, str):
        why = json.dumps(why, default=str)
    if shown is not None and len(json.dumps(shown, default=str)) > MOST_SHOWN:
        shown = f"left out: longer than {MOST_SHOWN:,} characters"
    return part_of_answer(entry["value"], why[:2000], shown)


async def _answered(service: Service, items: Sequence[Item], seconds: float | None) -> list[Part]:
    try:
        return read(await service.answer([as_json(item) for item in items], seconds), len(items))
    except Away as away:
        return [Part(None, str(away), away=True) for _ in items]
    except Unscored as unscored:
        return [Part(None, str(unscored)) for _ in items]
