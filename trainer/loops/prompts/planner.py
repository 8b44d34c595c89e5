"""Plans the samples of a step: its prompts, and the scaffold of each response."""

import random
from typing import Any

from trainer.config import OnPolicyConfig
from trainer.contracts.hints import pass_rate_of
from trainer.curriculum import GroupSizes, PassCounts, PromptOrder, group_factor, known_of, scaffold_for, step_factor
from trainer.curriculum.ahrl import hint_for, hint_text
from trainer.inference.chat import encode_prompt, with_addition
from trainer.rollouts import PromptPlan
from trainer.seeding import derive_seed

from .data import Prompt

_ROUNDS = 5
"""Rounds in which trivial prompts are passed over, before a step takes them after all."""


class Planner:
    """The order of the data, and every random choice about a response before it is sampled: a function of seed and step."""

    def __init__(self, config: OnPolicyConfig, prompts: list[Prompt], tokenizer: Any) -> None:
        self._config, self._prompts, self._tokenizer = config, prompts, tokenizer
        self.pass_rates = PassCounts(config.pass_rates.keep)
        known = [known_of(each.example) for each in prompts]
        self.order = PromptOrder(
            known, config.seed, config.data.shuffle, config.data.order, self.pass_rates, config.data.replicas
        )
        self.passed_over = 0
        """The number of prompts that the present step has passed over."""
        self._sizes = GroupSizes(config.rollout.group_size, config.rollout.budget, self.pass_rates)
        self._given: tuple[int, list[int]] = (-1, [])
        """A step in the data's order, and the sizes of its groups."""

    def aimless(self) -> str:
        """The reason why the budget of the latest sizes cannot prefer any prompt; given once for all calls in a row in which it lasts,
        else empty."""
        return self._sizes.take_aimless()

    def plan(self, step: int, groups: range | None = None, responses: int | None = None) -> list[PromptPlan]:
        """The next prompts, with G responses each or as many as the budget gives them, and the scaffold of each response.

        `groups` are their numbers within the step; by default those of the P prompts that every step begins with. `responses` is the
        number of all their responses, by default G each.
        """
        if groups is None:
            self.passed_over = 0
        numbers = range(self._config.rollout.prompts_per_step) if groups is None else groups
        indices = self._drawn(step, len(numbers))
        sizes = self._sizes.of([self._prompts[index].example.key for index in indices], responses)
        chosen = zip(numbers, indices, sizes, strict=True)
        return [plan for group, index, size in chosen for plan in self._plan_group(step, group, index, size)]

    def _drawn(self, step: int, wanted: int) -> list[int]:
        """The next prompts. Trivial ones are passed over with the probability that the config names. If no others come,
        the step takes them after all.
        """
        kept: list[int] = []
        for attempt in range(_ROUNDS if self._config.pass_rates.pass_over else 0):
            drawn = self.order.take(wanted - len(kept), kept)
            stay = [index for index in drawn if not self._passes_over(step, attempt, index)]
            self.passed_over += len(drawn) - len(stay)
            kept += stay
        return kept + self.order.take(wanted - len(kept), kept)

    def _passes_over(self, step: int, attempt: int, index: int) -> bool:
        rates, key = self._config.pass_rates, self._prompts[index].example.key
        rate = self.pass_rates.rate(key)
        if rate is None or rate < rates.trivial:
            return False
        chance = random.Random(derive_seed(self._config.seed, "trivial", step, attempt, key))  # noqa: S311 - a draw, no secret
        return chance.random() < rates.pass_over

    def size_of(self, number: int) -> int:
        """The number of responses that the `number`-th group of the data has; the run now has room for them. A budget gives out the
        responses of a step when the step's first group is asked for, by what is known by then. So groups must be asked for in the order of
        the data.
        """
        prompts = self._config.rollout.prompts_per_step
        if self._config.rollout.budget is None:
            return self._config.rollout.group_size
        step, group = divmod(number, prompts)
        if self._given[0] != step:
            indices = [self.order.at(step * prompts + place) for place in range(prompts)]
            self._given = step, self._sizes.of([self._prompts[index].example.key for index in indices])
        return self._given[1][group]

    def plans_of(self, number: int, size: int) -> list[PromptPlan]:
        """The `size` responses of the `number`-th group of the data, planned for the group's own step in the data's order."""
        step, group = divmod(number, self._config.rollout.prompts_per_step)
        return self._plan_group(step + 1, group, self.order.at(number), size)

    def plan_at(self, step: int, group: int, number: int) -> list[PromptPlan]:
        """The responses of the `number`-th group of the data, as the `group`-th of step `step`."""
        return self._plan_group(step, group, self.order.at(number), self._config.rollout.group_size)

    def domain_of(self, number: int) -> str:
        """The domain of the `number`-th group of the data."""
        return self._prompts[self.order.at(number)].example.domain

    def _plan_group(self, step: int, group: int, index: int, size: int) -> list[PromptPlan]:
        """The `size` responses to training prompt `index`, which is the `group`-th of the step."""
        return [self._plan_one(step, group, i, size, self._prompts[index]) for i in range(size)]

    def _plan_one(self, step: int, group: int, index: int, size: int, prompt: Prompt) -> PromptPlan:
        text, shown, hint = self._addition(step, group, index, size, prompt)
        sampled = prompt.tokens
        if text:
            sampled = encode_prompt(self._tokenizer, with_addition(prompt.example.prompt, text))
        seed = derive_seed(self._config.seed, "rollout", step, group, index)
        return PromptPlan(
            prompt.example.key, group, index, prompt.text, prompt.tokens, sampled, seed, text, shown, hint
        )

    def _addition(self, step: int, group: int, index: int, size: int, prompt: Prompt) -> tuple[str, int, float]:
        """The text that is added to the prompt while sampling, with its number of criteria and its share of the reference reasoning."""
        config = self._config
        # In an asynchronous run, groups beyond the last step's are trained on if others were dropped.
        at = min(step, config.steps)
        scaffold, hint = config.shown_scaffold, config.shown_hint
        if scaffold and prompt.rubric:
            share = step_factor(scaffold, at, config.steps)
            share *= group_factor(scaffold, index + 1, size)
            found = scaffold_for(prompt.rubric, share, config.seed, step, group, index)
            return found.text, found.shown, 0.0
        if hint and prompt.reasoning:
            shown = hint_for(hint, prompt.reasoning, pass_rate_of(prompt.example), at)
            return hint_text(self._tokenizer, shown), 0, len(shown) / len(prompt.reasoning)
        return "", 0, 0.0
