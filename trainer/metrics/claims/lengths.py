"""A plan about how long responses are. Torch-free."""

from .plan import Arm, Claim, Part, Plan, Setting, merged
from .policies import TINY

_EVERY = 10
_STEPS = 80
_BUDGETED, _FREE = _STEPS - _EVERY, _STEPS
"""The last steps of the last stretch with a budget and of the last free one: what is measured then is what that phase has left."""
_LONGEST = 26
_QUARTER = 6.5
"""Tokens, of the most that an answer may have: without a budget the pilot's answers came to have nearly as many."""

TOGGLE = Plan(
    "toggle",
    "Toggle: length budgets on and off, against none",
    "Kimi K2.5 (2026)",
    arms=(
        Arm("free", "no budget"),
        Arm(
            "toggle",
            f"a budget for {_EVERY} steps, none for {_EVERY}, and so on",
            {"phases": [{"begins": "step", "step": 1, "lengths": "toggle", "every": _EVERY, "quantile": 0.5}]},
        ),
    ),
    claims=(
        Claim(
            "after a stretch with a budget, held-out answers are shorter",
            (Part("tokens saved", f"eval/length:at_{_BUDGETED}", "toggle", "free", margin=_QUARTER, sign=-1),),
        ),
        Claim(
            "and they still are after a free stretch",
            (Part("tokens saved", f"eval/length:at_{_FREE}", "toggle", "free", margin=_QUARTER, sign=-1),),
        ),
        Claim(
            "this costs score after a stretch with a budget (what would speak against it)",
            (Part("score lost", f"eval/rubric_score:at_{_BUDGETED}", "free", "toggle"),),
        ),
        Claim(
            "this costs score after a free stretch (what would speak against it)",
            (Part("score lost", f"eval/rubric_score:at_{_FREE}", "free", "toggle"),),
        ),
    ),
    sizes={
        "tiny": Setting(
            merged(
                TINY,
                {
                    "steps": _STEPS,
                    "rollout": {"max_new_tokens": _LONGEST},
                    "evaluation": {"every": _EVERY, "samples": 8},
                },
            ),
            (0, 1, 2, 3, 4),
            note="A random model of two layers that was taught to say 2 to 8 syllables by Zipf's law, on topics that ask for one or two of "
            "them (trainer/claims/toy.py). A response is worth 1 or 0.",
        )
    },
    task="wordy",
    measured="curves",
    columns=(
        ("tokens after a budget", f"eval/length:at_{_BUDGETED}"),
        ("tokens after a free stretch", f"eval/length:at_{_FREE}"),
        ("tokens at the start", "eval/length:first"),
        ("score after a budget", f"eval/rubric_score:at_{_BUDGETED}"),
        ("score after a free stretch", f"eval/rubric_score:at_{_FREE}"),
    ),
    summary="Short answers are asked for in turns with answers of any length.",
)
