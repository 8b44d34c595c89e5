"""Plans about how long responses are. Torch-free."""

from typing import Any

from .plan import Arm, Claim, ClaimPart, Plan, Setting, merge_config
from .policies import SMOLLM, SMOLLM_BY_HAND, TINY

_QUARTER = 6.5
"""The smallest number of tokens saved that matters. In the tiny task it is a quarter of the longest answer; without a budget the
pilot's answers became nearly as long as that. On SmolLM2 it is a quarter of the length of the pilot's answers after five steps.
"""


def _toggled(every: int, **budget: float) -> tuple[Arm, Arm]:
    phase = {"begins": "step", "step": 1, "lengths": "toggle", "every": every, **budget}
    title = f"a budget for {every} steps, none for {every}, and so on"
    return Arm("free", "no budget"), Arm("toggle", title, {"phases": [phase]})


def _saved(at: int) -> tuple[ClaimPart]:
    return (ClaimPart("tokens saved", f"eval/length:at_{at}", "toggle", "free", margin=_QUARTER, sign=-1),)


def _lost(at: int) -> tuple[ClaimPart]:
    return (ClaimPart("score lost", f"eval/rubric_score:at_{at}", "free", "toggle"),)


def _claims(budgeted: int, free: int) -> tuple[Claim, ...]:
    """The claims, read at the last step with a budget and at the last free step: what is measured then is what that phase has left."""
    return (
        Claim("after a stretch with a budget, held-out answers are shorter", _saved(budgeted)),
        Claim("after a free stretch, they are still shorter", _saved(free)),
        Claim(
            "after a stretch with a budget, the score is lower (this would speak against budgets)",
            _lost(budgeted),
        ),
        Claim("after a free stretch, the score is lower (this would speak against budgets)", _lost(free)),
    )


def _columns(budgeted: int, free: int) -> tuple[tuple[str, str], ...]:
    return (
        ("tokens after a budget", f"eval/length:at_{budgeted}"),
        ("tokens after a free stretch", f"eval/length:at_{free}"),
        ("tokens at the start", "eval/length:first"),
        ("score after a budget", f"eval/rubric_score:at_{budgeted}"),
        ("score after a free stretch", f"eval/rubric_score:at_{free}"),
    )


_EVERY, _STEPS, _LONGEST = 10, 80, 26

TOGGLE = Plan(
    "toggle",
    "Toggle: length budgets on and off, against none",
    "Kimi K2.5 (2026)",
    arms=_toggled(_EVERY, quantile=0.5),
    claims=_claims(_STEPS - _EVERY, _STEPS),
    sizes={
        "tiny": Setting(
            merge_config(
                TINY,
                {
                    "steps": _STEPS,
                    "rollout": {"max_new_tokens": _LONGEST},
                    "evaluation": {"every": _EVERY, "samples": 8},
                },
            ),
            (0, 1, 2, 3, 4),
            note="A random model of two layers that was taught to say 2 to 8 syllables by Zipf's law, on topics that ask for one or two of "
            "them (trainer/claims/toy.py). The reward of a response is 1 or 0.",
        )
    },
    task="wordy",
    measured="curves",
    columns=_columns(_STEPS - _EVERY, _STEPS),
    summary="Steps with a length budget alternate with steps that leave the length free.",
)

_DEMO_EVERY, _DEMO_STEPS = 5, 30
_DEMO: dict[str, Any] = {
    "steps": _DEMO_STEPS,
    "rollout": {"prompts_per_step": 8, "group_size": 4, "max_new_tokens": 48, "temperature": 0.8},
    "optim": {"lr": 5e-4, "micro_batch_tokens": 1024},
    "evaluation": {"every": _DEMO_EVERY, "samples": 2, "temperature": 0.8},
    "checkpoint": {"every": 10, "keep": 1},
    "scaffold": None,
}

# So small a model hardly ever meets a whole rubric, so a response is correct from 0.6 of the rubric's points.
TOGGLE_SMOLLM = Plan(
    "toggle_smollm",
    "Toggle on SmolLM2: length budgets on and off, against none",
    TOGGLE.paper,
    arms=_toggled(_DEMO_EVERY, quantile=0.5, correct=0.6, solved=0.3),
    claims=_claims(_DEMO_STEPS - _DEMO_EVERY, _DEMO_STEPS),
    sizes={
        "demo": Setting(
            _DEMO,
            (0, 1, 2),
            note=SMOLLM + " The reward is the share of the rubric's points, and a response is correct from 0.6.",
        )
    },
    measured="curves",
    columns=(
        *_columns(_DEMO_STEPS - _DEMO_EVERY, _DEMO_STEPS),
        ("score at the start", "eval/rubric_score:first"),
        ("training responses over their budget", "toggle/over:mean"),
    ),
    summary="The same with a language model of 135 million weights, whose answers are scored by rubrics.",
    by_hand=(SMOLLM_BY_HAND, "Data: import demo/prompts.jsonl; it says itself which prompts are held out"),
)
