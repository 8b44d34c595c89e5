"""Chooses the next prompts: from all of the data or a part of it, by one order or by a mixture of several."""

from collections.abc import Collection, Iterator, Sequence, Set
from itertools import islice
from typing import Any, NamedTuple

from trainer.config.sections.order import Order, Pool
from trainer.contracts import Example
from trainer.contracts.hints import pass_rate_of
from trainer.seeding import derive_seed

from .budget import learning_value
from .order import DataOrder
from .pass_rates import PassCounts
from .rounding import half_up

_UNKNOWN = 0.5


class KnownPrompt(NamedTuple):
    """The facts about a prompt that are known before the run: `rate` is None if no probe has measured it."""

    key: str
    rate: float | None
    tags: frozenset[str]
    domain: str = ""


def known_of(example: Example) -> KnownPrompt:
    return KnownPrompt(example.key, pass_rate_of(example), frozenset(example.tags), example.domain)


def replicas(rate: float | None, most: int) -> int:
    """The number of groups that a prompt gets in one pass: `1 + (1 - p) (most - 1)`, rounded, halves up. The lower its pass rate before
    the run, the more (LongCat-Flash-Thinking-2601, 2026: the budget of asynchronous runs). 1 if the rate is not known.
    """
    return 1 if rate is None else 1 + half_up((1 - rate) * (most - 1))


