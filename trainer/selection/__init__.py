"""Chooses examples to train on by what a model makes of them. Torch-free."""

from .clusters import near_duplicates
from .faults import FAULTS
from .kcenter import k_center
from .perplexity import sliding_perplexity

__all__ = ["FAULTS", "k_center", "near_duplicates", "sliding_perplexity"]
