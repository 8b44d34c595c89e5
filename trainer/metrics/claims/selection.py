"""A plan about which demonstrations are worth learning. Torch-free."""

from .plan import Arm, Claim, ClaimPart, Plan, Setting

_SCORE = "eval/rubric_score:last"

KCENTER = Plan(
    "kcenter",
    "A tenth of the data by perplexity-weighted K-center against a random tenth and against all data",
    "LongCat-Flash-Thinking-2601 (2026)",
    arms=(
        Arm("all", "all demonstrations"),
        Arm("random", "a random tenth", {"data": {"select": "random"}}),
        Arm("cover", "a tenth by K-center, weighted by perplexity", {"data": {"select": "cover"}}),
        Arm("distance", "a tenth by K-center, by distance alone", {"data": {"select": "distance"}}),
    ),
    claims=(
        Claim(
            "after equal steps, a tenth by K-center has a higher held-out score than a random tenth",
            (ClaimPart("score", _SCORE, "cover", "random"),),
        ),
        Claim(
            "after equal steps, a tenth by K-center has a higher held-out score than all of the data",
            (ClaimPart("score", _SCORE, "cover", "all"),),
        ),
        Claim(
            "with weights by perplexity, the tenth has a higher held-out score than without (ours: the paper has no such arm)",
            (ClaimPart("score", _SCORE, "cover", "distance"),),
        ),
    ),
    sizes={
        "tiny": Setting(
            {
                "steps": 120,
                "model": {"lora": None},
                "data": {"source": "references"},
                "batch_size": 16,
                "optim": {"lr": 1e-3},
                "evaluation": {"every": 20, "max_examples": 64, "generate": True, "max_new_tokens": 16},
                "checkpoint": {"every": 60, "keep": 1},
            },
            (0, 1, 2, 3, 4),
            note="A random model of two layers that was taught to say syllables by Zipf's law, and 1,000 demonstrations of eight topics, each "
            "half as frequent as the one before, one in twenty of them wrong (trainer/claims/pool.py). Each seed has a pool of its own. Held-out "
            "prompts ask for all topics alike. The reward of a response is 1 or 0.",
        )
    },
    recipe="sft",
    task="pool",
    measured="curves",
    columns=(
        ("score at the end", _SCORE),
        ("at step 60", "eval/rubric_score:at_60"),
    ),
    summary="Ten per cent of the demonstrations, hard ones first and far from each other.",
)
