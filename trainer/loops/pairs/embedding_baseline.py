"""The baseline that a reward model must beat: a linear reward on sentence embeddings alone."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import logsigmoid

from trainer.metrics.preferences import accuracy

from .preferences import Pair

_BATCH = 64
_RIDGE = 1e-3


def embedding_accuracy(
    train: Sequence[Pair[Any]], heldout: Sequence[Pair[Any]], progress: Callable[[int, int], None]
) -> float | None:
    """The accuracy on the held-out pairs; None if nothing is held out, or there is nothing to fit. Raises as `embedding_margins`."""
    margins = embedding_margins(train, heldout, progress)
    return accuracy(margins).value if margins else None


def embedding_margins(
    train: Sequence[Pair[Any]], heldout: Sequence[Pair[Any]], progress: Callable[[int, int], None]
) -> list[float]:
    """The lead of the preferred answer of each held-out pair, by a logistic regression on differences of embeddings
    (MiniLM) of the training pairs; empty if either side is empty. Raises ModelInvalid if the embedder is not installed.
    """
    from trainer.inference.embeddings import Embedder

    decided, embed = [pair for pair in train if not pair.tie], Embedder()
    total = 2 * (len(decided) + len(heldout))
    done = 0

    def differences(pairs: Sequence[Pair[Any]]) -> Tensor:
        nonlocal done
        parts = []
        texts = [_text(pair, side) for pair in pairs for side in (0, 1)]
        for start in range(0, len(texts), _BATCH):
            parts.append(embed(texts[start : start + _BATCH]).clone())
            done += len(parts[-1])
            progress(done, total)
        both = torch.cat(parts).view(len(pairs), 2, -1)
        return both[:, 0] - both[:, 1]

    if not heldout or not decided:
        return []
    weights_H = _fitted(differences(decided))
    margins: list[float] = (differences(heldout) @ weights_H).tolist()
    return margins


def _fitted(differences_PH: Tensor) -> Tensor:
    """The weights of least logistic loss with a small ridge, by Newton's method: the problem is convex."""
    x_PH = differences_PH.double()
    weights_H = torch.zeros(x_PH.shape[1], dtype=torch.float64)
    identity = torch.eye(x_PH.shape[1], dtype=torch.float64)
    for _ in range(30):
        p_P = torch.sigmoid(x_PH @ weights_H)
        gradient = -(x_PH.T @ (1 - p_P)) / len(x_PH) + _RIDGE * weights_H
        hessian = (x_PH.T * (p_P * (1 - p_P))) @ x_PH / len(x_PH) + _RIDGE * identity
        step = torch.linalg.solve(hessian, gradient)
        before = _loss(x_PH, weights_H)
        while _loss(x_PH, weights_H - step) > before and float(step.norm()) > 1e-9:
            step = step / 2
        weights_H = weights_H - step
        if float(step.norm()) < 1e-8:
            break
    return weights_H.float()


def _loss(x_PH: Tensor, weights_H: Tensor) -> float:
    return float(-logsigmoid(x_PH @ weights_H).mean() + _RIDGE / 2 * (weights_H @ weights_H))


def _text(pair: Pair[Any], side: int) -> str:
    """The last question and the answer: the embedder reads only the first few hundred tokens."""
    return f"{pair.prompt[-1].content}\n\n{pair.sides[side].response.text}"
