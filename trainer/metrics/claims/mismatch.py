"""Plans about objectives for a sampler that differs from the trainer: old weights, well-learned responses, fewer bits. Torch-free."""

from typing import Any

from .plan import Arm, Claim, ClaimPart, Plan, Setting, merge_config
from .policies import COLUMNS, TINY

_SEEDS = (0, 1, 2, 3, 4)
_LAG = 4
_LAGGING = {
    "steps": 80,
    "runner": {"push_every": _LAG},
    "optim": {"minibatch_size": 32},
    "evaluation": {"every": 5, "samples": 8},
}
"""Two updates a step and a sampler up to three steps behind: otherwise every ratio is 1, and nothing is clipped or weighted."""
_ENTROPY = "policy/entropy:late"
_SCORE = "eval/rubric_score:last"


def _bounded(name: str, **more: Any) -> dict[str, Any]:
    """An objective by sequence, with the same bounds for both objectives."""
    return {"name": name, "eps_low": 0.02, "eps_high": 0.03, "pop_high": 2.0, **more}


_ICEPOP = _bounded("icepop", level="sequence", pop_mode="weight")
_MISC = _bounded("misc", pop_mode="weight")

WPSM = Plan(
    "wpsm",
    "MISC and WPSM against IcePop by whole responses",
    "ERNIE 5.0 (2026)",
    arms=(
        Arm("icepop", "IcePop by whole responses", {"objective": _ICEPOP}),
        Arm("misc", "MISC", {"objective": _MISC}),
        Arm("misc_wpsm", "MISC and WPSM", {"objective": _MISC, "well_learned": {"tau": 0.5, "eta": 1.0, "alpha": 0.9}}),
    ),
    claims=(
        Claim(
            "MISC and WPSM together keep more entropy than IcePop by whole responses",
            (ClaimPart("entropy, last fifth of steps, nats", _ENTROPY, "misc_wpsm", "icepop", margin=0.05),),
        ),
        Claim(
            "MISC and WPSM together have a higher held-out score than IcePop by whole responses",
            (ClaimPart("score over all prompts", _SCORE, "misc_wpsm", "icepop"),),
        ),
        Claim(
            "WPSM keeps more entropy than MISC alone (ours)",
            (ClaimPart("entropy, last fifth of steps, nats", _ENTROPY, "misc_wpsm", "misc", margin=0.05),),
        ),
    ),
    sizes={
        "tiny": Setting(
            merge_config(TINY, _LAGGING),
            _SEEDS,
            note="A random model of two layers that was taught to say syllables by Zipf's law, on topics of three difficulties "
            "(trainer/claims/toy.py). The reward of a response is 1 or 0. The sampler lags by up to three steps, and a step has two updates.",
        )
    },
    task="graded",
    measured="curves",
    columns=(
        ("entropy, last fifth", _ENTROPY),
        ("score at the end", _SCORE),
        *((f"{level} prompts", f"eval/domain/{level}:last") for level in ("easy", "middle", "hard")),
        ("clipped, last fifth", "policy/clip_share:late"),
        ("silenced, mean of last fifth", "policy/pop_share:late"),
        ("well learned, last fifth", "policy/well_learned:late"),
    ),
    summary="Responses that the policy has learned well count less, and responses are weighted by how far the sampler"
    " is from the trainer.",
)


def _lagging(name: str, push_every: int) -> dict[str, Any]:
    """The settings that an arm changes: both objectives have the same advantages, bounds and mean over tokens."""
    objective = {"name": name, "advantage": "centred", "aggregation": "token", "eps_low": 0.2, "eps_high": 0.28}
    return {"objective": objective, "runner": {"push_every": push_every}}


STALE = Plan(
    "stale",
    "Double-sided importance sampling against none, with weights pushed every 10 steps",
    "GLM-5 (2026)",
    arms=(
        Arm("fresh", "GRPO, weights pushed every step", _lagging("grpo", 1)),
        Arm("grpo", "GRPO, uncorrected", _lagging("grpo", 10)),
        Arm("double_sided", "double-sided importance sampling", _lagging("double_sided", 10)),
    ),
    claims=(
        Claim(
            "with weights up to 9 steps old, double-sided importance sampling has a higher held-out score than none",
            (ClaimPart("score", "score", "double_sided", "grpo"),),
        ),
        Claim(
            "double-sided importance sampling is also more stable than none",
            (
                ClaimPart(
                    "less lost from the best held-out score on the way", "drawdown", "double_sided", "grpo", sign=-1
                ),
            ),
        ),
        Claim(
            "without a correction, GRPO has a lower score with old weights (ours: otherwise there is nothing to correct)",
            (ClaimPart("score lost", "score", "fresh", "grpo"),),
        ),
    ),
    sizes={
        "tiny": Setting(
            merge_config(TINY, {"steps": 100, "evaluation": {"every": 10, "samples": 4}}),
            _SEEDS,
            wanted=2,
            note="A random model of two layers that was taught to say syllables by Zipf's law, on a language of syllables "
            "(trainer/claims/toy.py).",
        )
    },
    columns=COLUMNS,
    summary="The sampler is up to 9 steps behind, and the loss leaves out tokens on which trainer and sampler are too"
    " far apart.",
)


