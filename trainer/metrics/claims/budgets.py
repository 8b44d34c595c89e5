"""A plan about which prompts get how many responses. Torch-free."""

from .plan import Arm, Claim, ClaimPart, Plan, Setting, merge_config
from .policies import TINY

_RESPONSES = 80 * 8 * 8
"""The number of responses that an arm without replacement samples in all. An arm with replacement samples more a step, so every arm is read
at this number of responses.
"""
_BY = f"by_{_RESPONSES}"
_LEVELS = ("easy", "middle", "hard")


def _score(level: str) -> str:
    return f"eval/domain/{level}:{_BY}"


BUDGETS = Plan(
    "budgets",
    "Dynamic budgets and dynamic sampling against equal groups, at equal rollouts",
    "LongCat-Flash-Thinking-2601 (2026); DAPO (Yu et al., 2025)",
    arms=(
        Arm("uniform", "8 responses to every prompt"),
        Arm("heap", "dynamic budget, 2 to 24 responses to a prompt", {"rollout": {"budget": {"low": 2, "high": 24}}}),
        Arm("dynamic", "dynamic sampling, two rounds of replacement", {"rollout": {"replace_flat": 2}}),
    ),
    claims=(
        Claim(
            "at equal rollouts, a dynamic budget has a higher held-out score than equal groups",
            (ClaimPart("score over all prompts", f"eval/rubric_score:{_BY}", "heap", "uniform"),),
        ),
        Claim(
            "a dynamic budget raises the score on prompts that are neither solved nor out of reach at the start",
            (ClaimPart("score on prompts of middle difficulty", _score("middle"), "heap", "uniform"),),
        ),
        Claim(
            "at equal rollouts, dynamic sampling has a higher held-out score than equal groups",
            (ClaimPart("score over all prompts", f"eval/rubric_score:{_BY}", "dynamic", "uniform"),),
        ),
        Claim(
            "the dynamic budget brings more prompts within reach than dynamic sampling (ours)",
            (ClaimPart("score on hard prompts", _score("hard"), "heap", "dynamic"),),
        ),
    ),
    sizes={
        "tiny": Setting(
            merge_config(TINY, {"steps": 80, "evaluation": {"every": 5, "samples": 8}}),
            (0, 1, 2, 3, 4),
            note="A random model of two layers that was taught to say syllables by Zipf's law, on topics of three difficulties that are known "
            "by construction (trainer/claims/toy.py). The reward of a response is 1 or 0.",
        )
    },
    task="graded",
    measured="curves",
    columns=(
        ("score at equal rollouts", f"eval/rubric_score:{_BY}"),
        *((f"{level} prompts", _score(level)) for level in _LEVELS),
        ("score at the end", "eval/rubric_score:last"),
        ("flat groups, last fifth of steps", "rollout/flat_groups:late"),
    ),
    summary="Which prompts get how many responses of a step.",
)
