"""Groups whose responses are sampled over several steps, so that several versions of the weights answer one prompt
(GLM-5: the rollouts of a prompt are spread over batches).

The groups that step t trains on are its cohort. With `runner.spread` S a cohort is begun S - 1 steps before, or with the run, and
every step until t samples the same share of each group. So every step trains whole groups and, after the first steps,
samples as many responses as it trains on. A response's place in its group decides which step samples it.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from trainer.config import OnPolicyConfig
from trainer.inference.sampling import SampleResult
from trainer.rollouts import PromptPlan, Trajectory
from trainer.rollouts.stored import read, stored_trajectory

from ..prompts.planner import Planner


@dataclass(frozen=True)
class Cohort:
    """`begun` is the step that sampled the first responses; `sampled` has the responses so far, by their place in `plans`."""

    begun: int
    plans: Sequence[PromptPlan]
    sampled: Mapping[int, Trajectory] = field(default_factory=dict)

    def due(self, step: int, last: int) -> list[int]:
        """The places that step `step` samples, if step `last` trains the cohort."""
        sizes = Counter(plan.group for plan in self.plans)
        parts, part = last - self.begun + 1, step - self.begun
        return [
            place
            for place, plan in enumerate(self.plans)
            if place not in self.sampled and plan.index * parts // sizes[plan.group] <= part
        ]


class SpreadGroups:
    """The cohorts under way. A step that is given up changes nothing: what it sampled counts only from `updated` on."""

    def __init__(self, config: OnPolicyConfig, planner: Planner) -> None:
        self._over, self._steps, self._planner = config.runner.spread, config.steps, planner
        self._cohorts: dict[int, Cohort] = {}
        self._next: dict[int, Cohort] | None = None

    def due(self, step: int) -> list[tuple[int, int, PromptPlan]]:
        """The plans to sample now: (step that trains it, place in its cohort, plan)."""
        last = max(step, min(step + self._over - 1, self._steps))
        self._next = dict(self._cohorts)
        for at in range(step, last + 1):
            if at not in self._next:
                self._next[at] = Cohort(step, self._planner.plan(at))
        return [
            (at, place, self._next[at].plans[place])
            for at in range(step, last + 1)
            for place in self._next[at].due(step, at)
        ]

    def sampled(
        self, step: int, asked: Sequence[tuple[int, int, PromptPlan]], results: Sequence[SampleResult]
    ) -> list[Trajectory]:
        """The whole cohort of step `step`, in the order of its plans, without rewards yet."""
        cohorts = self._next or {}
        for (at, place, plan), result in zip(asked, results, strict=True):
            cohort = cohorts[at]
            there = {**cohort.sampled, place: Trajectory.of(plan, result)}
            cohorts[at] = Cohort(cohort.begun, cohort.plans, there)
        whole = cohorts.pop(step)
        return [whole.sampled[place] for place in range(len(whole.plans))]

    @property
    def waiting(self) -> int:
        """The number of responses that are sampled while their groups are not complete."""
        cohorts = self._cohorts if self._next is None else self._next
        return sum(len(cohort.sampled) for cohort in cohorts.values())

    def updated(self) -> None:
        """Note that the step is done."""
        if self._next is not None:
            self._cohorts, self._next = self._next, None

    def state_dict(self) -> dict[str, Any]:
        """The state, with the plans: the draws that made them are not made again."""
        return {
            "spread": [
                {
                    "step": step,
                    "begun": cohort.begun,
                    "plans": [asdict(plan) for plan in cohort.plans],
                    "sampled": [[place, stored_trajectory(each)] for place, each in sorted(cohort.sampled.items())],
                }
                for step, cohort in self._cohorts.items()
            ]
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self._cohorts = {}
        for row in state.get("spread", []):
            plans = [_plan(plan) for plan in row["plans"]]
            there = {place: read(each, plans[place]) for place, each in row["sampled"]}
            self._cohorts[row["step"]] = Cohort(row["begun"], plans, there)


def _plan(stored: Mapping[str, Any]) -> PromptPlan:
    tokens = {name: tuple(stored[name]) for name in ("prompt_tokens", "sampled_prompt_tokens")}
    return PromptPlan(**{**stored, **tokens})


def age_metrics(step: int, trajectories: Sequence[Trajectory]) -> dict[str, float]:
    """Metrics of the steps between the oldest weights in a response and the weights that step `step` trains."""
    ages = [step - 1 - min(version for version, _, _ in t.versions) for t in trajectories if t.versions]
    return {"rollout/age": sum(ages) / len(ages), "rollout/age_max": float(max(ages))} if ages else {}
