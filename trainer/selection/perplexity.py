"""Measures the difficulty of a text for a model at its hardest window (LongCat-Flash-Thinking-2601, 2026)."""

import numpy as np
from numpy.typing import ArrayLike

WINDOW = 512


def sliding_perplexity(logp_T: ArrayLike, window: int = WINDOW) -> float | None:
    """The largest mean negative log-likelihood of `window` tokens in a row, in nats.

    Windows begin at every token, so they overlap. A shorter text is one window. None for a text without tokens.
    """
    nll = -np.asarray(logp_T, dtype=np.float64)
    if not len(nll):
        return None
    width = min(window, len(nll))
    sums = np.concatenate([[0.0], np.cumsum(nll)])
    return float((sums[width:] - sums[:-width]).max() / width)
