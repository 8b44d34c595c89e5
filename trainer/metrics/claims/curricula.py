"""Plans about which prompts come next, and with which help. Torch-free."""

from typing import Any

from .plan import Arm, Claim, Part, Plan, Setting, merged
from .policies import TINY

_SEEDS = (0, 1, 2, 3, 4)
_HARD = "eval/domain/hard:last"
_COLUMNS = (
    ("score at the end", "eval/rubric_score:last"),
    *((f"{level} prompts", f"eval/domain/{level}:last") for level in ("easy", "middle", "hard")),
)
_NOTE = (
    "A random model of two layers that was taught to say syllables by Zipf's law, on topics of three difficulties that are known "
    "by construction and stand in the data as pass rates (trainer/claims/toy.py). A response is worth 1 or 0."
)


def _setting(**changes: Any) -> Setting:
    return Setting(merged(TINY, {"steps": 80, "evaluation": {"every": 5, "samples": 8}} | changes), _SEEDS, note=_NOTE)


STAGES = Plan(
    "stages",
    "Two stages of difficulty against one",
    "GLM-4.5 (2025); LongCat-Flash-Thinking-2601 (2026)",
    arms=(
        Arm("one", "all prompts throughout"),
        Arm(
            "two",
            "moderate prompts to step 40, then the hard ones",
            {
                "phases": [
                    {"begins": "step", "step": 1, "prompts": "some", "rate_above": 0.02},
                    {"begins": "step", "step": 41, "prompts": "some", "rate_above": 0.0, "rate_up_to": 0.02},
                ]
            },
        ),
    ),
    claims=(
        Claim(
            "a second stage of hard prompts brings more of them within reach than one stage does",
            (Part("score on hard prompts", _HARD, "two", "one"),),
        ),
        Claim(
            "and the held-out score over all prompts is higher",
            (Part("score over all prompts", "eval/rubric_score:last", "two", "one"),),
        ),
    ),
    sizes={"tiny": _setting()},
    task="graded",
    measured="curves",
    columns=_COLUMNS,
    summary="Moderate prompts first, then those that were hardly ever solved.",
)


def _hint(gamma: float) -> dict[str, Any]:
    return {"hint": {"p0": 0.5, "gamma": gamma}}


HINTS = Plan(
    "hints",
    "Hints that fade against none, on prompts that the model hardly ever solves",
    "ERNIE 5.0 (2026): AHRL",
    arms=(
        Arm("none", "no hint"),
        Arm("ahrl", "half of the answer as a hint, fading with the steps and the pass rate", _hint(0.5)),
        Arm("lasting", "half of the answer as a hint throughout", _hint(0.0)),
    ),
    claims=(
        Claim(
            "hints that fade bring more hard prompts within reach than no hint",
            (Part("score on hard prompts", _HARD, "ahrl", "none"),),
        ),
        Claim(
            "and they serve prompts of middle difficulty better than hints that last (ours)",
            (Part("score on prompts of middle difficulty", "eval/domain/middle:last", "ahrl", "lasting"),),
        ),
    ),
    sizes={"tiny": _setting()},
    task="graded",
    measured="curves",
    columns=(*_COLUMNS, ("hint shown, last fifth of steps", "hint/share:late")),
    summary="The beginning of the reference stands in the prompt while sampling, less of it with every step.",
)
