"""When a person meets gold tasks: one in each block of `gold_every` seats, at a place that differs from block to block and from
person to person, so that it cannot be counted out.

What a person is told to be left counts the gold tasks still to come as it counts the others. Otherwise the number would
stand still where one is served.
"""

from functools import lru_cache
from random import Random


@lru_cache(10_000)
def _place(person: int, block: int, every: int) -> int:
    return Random(f"{person}:{block}").randrange(every)  # noqa: S311  not a secret


def is_gold(person: int, number: int, every: int | None) -> bool:
    """Whether seat `number`, from 0, of participant `person` is to be gold."""
    if not every:
        return False
    block, at = divmod(number, every)
    return at == _place(person, block, every)


def to_come(person: int, served: int, every: int | None, unmet: int, waiting: int) -> int:
    """How many of `unmet` gold tasks the participant meets from seat `served` on, until the `waiting` others are done."""
    found = 0
    while every and found < unmet and (waiting or is_gold(person, served, every)):
        if is_gold(person, served, every):
            found += 1
        else:
            waiting -= 1
        served += 1
    return found
