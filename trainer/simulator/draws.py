"""Sizes, lengths, latencies and lifetimes, each drawn from its own seed, so that every policy meets the same responses."""

import math
import random
from functools import lru_cache
from itertools import accumulate

from trainer.curriculum.budget import VALUES, allocate
from trainer.scheduling import SampleId
from trainer.seeding import derive_seed

from .config import Simulation


class Draws:
    def __init__(self, config: Simulation) -> None:
        self._config = config
        self._names = list(config.domains)
        self._up_to = list(accumulate(domain.share for domain in config.domains.values()))
        # The engines and the report ask several times for the length of a response.
        self.tokens = lru_cache(maxsize=None)(self._tokens)
        self.prompt_factor = lru_cache(maxsize=65536)(self._prompt_factor)
        self._given = lru_cache(maxsize=1024)(self._given_out)

    def domain(self, group: int) -> str:
        if not self._names:
            return ""
        return self._random("domain", group).choices(self._names, cum_weights=self._up_to)[0]

    def size(self, group: int) -> int:
        """The number of responses that a group has. A budget shares the responses of a step among its prompts in the order of the data;
        the run meets each of them for the first time.
        """
        batch = self._config.batch
        if batch.sizes:
            return batch.sizes[group % len(batch.sizes)]
        step, place = divmod(group, batch.prompts)
        return self._given(step)[place] if batch.budget else batch.group_size

    def _given_out(self, step: int) -> list[int]:
        batch = self._config.batch
        assert batch.budget is not None  # noqa: S101 - `size` has looked
        rates = [self._pass_rate(number) for number in range(step * batch.prompts, (step + 1) * batch.prompts)]
        total, budget = batch.prompts * batch.group_size, batch.budget
        return allocate(rates, [0] * len(rates), total, budget.low, budget.high, VALUES[budget.value])

    def _pass_rate(self, group: int) -> float:
        chance, known = self._random("pass_rate", group), self._config.batch.pass_rates
        return chance.choice(known) if known else chance.random()

    def _tokens(self, sample: SampleId) -> int:
        lengths, chance = self._config.lengths, self._random("tokens", *sample)
        if lengths.measured:
            return chance.choice(lengths.measured)
        exact = self.prompt_factor(sample.group) * math.exp(lengths.sigma * chance.gauss(0.0, 1.0))
        return max(1, min(lengths.max_tokens, round(exact)))

    def latency_s(self, group: int) -> float:
        latency = self._config.latency
        if not latency.median_s:
            return 0.0
        return latency.median_s * math.exp(latency.sigma * self._random("latency", group).gauss(0.0, 1.0))

    def life_s(self, engine: str) -> float:
        """The seconds that an engine lives."""
        lives = self._config.engine.lives_s
        return math.inf if lives is None else self._random("life", engine).expovariate(1.0 / lives)

    def _prompt_factor(self, group: int) -> float:
        lengths = self._config.lengths
        domain = self._config.domains.get(self.domain(group))
        spread = math.exp(lengths.prompt_sigma * self._random("prompt", group).gauss(0.0, 1.0))
        return lengths.median * (domain.length_factor if domain else 1.0) * spread

    def _random(self, *purpose: str | int) -> random.Random:
        return random.Random(derive_seed(self._config.seed, *purpose))  # noqa: S311 - chance, not secrecy
