"""Computes the rewards of responses: all parts of a group of responses are measured at the same time."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence

from trainer.config.rewards.expression import Expression
from trainer.config.rewards.parts import RewardPart

from . import kinds
from .composition import Composed, compose
from .guard import reason
from .journal import Notes, part_identity
from .parts import Item, Part, Services, part_of_answer

LASTING = ("http", "python", "reward_model")
"""Kinds whose values are written to the journal, like those of parts that ask a judge: to measure them again may cost money, or may give
another value."""
Wait = Callable[[str], Awaitable[None]]
Ran = Callable[[str, float, float], None]
"""Is told the name of a part that was measured, and when this began and ended, by `time.monotonic`."""


async def score(
    parts: Sequence[RewardPart],
    items: Sequence[Item],
    services: Services,
    wait: Wait,
    journal: Notes | None = None,
    expression: Expression | None = None,
    ran: Ran = lambda name, start, end: None,
) -> list[Composed]:
    """The rewards of `items`, in order. A part that raises is missing for every item it was asked about.

    If a judge or service cannot be asked and the part says to pause, `wait` is called with the reason; after it returns, the same is asked
    again. An exception of `wait` ends the scoring. `ran` is told of each part and each time it was measured. `journal` has the values that were measured before the run was interrupted.
    """
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(_patiently(part, items, services, wait, journal, ran)) for part in parts]
    measured = [task.result() for task in tasks]
    return [
        compose(parts, {part.name: found[place] for part, found in zip(parts, measured, strict=True)}, expression)
        for place in range(len(items))
    ]


async def _patiently(
    part: RewardPart, items: Sequence[Item], services: Services, wait: Wait, journal: Notes | None, ran: Ran
) -> list[Part]:
    lasting = journal if part.kind in LASTING or part.asks_judge else None
    asked = part_identity(part, services)
    found: list[Part | None] = [lasting.get(part, asked, item) if lasting else None for item in items]
    while open_places := [place for place, known in enumerate(found) if known is None]:
        started = time.monotonic()
        fresh = await _measured(part, [items[place] for place in open_places], services)
        ran(part.name, started, time.monotonic())
        pause = getattr(part, "on_missing", "exclude") == "pause"
        for place, measured in zip(open_places, fresh, strict=True):
            if not (measured.away and pause):
                found[place] = measured
                if lasting:
                    lasting.put(part, asked, items[place], measured)
        away = next((measured.why for measured in fresh if measured.away), "")
        if away and pause:
            await wait(f"{part.name}: {away}")
    return [known for known in found if known is not None]


async def _measured(part: RewardPart, items: Sequence[Item], services: Services) -> list[Part]:
    try:
        found = await kinds.KINDS[part.kind](part, items, services)
    except Exception as error:
        return [Part(None, reason(error)) for _ in items]
    if len(found) != len(items):
        return [Part(None, f"{len(found)} values for {len(items)} responses") for _ in items]
    return [_checked(each) for each in found]


def _checked(part: Part) -> Part:
    """The part as it is if its value is a finite number; for any other value it is missing with the reason."""
    checked = part_of_answer(part.value, part.why)
    return part._replace(value=checked.value, why=checked.why)