class PromptOrder:
    """Endless passes over the prompts of a pool; the pool holds all prompts until a phase narrows it.

    With a mixture, from the config or from a phase, the places of a step are shared among the orders in proportion to their shares.
    Each place goes to the order that is furthest behind. A prompt comes once a step as long as the pool has others.
    """

    def __init__(
        self,
        known: Sequence[KnownPrompt],
        seed: int,
        shuffle: bool,
        mix: Order | None = None,
        rates: PassCounts | None = None,
        most: int = 1,
    ) -> None:
        """`most` is the largest number of replicas of a prompt in one pass (see `replicas`); it has an effect only without a mixture."""
        self._known, self._seed, self._shuffle, self._rates = known, seed, shuffle, rates
        self._pool, self._most = Pool(), most
        self._number = 0
        self._configured = self._mix = mix
        self._mixed: tuple[int, Order | None] = (0, None)
        self._begin()

    @property
    def size(self) -> int:
        """The number of prompts that are in the pool."""
        return self.fitting(self._pool)

    @property
    def count(self) -> int:
        """The number of prompts that the data has."""
        return len(self._known)

    @property
    def drawn_from(self) -> tuple[int, Pool]:
        """The number of the phase that has named the pool, and the pool."""
        return self._number, self._pool

    @property
    def passes(self) -> float:
        """The number of places that have been given out since the pool was named, divided by its size."""
        return self._drawn / len(self._places)

    @property
    def mixed_by(self) -> tuple[int, Order | None]:
        """The number of the phase that has named the mixture, and the mixture; 0 and None if the config's mixture holds."""
        return self._mixed

    def fitting(self, pool: Pool) -> int:
        """The number of prompts that belong to `pool`."""
        return sum(pool.holds(each.rate, each.tags, each.domain) for each in self._known)

    def narrow(self, number: int, pool: Pool) -> None:
        """Draw from now on only prompts of `pool`, in an order that is that of phase `number`.

        Raises ValueError if no prompt fits; nothing has changed then.
        """
        if not self.fitting(pool):
            raise ValueError(f"none of the {len(self._known)} training prompts {pool.words}")
        self._number, self._pool = number, pool
        self._begin()

    def blend(self, number: int, mix: Order | None) -> None:
        """Draw the next prompts by `mix`, which phase `number` has named; None stands for the config's mixture.

        The order of the data continues at its place. The order from easy to hard begins again.
        """
        self._mix_by(number, mix)
        self._start_mix()
        if self._mix is None:
            self._drawn = int(self._data.state_dict()["position"])

    def take(self, wanted: int, besides: Collection[int] = ()) -> list[int]:
        """The next `wanted` indices. With a mixture, indices that the step has already (`besides`) do not come again."""
        self._drawn += wanted
        if self._mix is None:
            return [self._places[place] for place in self._data.take(wanted)]
        orders = {"data": self._in_data(), "easy_first": self._ascending(), "uncertain": self._by_doubt()}
        had = set(besides)
        taken = {place for place, index in enumerate(self._places) if index in had} if had else set()
        chosen = []
        for _ in range(wanted):
            name = self._due(self._mix)
            self._given[name] += 1
            chosen.append(self._fresh(orders[name], taken))
            taken.add(chosen[-1])
        return [self._places[place] for place in chosen]

    def at(self, position: int) -> int:
        """The index at any place of the data's own order, for runs without phases and mixtures; place 0 is the first of the run."""
        return self._places[self._data.at(position)]

    def state_dict(self) -> dict[str, Any]:
        own: dict[str, Any] = {"position": self._data.state_dict()["position"], "count": len(self._known)}
        if self._number:
            own |= {"phase": self._number, "pool": self._pool.model_dump(mode="json")}
        number, mix = self._mixed
        if mix:
            own |= {"mixed_by": number, "mix": mix.model_dump(mode="json")}
        return own | ({"easy": self._easy, "given": dict(self._given), "drawn": self._drawn} if self._mix else {})

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Raises ValueError if the state belongs to a data set of another size, or if a part is missing."""
        if state["count"] != len(self._known):
            raise ValueError(
                f"the checkpoint was made with {state['count']} training prompts, and now there are {len(self._known)}; "
                "give the run the same data"
            )
        self._number, self._pool = state.get("phase", 0), Pool.model_validate(state.get("pool", {}))
        mix = state.get("mix")
        self._mix_by(state.get("mixed_by", 0), mix and Order.model_validate(mix))
        self._begin()
        self._data.load_state_dict({"position": state["position"], "count": len(self._places)})
        self._drawn = state["position"]
        if self._mix and "given" in state:  # a fork may mix what its parent did not mix
            self._easy, self._given = state["easy"], dict(state["given"])
            self._drawn = state.get("drawn", state["position"])

    def _begin(self) -> None:
        self._places = [
            place
            for place, each in enumerate(self._known)
            if self._pool.holds(each.rate, each.tags, each.domain)
            for _ in range(replicas(each.rate, self._most))
        ]
        seed = derive_seed(self._seed, "pool", self._number) if self._number else self._seed
        self._data = DataOrder(len(self._places), seed, self._shuffle)
        self._drawn = 0
        self._start_mix()

    def _mix_by(self, number: int, mix: Order | None) -> None:
        self._mixed, self._mix = (number, mix), mix or self._configured

    def _start_mix(self) -> None:
        self._easy, self._given = 0, dict.fromkeys(("data", "easy_first", "uncertain"), 0)
        # Prompts with equal rates stay in the order of the data, and so do those without a rate, which come last.
        places = range(len(self._places)) if self._mix else ()
        self._by_ease = sorted(places, key=lambda place: -self._rate(place, -1.0))

    def _due(self, mix: Order) -> str:
        """The order that is furthest behind its share."""
        shares, places = mix.shares, sum(self._given.values()) + 1
        return max(shares, key=lambda name: shares[name] * places - self._given[name])

    def _fresh(self, order: Iterator[int], taken: Set[int]) -> int:
        """The next place of the pool by this order that the step has not taken; if it has taken all, the next place of the data."""
        for place in islice(order, len(self._places)):
            if place not in taken:
                return place
        return next(self._in_data())

    def _in_data(self) -> Iterator[int]:
        while True:
            yield self._data.take(1)[0]

    def _ascending(self) -> Iterator[int]:
        """The places from the easiest to the hardest, again and again."""
        while True:
            self._easy += 1
            yield self._by_ease[(self._easy - 1) % len(self._places)]

    def _by_doubt(self) -> Iterator[int]:
        """The places by how much one more response would reduce the doubt about the pass rate.

        The rate is that of the run if known, else that of the probe, else one half.
        """
        worth = [self._doubt(place) for place in range(len(self._places))]
        yield from sorted(range(len(self._places)), key=lambda place: (-worth[place], place))

    def _doubt(self, place: int) -> float:
        key = self._known[self._places[place]].key
        seen = self._rates.rate(key) if self._rates else None
        if seen is None or self._rates is None:
            return learning_value(self._rate(place, _UNKNOWN), 0)
        return learning_value(seen, self._rates.responses(key))

    def _rate(self, place: int, unknown: float) -> float:
        rate = self._known[self._places[place]].rate
        return unknown if rate is None else rate
