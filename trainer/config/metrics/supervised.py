"""Metrics of recipes that learn from stored texts."""

from ..recipe import Metric
from .common import COMMON

FITTING = (
    *COMMON,
    Metric(
        "train/grad_norm",
        "Gradient norm",
        "Before clipping. A spike is a batch unlike the others; if the norm keeps growing, lower the learning rate.",
        "optim",
    ),
    Metric(
        "train/epoch",
        "Passes over the data",
        "How often each training example has been seen so far. Once a phase chooses examples, only the chosen ones count.",
        "data",
        unit="epochs",
    ),
    Metric(
        "perf/train_tokens_per_s",
        "Tokens trained per second",
        "Prompt and answer together; a shared prefix counts for every text.",
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
        "Share of all tokens that lie in a prefix shared with another text of the same pass.",
        "speed",
        better="higher",
        share=True,
    ),
)
