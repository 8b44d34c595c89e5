"""Selects the demonstrations of a run that learns only a part of them (LongCat-Flash-Thinking-2601, 2026). Axes: N texts, D hidden."""

import random
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from trainer.config.recipes.sft import SftConfig
from trainer.selection import k_center, sliding_perplexity

from ..session.errors import RunFailed
from .demonstrations import Demonstration

MOST_COMPARED = 2**32
"""The largest number of distances: picks x conversations."""


def selected(items: Sequence[Demonstration], model: Any, config: SftConfig) -> list[int] | None:
    """Places of the conversations that are learnt, ascending; None stands for all. The same seed and model pick the same.

    `random`: a share, drawn by the seed. `cover`: K-center by cosine distance of the mean last layer, weighted by the perplexity of the
    learnt tokens under the untrained model. `distance`: K-center without the weights. Raises RunFailed.
    """
    data = config.data
    if data.select == "all":
        return None
    few = max(1, round(data.share * len(items)))
    if data.select == "random":
        return sorted(random.Random(config.seed).sample(range(len(items)), few))  # noqa: S311 - a draw, not a secret
    if few * len(items) > MOST_COMPARED:
        raise RunFailed(f"data.share: {few:,} picks among {len(items):,} conversations are too many to compare")
    vectors_ND, surprise_N = _measured(items, model, config.optim.micro_batch_tokens)
    weights_N = surprise_N if data.select == "cover" else np.ones(len(items))
    return sorted(k_center(vectors_ND, weights_N, few))


@torch.inference_mode()
def _measured(
    items: Sequence[Demonstration], model: Any, most_tokens: int
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """The mean last layer [N, D] of each conversation, and the perplexity of its hardest window [N]."""
    vectors: dict[int, NDArray[np.float64]] = {}
    surprise = np.zeros(len(items))
    for places in _batches([len(item.turns.tokens) for item in items], most_tokens):
        width = len(items[places[-1]].turns.tokens)
        tokens = torch.zeros((len(places), width), dtype=torch.long, device=model.device)
        mask = torch.zeros_like(tokens)
        for row, place in enumerate(places):
            found = items[place].turns.tokens
            tokens[row, : len(found)] = torch.tensor(found, device=model.device)
            mask[row, : len(found)] = 1
        out = model(input_ids=tokens, attention_mask=mask, output_hidden_states=True)
        for row, place in enumerate(places):
            turns = items[place].turns
            vectors[place] = out.hidden_states[-1][row, : len(turns.tokens)].double().mean(0).cpu().numpy()
            before = torch.tensor([at - 1 for at in turns.learnt], device=model.device)
            wanted = torch.tensor([turns.tokens[at] for at in turns.learnt], device=model.device)
            logp = out.logits[row, before].float().log_softmax(-1).gather(1, wanted[:, None])[:, 0]
            surprise[place] = sliding_perplexity(logp.cpu().numpy()) or 0.0
    return np.stack([vectors[place] for place in range(len(items))]), surprise


def _batches(lengths: Sequence[int], most_tokens: int) -> Iterator[list[int]]:
    """Places by length, as many as fit if all are as long as the longest, which comes last."""
    batch: list[int] = []
    for place in sorted(range(len(lengths)), key=lambda place: lengths[place]):
        if batch and (len(batch) + 1) * lengths[place] > most_tokens:
            yield batch
            batch = []
        batch.append(place)
    if batch:
        yield batch
