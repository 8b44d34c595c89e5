"""Plans about which prompts come next, and with which help. Torch-free."""

from typing import Any

from .plan import Arm, Claim, ClaimPart, Plan, Setting, merge_config
from .policies import TINY

_SEEDS = (0, 1, 2, 3, 4)
_HARD = "eval/domain/hard:last"
_COLUMNS = (
    ("score at the end", "eval/rubric_score:last"),
    *((f"{level} prompts", f"eval/domain/{level}:last") for level in ("easy", "middle", "hard")),
)
_NOTE = (
    "A random model of two layers that was taught to say syllables by Zipf's law, on topics of three difficulties. They are known "
    "by construction, and the data has them as pass rates (trainer/claims/toy.py). The reward of a response is 1 or 0."
)


def _setting(seeds: tuple[int, ...] = _SEEDS, **changes: Any) -> Setting:
    return Setting(
        merge_config(TINY, {"steps": 80, "evaluation": {"every": 5, "samples": 8}} | changes), seeds, note=_NOTE
    )


def _stages(name: str, title: str, hard_up_to: float, setting: Setting, claims: tuple[Claim, ...], **told: Any) -> Plan:
    """A plan of two stages, of which the second begins with step 41. A prompt is hard if its pass rate is at most `hard_up_to`."""
    moderate = {"begins": "step", "step": 1, "prompts": "some", "rate_above": hard_up_to}
    hard = {"begins": "step", "step": 41, "prompts": "some", "rate_above": 0.0, "rate_up_to": hard_up_to}
    return Plan(
        name,
        title,
        "GLM-4.5 (2025); LongCat-Flash-Thinking-2601 (2026)",
        arms=(
            Arm("one", "all prompts throughout"),
            Arm("two", "moderate prompts to step 40, then the hard ones", {"phases": [moderate, hard]}),
        ),
        claims=claims,
        sizes={"tiny": setting},
        measured="curves",
        **told,
    )


_REACH = (
    Claim(
        "a second stage of hard prompts brings more of them within reach than one stage does",
        (ClaimPart("score on hard prompts", _HARD, "two", "one"),),
    ),
    Claim(
        "with a second stage of hard prompts, the held-out score over all prompts is higher than with one stage",
        (ClaimPart("score over all prompts", "eval/rubric_score:last", "two", "one"),),
    ),
)
_TITLE = "Two stages of difficulty against one"

STAGES = _stages(
    "stages",
    _TITLE,
    0.02,
    _setting(),
    _REACH,
    task="graded",
    columns=_COLUMNS,
    summary="Moderate prompts first, then prompts that were hardly ever solved.",
)

_SINCE = "eval/rubric_score:since_40"
STAGES_NEAR = _stages(
    "stages_near",
    f"{_TITLE}, if hard prompts are within reach",
    0.04,
    _setting((5, 6, 7, 8, 9), steps=120, evaluation={"every": 10, "samples": 8}),
    (
        Claim(
            "with a second stage the held-out score keeps rising after the first",
            (ClaimPart("score over all prompts, end less step 40", _SINCE, "two"),),
        ),
        Claim(
            "with a second stage the held-out score rises more than with one stage in the same steps",
            (ClaimPart("rise of the score, over that with one stage", _SINCE, "two", "one"),),
        ),
        *_REACH,
    ),
    task="near",
    columns=(*_COLUMNS, ("score at step 40", "eval/rubric_score:at_40"), ("rise since then", _SINCE)),
    summary="The same with hard prompts that are solved a few times in a hundred: does a second stage keep the score rising?",
)
"""A plan made after `stages`, in whose runs no arm passed a hard prompt. Its seeds are others."""


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
            (ClaimPart("score on hard prompts", _HARD, "ahrl", "none"),),
        ),
        Claim(
            "on prompts of middle difficulty, hints that fade lead to a higher score than hints that last (ours)",
            (ClaimPart("score on prompts of middle difficulty", "eval/domain/middle:last", "ahrl", "lasting"),),
        ),
    ),
    sizes={"tiny": _setting()},
    task="graded",
    measured="curves",
    columns=(*_COLUMNS, ("hint shown, last fifth of steps", "hint/share:late")),
    summary="While sampling, the prompt shows the beginning of the reference, with every step a shorter one.",
)
