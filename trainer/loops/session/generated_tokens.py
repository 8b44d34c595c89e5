"""Counts the tokens that the samplers of a run have written."""

from typing import Protocol

from trainer.config.metrics.common import GENERATED


class Generates(Protocol):
    """A sampler, or what takes in the responses of workers."""

    @property
    def generated(self) -> int:
        """Tokens of all responses so far; may be read in any thread."""
        ...


class GeneratedTokens:
    """Counts what is generated from one step to the next. A stage names what generates for it."""

    def __init__(self) -> None:
        self._sources: list[Generates] = []
        self._told = 0

    def by(self, source: Generates) -> None:
        self._sources.append(source)

    def metrics(self) -> dict[str, float]:
        """The tokens since the last call; {} if nothing in this run generates."""
        if not self._sources:
            return {}
        count = sum(source.generated for source in self._sources)
        since, self._told = count - self._told, count
        return {GENERATED.key: float(since)}
