"""Plans about how a rubric writer is trained. Torch-free."""

from typing import Any

from .plan import Arm, Claim, ClaimPart, Plan, Setting
from .policies import SMOLLM_BY_HAND

CHECKABLE = tuple(consonant + vowel for consonant in "bdfgkl" for vowel in "aei")
"""The words of the task `rubrics` that can be checked in an answer; its judge of rubrics knows them."""

_TINY: dict[str, Any] = {
    "steps": 60,
    "model": {"lora": None},
    "data": {"form": "openrubrics", "min_items": 4, "max_items": 4},
    "reward": {"by": "words", "quality_words": list(CHECKABLE), "matcher": "words"},
    "rollout": {"prompts_per_step": 8, "group_size": 16, "max_new_tokens": 16},
    "optim": {"lr": 3e-3},
    "evaluation": {"every": 30, "max_examples": 96, "samples": 2, "temperature": 1.0},
    "checkpoint": {"every": 60, "keep": 1},
}
_PAIRS: dict[str, Any] = {
    "steps": 10,
    "data": {"form": "openrubrics", "min_items": 3, "max_items": 6},
    "reward": {"by": "criterion", "judge": "SmolLM2-135M as it came"},
    "rollout": {"prompts_per_step": 4, "group_size": 6, "max_new_tokens": 96},
    "optim": {"lr": 2e-4},
    "evaluation": {"every": 0, "max_examples": 20},
    "checkpoint": {"every": 10, "keep": 1},
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
            "both rewards together separate the two answers more than either alone (Cohen's d, held out)",
            (
                ClaimPart(
                    "d at the end, over preference alone", "eval/cohens_d:last", "both", "preference", margin=0.1
                ),
                ClaimPart("d at the end, over quality alone", "eval/cohens_d:last", "both", "quality", margin=0.1),
            ),
        ),
        Claim(
            "a writer that learned from both beats its base on held-out pairs",
            (
                ClaimPart("preference accuracy, end less start", "eval/preference_accuracy:change", "both"),
                ClaimPart("d, end less start", "eval/cohens_d:change", "both", margin=0.1),
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
    summary="The ranking shows only whether a rubric is right about one pair. A judge of rubrics says how good the "
    "rubric is in general, and nothing about the pair. The sum rewards both.",
)

RUBRIC_PAIRS = Plan(
    "rubric_pairs",
    "A rubric writer on pairs like RubricBench's, before and after training",
    "RubricBench (2026) for the measures; MaMs (2026) for the reward",
    arms=(Arm("writer", "rewarded if a frozen judge ranks the answers by its rubric as the labels do"),),
    claims=(
        Claim(
            "a writer that learned beats its base on held-out pairs",
            (ClaimPart("preference accuracy, end less start", "eval/preference_accuracy:change", "writer"),),
        ),
        Claim(
            "the rubrics of a writer that learned are more like those that were written for the pairs (ours)",
            (
                ClaimPart("structural F1, end less start", "eval/rubric_f1:change", "writer"),
                ClaimPart("hallucination lost, start less end", "eval/rubric_hallucination:change", "writer", sign=-1),
            ),
        ),
    ),
    sizes={
        "demo": Setting(
            _PAIRS,
            (0, 1),
            note="SmolLM2-135M-Instruct with adapters, on 60 pairs that were written for this project (demo/rubric_pairs.jsonl), with their "
            "labels and rubrics: no people were asked. The model first learns from the rubrics of the 40 training pairs "
            "(trainer/claims/rubric_pairs.py). The judge is the same model without training, with one forward pass for each criterion. This "
            "shows that the machinery works on real text; two seeds decide almost nothing.",
            over_pairs=(
                ("rubrics that rank the pair as its label", "eval/preference_accuracy", "eval/pairs"),
                ("recall of the written rubrics", "eval/rubric_recall", "eval/human_rubrics"),
                ("hallucination", "eval/rubric_hallucination", "eval/human_rubrics"),
                ("structural F1", "eval/rubric_f1", "eval/human_rubrics"),
            ),
            judges={"reward.judge": {"kind": "criterion"}},
        )
    },
    recipe="rubric_writer",
    task="rubric_pairs",
    measured="curves",
    columns=(
        ("held-out rubrics in their form at the start", "eval/format_rate:first"),
        ("at the end", "eval/format_rate:last"),
        ("preference accuracy at the start", "eval/preference_accuracy:first"),
        ("at the end", "eval/preference_accuracy:last"),
        ("F1 at the start", "eval/rubric_f1:first"),
        ("at the end", "eval/rubric_f1:last"),
        ("items a rubric at the end", "eval/criteria:last"),
        ("training rubrics in their form, first fifth of steps", "writing/format_rate:early"),
        ("last fifth", "writing/format_rate:late"),
        ("that rank the pair as its label, first fifth", "writing/preference_accuracy:early"),
        ("last fifth", "writing/preference_accuracy:late"),
    ),
    summary="Judges are more often right with people's rubrics than with their own. A writer is rewarded if a frozen "
    "judge agrees with the label by its rubric. How far its rubrics agree with people's is measured and never"
    " rewarded.",
    by_hand=(
        SMOLLM_BY_HAND,
        "Data: demo/rubric_pairs.jsonl, imported in the layout RubricBench, or pairs of yours in this layout",
        "The model that the runs begin with: SmolLM2 after it was shown rubrics. Train it by recipe sft on the rubrics of the training pairs, "
        "in the form openrubrics; a model that was not shown them writes nothing that can be read",
        "Judge: one of kind criterion that SmolLM2 answers as it came; put its name and version in the place of SmolLM2-135M as it came below",
        "The command python -m trainer claims rubric_pairs --size demo does all of this by itself",
    ),
)
