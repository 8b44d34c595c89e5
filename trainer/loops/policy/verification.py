"""A phase in which the policy also judges its own responses: more groups of the step, rewarded by the known quality."""

from collections.abc import Sequence
from dataclasses import replace
from statistics import fmean

from trainer.config.sections.phase_kinds import RewardedPhase
from trainer.contracts import Message
from trainer.curriculum.verification import Candidate, hardest, question, read_score, worth
from trainer.inference.chat import encode_prompt
from trainer.rollouts import PromptPlan, Reward, Trajectory, sample_plans
from trainer.seeding import derive_seed

from ..session.stage import Tell
from .collecting import Collected
from .parts import Parts

ROLE = "verifier"
"""The role of plans that ask about a response."""


class Verification:
    """Adds judgements to the responses of a step while its phase asks for them. Seed and step decide every random choice."""

    def __init__(self, parts: Parts) -> None:
        self._parts = parts

    def added(self, step: int, collected: Collected, tell: Tell) -> Collected:
        """The responses with judgements after them. Raises StopRequested."""
        phase = self._parts.schedule.verifying
        if phase is None:
            return collected
        known = {
            (t.plan.group, t.plan.index): (t, score)
            for t in collected.trajectories
            if (score := _known(t.reward)) is not None
        }
        candidates = [Candidate(*place, score) for place, (_, score) in known.items()]
        chosen = hardest(candidates, phase.judged, self._parts.config.seed, step)
        judged = self._judged(step, phase, [known[each.group, each.place] for each in chosen], collected, tell)
        trajectories = collected.trajectories + judged
        rows = collected.rows
        if rows is not None:
            rows = [*rows, *range(len(collected.trajectories), len(trajectories))]
        return replace(collected, trajectories=trajectories, rows=rows)

    def _judged(
        self,
        step: int,
        phase: RewardedPhase,
        chosen: Sequence[tuple[Trajectory, float]],
        collected: Collected,
        tell: Tell,
    ) -> list[Trajectory]:
        first = 1 + max((t.plan.group for t in collected.trajectories), default=-1)
        plans = [
            plan
            for place, (trajectory, _) in enumerate(chosen)
            for plan in self._plans(step, first + place, trajectory, phase.judgements)
        ]
        results = sample_plans(
            self._parts.sampler, plans, self._parts.rollout, tell.watch("judging its own responses", "rollout")
        )
        said = [read_score(result.text) for result in results]
        scores = [score for _, score in chosen for _ in range(phase.judgements)]
        values = [worth(each, score, phase.tied) for each, score in zip(said, scores, strict=True)]
        tell.metrics(_metrics(said, scores, values))
        return [
            Trajectory.of(plan, result, _reward(value, each, score))
            for plan, result, value, each, score in zip(plans, results, values, said, scores, strict=True)
        ]

    def _plans(self, step: int, group: int, about: Trajectory, count: int) -> list[PromptPlan]:
        text = question(about.plan.prompt_text, about.text)
        tokens = encode_prompt(self._parts.tokenizer, (Message(role="user", content=text),))
        return [
            PromptPlan(
                about.plan.example_key,
                group,
                index,
                text,
                tokens,
                tokens,
                derive_seed(self._parts.config.seed, "verify", step, group, index),
                role=ROLE,
            )
            for index in range(count)
        ]


def _known(reward: Reward) -> float | None:
    """The quality of a response, from 0 to 1: by its rubric if there is one, else by its reward. None without a reward."""
    value = reward.total if reward.clipped is None else reward.clipped
    return None if reward.total is None or value is None else min(1.0, max(0.0, value))


def _reward(value: float, said: float | None, known: float) -> Reward:
    components = {"known_score": known} if said is None else {"known_score": known, "said_score": said}
    return Reward(value, components)


def _metrics(said: Sequence[float | None], known: Sequence[float], values: Sequence[float]) -> dict[str, float]:
    """Metrics of the judgements; undefined values are left out."""
    if not said:
        return {}
    off = [abs(each - score) for each, score in zip(said, known, strict=True) if each is not None]
    found = {
        "verify/reward": fmean(values),
        "verify/judged_score": fmean(known),
        "verify/unread": sum(each is None for each in said) / len(said),
    }
    return found | ({"verify/error": fmean(off)} if off else {})
