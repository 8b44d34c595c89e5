"""One value for each seed of runs that differ by the seed alone."""

from collections.abc import Sequence


def one_each(seeds: Sequence[float | None], values: Sequence[float | None]) -> dict[float, float | None]:
    """{seed: the mean of the values of its runs}, None if they have none.

    A run that was launched again, for example every night, has its seed twice. Its second value says nothing about another seed: counted as one,
    it would make the interval too narrow, and with equal values as narrow as nothing. A run whose seed is not known counts by itself, under a
    negative number.
    """
    held: dict[float, list[float]] = {}
    for place, (seed, value) in enumerate(zip(seeds, values, strict=True)):
        found = held.setdefault(-1.0 - place if seed is None else seed, [])
        if value is not None:
            found.append(value)
    return {seed: sum(found) / len(found) if found else None for seed, found in held.items()}
