"""Metrics of recipes that learn from stored texts."""

from ..recipe import Metric
from .common import COMMON

FITTING = (
    *COMMON,
    Metric(
        "train/grad_norm",
        "Gradient norm",
        "Before clipping. A spike is a batch unlike the others; where it grows without end, lower the learning rate.",
        "optim",
    ),
    Metric(
        "train/epoch",
        "Passes over the data",
        "How often each training example has been seen so far; since a phase has said which are drawn from, each of these.",
        "data",
        unit="epochs",
    ),
    Metric(
        "perf/train_tokens_per_s",
        "Tokens trained per second",
        "Prompt and answer together, shared prefixes counted for every text.",
        "speed",
        unit="tokens/s",
        better="higher",
    ),
    Metric(
        "perf/pack_waste",
        "Empty part of a pass",
        "Of the token budget of a pass (optim.micro_batch_tokens), what is left empty.",
        "speed",
        better="lower",
        share=True,
    ),
    Metric(
        "perf/shared_share",
        "Tokens computed once for several",
        "Of all tokens, those that another text of the same pass begins with too.",
        "speed",
        better="higher",
        share=True,
    ),
)
