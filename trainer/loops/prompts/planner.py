"""What a step samples: which prompts, and with which scaffold each response is asked for."""

from typing import Any

from trainer.config import OnPolicyConfig
from trainer.curriculum import DataOrder, GroupSizes, PassRates, group_factor, scaffold_for, step_factor
from trainer.inference.chat import encode_prompt, with_addition
from trainer.rollouts import PromptPlan
from trainer.seeding import derive_seed

from .data import Prompt


class Planner:
    """The order of the data, and everything random about a response before it is sampled: a function of seed and step."""

    def __init__(self, config: OnPolicyConfig, prompts: list[Prompt], tokenizer: Any) -> None:
        self._config, self._prompts, self._tokenizer = config, prompts, tokenizer
        self.order = DataOrder(len(prompts), config.seed, config.data.shuffle)
        self.pass_rates = PassRates(config.pass_rates.keep)
        self._sizes = GroupSizes(config.rollout.group_size, config.rollout.budget, self.pass_rates)

    def plan(self, step: int, groups: range | None = None, responses: int | None = None) -> list[PromptPlan]:
        """The next prompts, G responses each or as many as the budget gives them, with the scaffold each response is shown.

        `groups`: their numbers within the step; left out, those of the P prompts that every step begins with. `responses`: how
        many they have together, by default G each.
        """
        numbers = range(self._config.rollout.prompts_per_step) if groups is None else groups
        indices = self.order.take(len(numbers))
        sizes = self._sizes.of([self._prompts[index].example.key for index in indices], responses)
        chosen = zip(numbers, indices, sizes, strict=True)
        return [plan for group, index, size in chosen for plan in self._plan_group(step, group, index, size)]

    def plans_of(self, number: int) -> list[PromptPlan]:
        """The responses of the `number`-th group of the data, planned for the step that is its own in the data's order."""
        step, group = divmod(number, self._config.rollout.prompts_per_step)
        return self._plan_group(step + 1, group, self.order.at(number), self._config.rollout.group_size)

    def plan_at(self, step: int, group: int, number: int) -> list[PromptPlan]:
        """The responses of the `number`-th group of the data, as the `group`-th of step `step`."""
        return self._plan_group(step, group, self.order.at(number), self._config.rollout.group_size)

    def domain_of(self, number: int) -> str:
        """Of the `number`-th group of the data."""
        return self._prompts[self.order.at(number)].example.domain

    def _plan_group(self, step: int, group: int, index: int, size: int) -> list[PromptPlan]:
        """The `size` responses to training prompt `index`, which is the `group`-th of the step."""
        return [self._plan_one(step, group, i, size, self._prompts[index]) for i in range(size)]

    def _plan_one(self, step: int, group: int, index: int, size: int, prompt: Prompt) -> PromptPlan:
        config, text, shown = self._config, "", 0
        sampled = prompt.tokens
        scaffold = config.shown_scaffold
        if scaffold and prompt.rubric:
            # Of an asynchronous run, groups beyond the last step's are trained on where others were dropped.
            share = step_factor(scaffold, min(step, config.steps), config.steps)
            share *= group_factor(scaffold, index + 1, size)
            scaffold = scaffold_for(prompt.rubric, share, config.seed, step, group, index)
            text, shown = scaffold.text, scaffold.shown
        if text:
            sampled = encode_prompt(self._tokenizer, with_addition(prompt.example.prompt, text))
        seed = derive_seed(config.seed, "rollout", step, group, index)
        return PromptPlan(prompt.example.key, group, index, prompt.text, prompt.tokens, sampled, seed, text, shown)
