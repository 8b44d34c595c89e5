"""Schedules the gold tasks of a person: one in each block of `gold_every` seats, at a position that differs between blocks and between
people, so that nobody can predict it.

The number of tasks left that a person sees includes the gold tasks still to come. Otherwise the number would not change when a gold task is
served.
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
    """The number of the `unmet` gold tasks that the participant gets from seat `served` on, until the `waiting` others are done."""
    found = 0
    while every and found < unmet and (waiting or is_gold(person, served, every)):
        if is_gold(person, served, every):
            found += 1
        else:
            waiting -= 1
        served += 1
    return found
