"""Metrics of the distances between policy, old policy and sampler."""

from ..recipe import Metric

_TOKENS = "nats/token"
_RATIO = (
    "Probability of a token under the policy now over when it was sampled; masked: the tokens that the loss uses. "
    "Healthy: close to 1."
)
_MISMATCH = (
    "Mean ratio of the probabilities that trainer and sampler give the same token under the same weights; masked: only the tokens that the loss uses. "
    "Healthy: very close to 1."
)
_DISTANCE = (
    "How far the trainer is from the sampler under the same weights, in nats per token; masked: over the tokens that the loss uses. Healthy: near 0. It "
    "grows if the sampler computes in another precision."
)
_FAR = (
    "The largest factor in a step between the probabilities that trainer and sampler give one token; masked: over the tokens that the loss uses. "
    "Healthy: close to 1."
)
RATIOS = (
    Metric("policy/ratio_raw", "raw", _RATIO, "ratios", chart="Mean ratio"),
    Metric("policy/ratio_masked", "masked", "", "ratios", chart="Mean ratio"),
    Metric("policy/mismatch_raw", "raw", _MISMATCH, "ratios", chart="Trainer over sampler", optional=True),
    Metric("policy/mismatch_masked", "masked", "", "ratios", chart="Trainer over sampler", optional=True),
    Metric(
        "policy/mismatch_kl_raw",
        "raw",
        _DISTANCE,
        "ratios",
        chart="Distance of trainer and sampler",
        unit=_TOKENS,
        optional=True,
    ),
    Metric(
        "policy/mismatch_kl_masked",
        "masked",
        "",
        "ratios",
        chart="Distance of trainer and sampler",
        unit=_TOKENS,
        optional=True,
    ),
    Metric("policy/mismatch_far_raw", "raw", _FAR, "ratios", chart="Farthest token", optional=True),
    Metric("policy/mismatch_far_masked", "masked", "", "ratios", chart="Farthest token", optional=True),
    Metric(
        "policy/pop_share",
        "Silenced share",
        "Tokens left out because trainer and sampler disagree about them. Healthy: well below 1 %.",
        "ratios",
        share=True,
        optional=True,
    ),
    Metric(
        "policy/log_ratio",
        "Log-ratio to sampler",
        "Mean over whole responses of how much likelier they are to the policy than to the weights that sampled them "
        "(OAPL). Grows between two pushes and falls back at the next.",
        "ratios",
        optional=True,
    ),
    Metric(
        "policy/penalty",
        "Squared log-ratio",
        "The term that pulls the policy back to the weights that sampled, before it is multiplied by tau (Kimi K2.5). Healthy: small; growth means that "
        "responses are too old.",
        "ratios",
        optional=True,
    ),
    Metric(
        "policy/kl_teacher",
        "KL to teacher",
        "How far the policy is from its teacher on its own responses. Healthy: falls towards 0.",
        "ratios",
        unit=_TOKENS,
        better="lower",
        optional=True,
    ),
)
