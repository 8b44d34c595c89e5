"""Plans about a judge and a rubric writer that learn in turns. Torch-free."""

from typing import Any

from .plan import Arm, Claim, ClaimPart, Plan, Setting

_TINY: dict[str, Any] = {
    "steps": 72,
    "turn_steps": 12,
    "model": {"lora": None},
    "data": {"form": "rubric_arm", "judgement": "rubric_arm", "min_items": 1, "max_items": 1},
    "judge": {"prompts_per_step": 16, "group_size": 6, "max_new_tokens": 16, "optim": {"lr": 5e-4}},
    "writer": {"prompts_per_step": 16, "group_size": 8, "max_new_tokens": 8, "optim": {"lr": 7e-4}},
    "variances": {"pairs": 8, "rubrics": 6, "judgements": 6},
    "matcher": "words",
    "evaluation": {"every": 12, "max_examples": 64},
    "checkpoint": {"every": 72, "keep": 1},
}

RUBRIC_ARM = Plan(
    "rubric_arm",
    "A judge and a rubric writer in turns: the judge first, the writer first, and without a reward for the form",
    "Rubric-ARM (2026)",
    arms=(
        Arm("judge_first", "the judge's turn begins a round"),
        Arm("writer_first", "the writer's turn begins a round", {"first": "writer"}),
        Arm("no_format", "the judge first, without a reward for the form", {"judge": {"format_reward": False}}),
    ),
    claims=(
        Claim(
            "if the judge has the first turn, the result is better than if the writer has it",
            (
                ClaimPart(
                    "held-out accuracy by written rubrics at the end",
                    "eval/accuracy:last",
                    "judge_first",
                    "writer_first",
                ),
            ),
        ),
        Claim(
            "each order is better than training without a reward for the form",
            (
                ClaimPart(
                    "held-out accuracy, the writer first, over no such reward",
                    "eval/accuracy:last",
                    "writer_first",
                    "no_format",
                ),
                ClaimPart(
                    "held-out accuracy, the judge first, over no such reward",
                    "eval/accuracy:last",
                    "judge_first",
                    "no_format",
                ),
            ),
        ),
        Claim(
            "before the first turn, the writer's step is noisier than the judge's, as (17) to (19) say",
            (
                ClaimPart(
                    "its variance over the judge's, as a power of ten", "variance/log_ratio:first", "judge_first"
                ),
                ClaimPart("|u_r|/|u_j| above the bound of (19)", "variance/norm_margin:first", "judge_first"),
            ),
        ),
    ),
    sizes={
        "tiny": Setting(
            _TINY,
            (0, 1, 2, 3, 4),
            note="A random model of two layers that was taught the forms of rubrics and judgements, on topics that want two words of six. "
            "Its most likely judgement at first has nothing to do with the rubric (trainer/claims/turns.py).",
        )
    },
    recipe="alternating",
    task="turns",
    measured="curves",
    columns=(
        ("held-out accuracy at the start", "eval/accuracy:first"),
        ("at the end", "eval/accuracy:last"),
        ("orders that agree", "eval/consistent:last"),
        ("judgements in their form, first fifth of the judge's steps", "judging/format_rate:early"),
        ("last fifth", "judging/format_rate:late"),
        ("writer's variance over the judge's before round one, power of ten", "variance/log_ratio:first"),
        ("before the last round", "variance/log_ratio:last"),
    ),
    summary="A writer learns from its judge's use of a rubric, so a judge that cannot use rubrics teaches it nothing."
    " By the paper's variances, the judge should learn first, with a reward for the form in which it uses "
    "rubrics.",
)
