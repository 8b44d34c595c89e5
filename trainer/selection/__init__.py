"""Which examples to train on, chosen by what a model makes of them. Torch-free."""

from .kcenter import k_center
from .perplexity import sliding_perplexity

__all__ = ["k_center", "sliding_perplexity"]
