"""A plan about which responses a schedule trains on. Torch-free."""

from typing import Any

from .plan import Arm, Claim, ClaimPart, Plan, Setting, merge_config
from .policies import TINY

_SEGMENT = 8
_SHARE = "rollout/domain/long:{}"
_LONG = "eval/domain/long:last"


def _async(policy: str, **runner: Any) -> dict[str, Any]:
    return {"runner": {"kind": "async", "policy": policy, "workers": 1, **runner}}


def _april(max_staleness: int) -> dict[str, Any]:
    """The APRIL schedule with twice as many prompts as are trained on: responses that are not finished by then are put off and continue
    later."""
    return _async("april", oversample=2.0, segment_tokens=_SEGMENT, max_staleness=max_staleness)


_ARMS = (
    Arm("urb", "U-RB, two batches at once", _async("urb", ahead=2)),
    Arm("april", "APRIL; nothing is too old", _april(1000)),
    Arm("april_fresh", "APRIL; what is more than two steps old is dropped (stale_keep)", _april(2)),
)
_SHARES = (
    Claim(
        "APRIL that drops what is too old trains on fewer long responses than U-RB, which has as many as the data",
        (ClaimPart("share of long responses missing", _SHARE.format("mean"), "urb", "april_fresh"),),
    ),
    Claim(
        "APRIL that drops nothing trains on fewer long responses than U-RB, too",
        (ClaimPart("share of long responses missing", _SHARE.format("mean"), "urb", "april"),),
    ),
    Claim(
        "APRIL that drops nothing trains on fewer long responses than U-RB in the first steps (ours)",
        (ClaimPart("share missing in the first fifth", _SHARE.format("early"), "urb", "april"),),
    ),
)
_LEARNING: dict[str, Any] = merge_config(
    TINY,
    {
        "steps": 36,
        "rollout": {"prompts_per_step": 8, "group_size": 4, "max_new_tokens": 64},
        "objective": {"name": "double_sided"},
        "evaluation": {"every": 12, "samples": 4},
        "checkpoint": {"every": 18, "keep": 1},
    },
)
_NOTE = (
    "A random model of two layers that was taught to say 2 syllables on six topics and 16 on two, by Zipf's law "
    "(trainer/claims/toy.py): a quarter of the prompts ask for long responses, and the policy cannot change that. The runs are "
    "really asynchronous: one worker samples and one scores, as processes of Ray beside the learner. The reward of a response is 1 or 0, "
    "and one less if it has the length of the other kind"
)
_COLUMNS = (
    ("long, all steps", _SHARE.format("mean")),
    ("long, first fifth", _SHARE.format("early")),
    ("long, last fifth", _SHARE.format("late")),
    ("tokens a response trained on", "rollout/length:mean"),
    ("groups dropped a step", "async/dropped_groups:mean"),
    ("oldest, steps, last fifth", "async/staleness_max:late"),
)

TAILS = Plan(
    "tails",
    "U-RB against APRIL if a quarter of the responses are long",
    "ERNIE 5.0 (2026); APRIL (2025)",
    arms=_ARMS,
    claims=(
        *_SHARES,
        Claim(
            "if APRIL drops what is too old, the score on held-out prompts with long answers is lower (ours)",
            (ClaimPart("score on long prompts lost", _LONG, "urb", "april_fresh"),),
        ),
        Claim(
            "if APRIL drops nothing and responses are only late, that score is lower too (ours)",
            (ClaimPart("score on long prompts lost", _LONG, "urb", "april"),),
        ),
    ),
    sizes={"tiny": Setting(_LEARNING, (0, 1, 2, 3, 4), note=f"{_NOTE}, so that lengths do not change.")},
    task="tailed",
    measured="curves",
    columns=(
        *_COLUMNS,
        ("score on long prompts", _LONG),
        ("score on short prompts", "eval/domain/short:last"),
    ),
    summary="The share of the long responses that are trained on if the schedule takes the first to finish.",
)

TAILS_STILL = Plan(
    "tails_still",
    "U-RB against APRIL if a quarter of the responses are long, and lengths stay as they are",
    TAILS.paper,
    arms=_ARMS,
    claims=_SHARES,
    sizes={
        "tiny": Setting(
            merge_config(_LEARNING, {"optim": {"lr": 1e-9}, "evaluation": {"every": 0}}),
            (5, 6, 7, 8, 9),
            note=f"{_NOTE}. The learning rate is so small that the policy hardly changes, and so the lengths of its responses stay the same.",
        )
    },
    task="tailed",
    measured="curves",
    columns=_COLUMNS,
    summary="The same with a policy that does not learn, so that only the choice of responses differs.",
)
"""A plan made after `tails`, in whose runs training changed the lengths. Its seeds are others."""
