"""Plans about how good policies become that learn from different judges. Torch-free."""

from typing import Any

from .judges import RATIONALE
from .plan import Arm, Claim, ClaimPart, Plan, Setting

_JUDGED = RATIONALE.shared
_SCORE = "eval/rubric_score"
_FAULT = "(?:cruel|false|rude|vague|dull|late|messy|plain|terse|quaint)"
TWO_FAULTS = f"(?:um )*{_FAULT}(?: um)* {_FAULT}(?: um)*"
"""The form of an answer. An answer of filler alone names no fault, so a judge would have nothing to judge."""
_TINY: dict[str, Any] = {
    "steps": _JUDGED["steps"],
    "model": {"lora": None},
    "scaffold": None,
    "rollout": {"prompts_per_step": 8, "group_size": 8, "max_new_tokens": 16},
    "optim": {"lr": 1e-3},
    "evaluation": {"every": 20, "max_examples": 40, "samples": 4, "temperature": 1.0},
    "checkpoint": {"every": 40, "keep": 1},
}


def _judge(arm: str, title: str) -> Arm:
    """An arm that trains a judge as in `rationale`, for as many steps as the policies."""
    config = {key: value for key, value in _JUDGED.items() if key != "steps"}
    return Arm(f"{arm}_judge", title, {**config, "reward": {**config["reward"], "arm": arm}}, recipe="judge")


def _policy(arm: str, title: str) -> Arm:
    """An arm that trains a policy by the judge of `arm`. The true score of its answers is measured, and not rewarded."""
    rewards = [
        {"kind": "judge", "judge": f"{arm} judge", "protocol": "pairwise", "against": "reference"},
        {"kind": "format", "form": "pattern", "pattern": TWO_FAULTS},
        {"kind": "rubric", "shadow": True},
    ]
    config = {"rewards": rewards, "reward_expression": "gate(format, judge)"}
    return Arm(f"{arm}_policy", title, config, uses={"rewards.0.judge": f"{arm}_judge"})


JUDGE_POLICY = Plan(
    "judge_policy",
    "Policies that learn from a judge with the right reasons against policies that learn from one with the right verdicts",
    "Rationale Consistency / MetaJudge (2025)",
    arms=(
        _judge("outcome", "the judge rewarded for the verdict alone"),
        _judge("hybrid", "the judge rewarded for the verdict times its reasons"),
        _policy("outcome", "the policy that the first judge rewards"),
        _policy("hybrid", "the policy that the second judge rewards"),
    ),
    claims=(
        Claim(
            "a policy trained with the hybrid judge is better than one trained with the outcome-only judge",
            (ClaimPart("true score at the end", f"{_SCORE}:last", "hybrid_policy", "outcome_policy"),),
        ),
        Claim(
            "what the hybrid judge rewards makes a policy better (ours)",
            (ClaimPart("true score, end less start", f"{_SCORE}:change", "hybrid_policy"),),
        ),
        Claim(
            "the outcome-only judge makes its policy's answers longer, which nobody wanted (ours)",
            (
                ClaimPart("tokens, end less start", "eval/length:change", "outcome_policy", margin=1.0),
                ClaimPart(
                    "tokens at the end, over the other policy",
                    "eval/length:last",
                    "outcome_policy",
                    "hybrid_policy",
                    1.0,
                ),
            ),
        ),
    ),
    sizes={
        "tiny": Setting(
            _TINY,
            (0, 1, 2, 3, 4),
            note="A random model of two layers that was taught two ways to judge answers with named faults, and to answer with any two faults. "
            "The two judges are trained as in `rationale`: length agrees with the label in 85% of their training pairs. A policy's reward is how "
            "often its answer, where it names two faults, wins against a reference, in both orders; its true score is the share of answers without "
            "a grave fault (trainer/claims/answers.py).",
        )
    },
    task="answers",
    measured="curves",
    columns=(
        ("true score at the start", f"{_SCORE}:first"),
        ("at the end", f"{_SCORE}:last"),
        ("reward at the start", "eval/reward:first"),
        ("at the end", "eval/reward:last"),
        ("tokens at the start", "eval/length:first"),
        ("at the end", "eval/length:last"),
        ("held-out accuracy of the judge", "eval/accuracy:last"),
        ("held-out consistency of the judge", "eval/rc:last"),
    ),
    summary="A judge is as good as the policy that learns from it. A judge that is right for the wrong reasons "
    "rewards a policy for these reasons. A judge that was rewarded for people's reasons does so less.",
)
