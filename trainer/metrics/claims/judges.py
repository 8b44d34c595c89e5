"""Plans about how a judge is trained. Torch-free."""

from typing import Any

from .plan import Arm, Claim, ClaimPart, Plan, Setting

_TINY: dict[str, Any] = {
    "steps": 40,
    "model": {"lora": None},
    "data": {"form": "lines", "max_prompt_tokens": 128},
    "reward": {"matcher": "words"},
    "rollout": {"prompts_per_step": 8, "group_size": 8, "max_new_tokens": 8},
    "optim": {"lr": 1e-3},
    "evaluation": {"every": 20, "max_examples": 40, "samples": 2, "temperature": 1.0},
    "checkpoint": {"every": 40, "keep": 1},
}
_DEMO: dict[str, Any] = {
    "steps": 12,
    "data": {"form": "lines", "max_prompt_tokens": 256},
    "rollout": {"prompts_per_step": 4, "group_size": 8, "max_new_tokens": 64, "temperature": 0.8},
    "optim": {"lr": 2e-4},
    "evaluation": {"every": 0, "max_examples": 48},
    "checkpoint": {"every": 12, "keep": 1},
}

RATIONALE = Plan(
    "rationale",
    "Judges rewarded for verdicts against judges rewarded for verdicts with the right reasons",
    "Rationale Consistency / MetaJudge (2025)",
    arms=(
        Arm("outcome", "rewarded for the verdict alone", {"reward": {"arm": "outcome"}}),
        Arm("hybrid", "rewarded for the verdict times its reasons", {"reward": {"arm": "hybrid"}}),
    ),
    claims=(
        Claim(
            "outcome-only training raises accuracy and lowers rationale consistency",
            (
                ClaimPart(
                    "accuracy on training pairs at their first use, last fifth less first fifth",
                    "judging/accuracy:rise",
                    "outcome",
                ),
                ClaimPart("held-out consistency lost, start less end", "eval/rc:change", "outcome", sign=-1),
            ),
        ),
        Claim(
            "hybrid training raises both",
            (
                ClaimPart("held-out accuracy, end less start", "eval/accuracy:change", "hybrid"),
                ClaimPart("held-out consistency, end less start", "eval/rc:change", "hybrid"),
            ),
        ),
        Claim(
            "outcome-only training raises held-out accuracy too, although the shortcut does not help there",
            (ClaimPart("held-out accuracy, end less start", "eval/accuracy:change", "outcome"),),
        ),
        Claim(
            "on held-out pairs, the hybrid judge is more accurate than the outcome-only judge (ours)",
            (ClaimPart("held-out accuracy at the end", "eval/accuracy:last", "hybrid", "outcome"),),
        ),
    ),
    sizes={
        "tiny": Setting(
            _TINY,
            (0, 1, 2, 3, 4),
            note="A random model of two layers that was taught two ways to judge, on answers with named faults. Length agrees with "
            "the label in 85% of the training pairs and in none of the held-out ones (trainer/claims/faults.py).",
        ),
        "demo": Setting(
            _DEMO,
            (0,),
            note="SmolLM2-135M-Instruct with adapters, on given pairs with reasons of people. The model first learns from 160 judgements of "
            "people (trainer/claims/reasoned.py). No shortcut is planted. This shows that the machinery works on real text; one seed "
            "has no interval, so nothing is decided.",
            over_pairs=(
                ("verdicts that are right", "eval/accuracy", "eval/pairs"),
                ("consistency of reasons", "eval/rc", "eval/reasoned_pairs"),
                ("average precision of reasons", "eval/ap", "eval/reasoned_pairs"),
            ),
            columns=(
                ("unreadable at the start", "eval/unreadable:first"),
                ("judgements in training, unreadable, first fifth", "judging/unreadable:early"),
                ("last fifth", "judging/unreadable:late"),
                ("generic reasons at the end", "eval/generic:last"),
                ("for the answer shown first, at the end", "eval/first:last"),
            ),
        ),
    },
    recipe="judge",
    task="faults",
    measured="curves",
    columns=(
        ("training accuracy, first fifth of steps", "judging/accuracy:early"),
        ("last fifth", "judging/accuracy:late"),
        ("held-out accuracy at the start", "eval/accuracy:first"),
        ("at the end", "eval/accuracy:last"),
        ("held-out consistency at the start", "eval/rc:first"),
        ("at the end", "eval/rc:last"),
        ("orders that agree", "eval/consistent:last"),
        ("unreadable", "eval/unreadable:last"),
    ),
    summary="A judge that is rewarded for its verdict alone learns any sign of the label, also a wrong reason. The "
    "product of verdict and reasons rewards it only if it is right for the right reasons.",
)
