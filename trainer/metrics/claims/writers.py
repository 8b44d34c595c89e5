"""Plans about how a rubric writer is trained. Torch-free."""

from typing import Any

from .plan import Arm, Claim, Part, Plan, Setting

_TINY: dict[str, Any] = {
    "steps": 60,
    "model": {"lora": None},
    "data": {"form": "openrubrics", "min_items": 4, "max_items": 4},
    "reward": {"by": "words", "quality_judge": "Words that can be checked", "matcher": "words"},
    "rollout": {"prompts_per_step": 8, "group_size": 16, "max_new_tokens": 16},
    "optim": {"lr": 3e-3},
    "evaluation": {"every": 30, "max_examples": 96, "samples": 2, "temperature": 1.0},
    "checkpoint": {"every": 60, "keep": 1},
}

MAMS = Plan(
    "mams",
    "Rubric writers rewarded for ranking as people do, for their rubrics' quality, and for both",
    "MaMs (2026)",
    arms=(
        Arm("preference", "rewarded for ranking as people do", {"reward": {"quality_weight": 0.0}}),
        Arm("quality", "rewarded for the rubric's quality", {"reward": {"preference_weight": 0.0}}),
        Arm("both", "rewarded for both", {"reward": {"preference_weight": 1.0, "quality_weight": 1.0}}),
    ),
    claims=(
        Claim(
            "both rewards hold the two answers further apart than either alone (Cohen's d, held out)",
            (
                Part("d at the end, over preference alone", "eval/cohens_d:last", "both", "preference", margin=0.1),
                Part("d at the end, over quality alone", "eval/cohens_d:last", "both", "quality", margin=0.1),
            ),
        ),
        Claim(
            "a writer that learned from both beats its base on held-out pairs",
            (
                Part("preference accuracy, end less start", "eval/preference_accuracy:change", "both"),
                Part("d, end less start", "eval/cohens_d:change", "both", margin=0.1),
            ),
        ),
    ),
    sizes={
        "tiny": Setting(
            _TINY,
            (0, 1, 2, 3, 4),
            note="A random model of two layers that was taught the form of a rubric, on topics that want four words each. A judge of "
            "rubrics knows which words can be checked, and not which a topic wants (trainer/claims/rubrics.py).",
        )
    },
    recipe="rubric_writer",
    task="rubrics",
    measured="curves",
    columns=(
        ("held-out d at the start", "eval/cohens_d:first"),
        ("at the end", "eval/cohens_d:last"),
        ("preference accuracy at the start", "eval/preference_accuracy:first"),
        ("at the end", "eval/preference_accuracy:last"),
        ("quality at the start", "eval/quality:first"),
        ("at the end", "eval/quality:last"),
        ("unreadable", "eval/unreadable:last"),
    ),
    summary="Ranking as people do says of a rubric only whether it is right about one pair. A judge of rubrics says how good it is as "
    "such, and nothing of the pair. The sum of the two pays for both.",
)
