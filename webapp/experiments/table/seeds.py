"""One value for each seed of runs that differ by the seed alone."""

from collections.abc import Sequence


def one_each(seeds: Sequence[float | None], values: Sequence[float | None]) -> list[float | None]:
    """The values of `by_seed`, then those of runs whose seed is not known: each of them counts by itself."""
    alone = [value for seed, value in zip(seeds, values, strict=True) if seed is None]
    return [*by_seed(seeds, values).values(), *alone]


def by_seed(seeds: Sequence[float | None], values: Sequence[float | None]) -> dict[float, float | None]:
    """{seed: the mean of the values of its runs}, None if they have none. Runs whose seed is not known are left out.

    A run that was launched again, for example every night, has its seed twice. Its second value says nothing about another seed: counted as one,
    it would make the interval too narrow, and with equal values as narrow as nothing.
    """
    held: dict[float, list[float]] = {}
    for seed, value in zip(seeds, values, strict=True):
        if seed is None:
            continue
        found = held.setdefault(seed, [])
        if value is not None:
            found.append(value)
    return {seed: sum(found) / len(found) if found else None for seed, found in held.items()}