_KL = "policy/mismatch_kl_{}:late"
_FAR = "policy/mismatch_far_{}:late"
_NEVER = 1e9
_BOUND, _BOUND_WHOLE = 2.0, 1.06
"""The bound of one token, as in GLM-5, and the bound of the geometric mean of a whole response: at that bound the twelve tokens of a
response are together twice as likely.
"""


def _rounded(precision: str, **bounds: Any) -> dict[str, Any]:
    """The settings that an arm changes. All arms have the same loss and one update a step, so that no ratio is clipped and only the mask
    of the mismatch differs.
    """
    return {"objective": {"name": "icepop", **bounds}, "sampler": {"precision": precision}}


_NO_MASK = {"pop_low": 0.0, "pop_high": _NEVER}
_BY_TOKEN = {"pop_high": _BOUND}

QUANTIZED = Plan(
    "quantized",
    "IcePop under a sampler of fewer bits than the trainer",
    "GLM-5 (2026)",
    arms=(
        Arm("full", "sampler as trained, no mask", _rounded("model", **_NO_MASK)),
        Arm("int8", "sampler in int8, no mask", _rounded("int8", **_NO_MASK)),
        Arm("int8_icepop", "sampler in int8, IcePop", _rounded("int8", **_BY_TOKEN)),
        Arm("int4", "sampler in int4, no mask", _rounded("int4", **_NO_MASK)),
        Arm("int4_icepop", "sampler in int4, IcePop", _rounded("int4", **_BY_TOKEN)),
        Arm(
            "int4_whole",
            "sampler in int4, whole responses masked",
            _rounded("int4", level="sequence", pop_high=_BOUND_WHOLE),
        ),
    ),
    claims=(
        Claim(
            "under a sampler in int4, IcePop brings trainer and sampler closer on the tokens that are trained on",
            (
                ClaimPart(
                    "KL saved, nats per token", _KL.format("masked"), "int4_icepop", "int4", margin=0.001, sign=-1
                ),
            ),
        ),
        Claim(
            "under a sampler in int4, IcePop has a higher held-out score than no mask",
            (ClaimPart("score", _SCORE, "int4_icepop", "int4"),),
        ),
        Claim(
            "under a sampler in int4, IcePop has a higher held-out score than a mask of whole responses",
            (ClaimPart("score", _SCORE, "int4_icepop", "int4_whole"),),
        ),
        Claim(
            "under a sampler in int8, IcePop has a higher held-out score than no mask",
            (ClaimPart("score", _SCORE, "int8_icepop", "int8"),),
        ),
        Claim(
            "without a mask, a sampler in int8 lowers the score (this would be evidence against int8)",
            (ClaimPart("score lost", _SCORE, "full", "int8"),),
        ),
        Claim(
            "without a mask, a sampler in int4 lowers the score (ours: otherwise there is nothing to correct)",
            (ClaimPart("score lost", _SCORE, "full", "int4"),),
        ),
    ),
    sizes={
        "tiny": Setting(
            merge_config(TINY, {"steps": 60, "evaluation": {"every": 10, "samples": 8}}),
            _SEEDS,
            wanted=2,
            note="A random model of two layers that was taught to say syllables by Zipf's law, on a language of syllables "
            "(trainer/claims/toy.py). The sampler also writes the held-out answers, in its own precision. The learner is always "
            "in float32.",
        )
    },
    measured="curves",
    columns=(
        ("score at the end", _SCORE),
        ("KL before the mask", _KL.format("raw")),
        ("KL after it", _KL.format("masked")),
        ("farthest token before", _FAR.format("raw")),
        ("farthest token after", _FAR.format("masked")),
        ("silenced", "policy/pop_share:late"),
        ("entropy", _ENTROPY),
    ),
    summary="The sampler has weights of eight bits, or of four, and the loss leaves out tokens on which trainer and "
    "sampler disagree.",
)
