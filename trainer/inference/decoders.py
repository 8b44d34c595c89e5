"""Runs a language model of transformers on prefix trees, for any architecture.

Known architectures (`trainer.config.architectures`) attend by groups. Every other one keeps its own attention and gets
the tree as a dense mask, one for each kind of attention that it has. Whether it then gives every sequence the result that it would have
alone is measured before use (`tried`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from trainer.config.architectures import KNOWN

from .attention import use_grouped_attention
from .models import ModelInvalid
from .prefix import PrefixTree

FULL, SLIDING = "full_attention", "sliding_attention"
TOLERANCE = {"float32": 1e-3, "float64": 1e-8, "bfloat16": 0.25, "float16": 0.1}
"""The largest |difference| of a token's log-probability that rounding can explain."""
_LONGEST = 1200
"""The largest number of tokens of a test sequence that must be longer than a window of attention."""


@dataclass(frozen=True)
class DecoderTrial:
    """The largest and mean |difference| (nats) between packed and padded log-probabilities over `tokens` tokens."""

    tokens: int
    largest: float
    mean: float


def is_known(model: Any) -> bool:
    return model.config.model_type in KNOWN


def make_ready(model: Any) -> None:
    """Prepare a model before its first pass. Raises ModelInvalid for an architecture that no mask suits."""
    if is_known(model):
        use_grouped_attention(model)
    else:
        _kinds(model.config)
        _head(model)
        if model.config._attn_implementation not in ("sdpa", "eager"):
            model.set_attn_implementation("eager")


def body(model: Any) -> Any:
    """The model without its head."""
    return model.base_model


def layers(model: Any) -> list[Any]:
    """The layers of the body. Raises ModelInvalid if the body has no list of layers under the usual name."""
    found = getattr(body(model), "layers", None)
    if found is None:
        raise ModelInvalid(
            f"architecture {model.config.model_type!r}: its body has no `layers` that could be told apart"
        )
    return list(found)


def adapted(model: Any) -> str | list[str]:
    """The modules that take adapters, in peft's form: every linear layer but the head. Experts that are kept as one tensor are not
    layers and take none, so that a merge always changes a layer's weight. Raises ModelInvalid if there are none.
    """
    if is_known(model):
        return "all-linear"
    head = model.get_output_embeddings()
    names = [name for name, part in model.named_modules() if isinstance(part, torch.nn.Linear) and part is not head]
    if not names:
        raise ModelInvalid(f"architecture {model.config.model_type!r} has no linear layers that could take adapters")
    return sorted({name.rpartition(".")[2] for name in names})


def tree_inputs(model: Any, tree: PrefixTree) -> dict[str, Any]:
    """Keyword arguments of the body for a tree: a batch of one row."""
    if is_known(model):
        return tree.model_inputs()
    positions_N = tree.positions_N
    mask_NN = torch.zeros(len(positions_N), len(positions_N), dtype=torch.bool, device=positions_N.device)
    for path in tree.paths:
        place = path.to(positions_N.device)
        mask_NN[place[:, None], place] = torch.ones(len(path), len(path), dtype=torch.bool, device=place.device).tril()
    near_NN = positions_N[:, None] - positions_N[None]
    return {
        "input_ids": tree.tokens_N[None],
        "position_ids": positions_N[None],
        "attention_mask": masks(model.config, mask_NN[None, None], near_NN[None, None]),
    }


def masks(config: Any, seen: Tensor, distance: Tensor) -> Any:
    """The body's `attention_mask`: `seen` [B, 1, Q, S], True where a query may look, limited to the window in layers that
    have one. `distance` is the number of tokens from each key to its query.
    """
    if config.model_type in KNOWN:
        return seen
    kinds, window = _kinds(config)
    if kinds == {FULL}:
        return seen
    near = seen & (distance < window)
    return near if kinds == {SLIDING} else {FULL: seen, SLIDING: near}


def tried(model: Any, seed: int = 0) -> DecoderTrial | None:
    """The result of `compared` for a model of an unknown architecture; None for known ones, which tests cover."""
    if is_known(model):
        return None
    make_ready(model)
    return compared(model, seed)


def compared(model: Any, seed: int = 0) -> DecoderTrial:
    """Packed against padded log-probabilities on random tokens. The trainer will compute the packed ones; for the padded ones the
    model uses its own masks, its own head, right padding and eager attention. Raises ModelInvalid if they differ.
    """
    rows = _rows(model, seed)
    with torch.no_grad():
        packed, padded = _packed(model, rows), _padded(model, rows)
    difference_M = (packed - padded).abs()
    dtype = str(model.dtype).removeprefix("torch.")
    found = DecoderTrial(len(difference_M), float(difference_M.max()), float(difference_M.mean()))
    if not found.largest <= TOLERANCE[dtype]:
        raise ModelInvalid(
            f"architecture {model.config.model_type!r} cannot be trained: packed in one row its log-probabilities differ by up "
            f"to {found.largest:.3g} from those of the model itself (allowed in {dtype}: {TOLERANCE[dtype]:g}). Its head or its "
            "attention is not a plain causal one."
        )
    return found


def _packed(model: Any, rows: Sequence[Sequence[int]]) -> Tensor:
    tree = PrefixTree.of(rows).to(model.device)
    hidden_ND = body(model)(**tree_inputs(model, tree), use_cache=False).last_hidden_state[0]
    weight_VD = _head(model)
    found = []
    for row, path in zip(rows, tree.paths, strict=True):
        logits_TV = hidden_ND[path[:-1].to(model.device)] @ weight_VD.T
        found.append(_of_next(logits_TV, row))
    return torch.cat(found)


def _padded(model: Any, rows: Sequence[Sequence[int]]) -> Tensor:
    longest = max(map(len, rows))
    tokens_BT = torch.zeros(len(rows), longest, dtype=torch.long)
    real_BT = torch.zeros_like(tokens_BT)
    for place, row in enumerate(rows):
        tokens_BT[place, : len(row)], real_BT[place, : len(row)] = torch.tensor(row), 1
    before = model.config._attn_implementation
    model.set_attn_implementation("eager")
    try:
        logits_BTV = model(tokens_BT.to(model.device), attention_mask=real_BT.to(model.device), use_cache=False).logits
    finally:
        if before in ("sdpa", "eager"):
            model.set_attn_implementation(before)
        else:
            model.config._attn_implementation = before
    return torch.cat(
        [_of_next(logits_TV[: len(row) - 1], row) for logits_TV, row in zip(logits_BTV, rows, strict=True)]
    )


def _of_next(logits_TV: Tensor, row: Sequence[int]) -> Tensor:
    following_T = torch.tensor(row[1:], device=logits_TV.device)
    wide_TV = logits_TV.to(torch.promote_types(logits_TV.dtype, torch.float32))
    return wide_TV.log_softmax(-1).gather(-1, following_T[:, None])[:, 0].cpu()


def _rows(model: Any, seed: int) -> list[list[int]]:
    """Random token sequences of different lengths: two that begin alike, one that is the beginning of another, one alone."""
    _, window = _kinds(model.config)
    most = min(_LONGEST, int(getattr(model.config, "max_position_embeddings", None) or _LONGEST))
    long = window + 8 if window and window + 8 <= most else 40
    draw = torch.Generator().manual_seed(seed)
    known = int(model.get_input_embeddings().weight.shape[0])
    stem, own, other, alone = (
        torch.randint(0, known, (length,), generator=draw).tolist() for length in (long - 16, 16, 9, 23)
    )
    return [stem + own, stem + other, stem[:12], alone]


def _head(model: Any) -> Tensor:
    """The matrix [V, D] of logits = hidden @ W^T. Raises ModelInvalid if the head does more than this product."""
    head, kind = model.get_output_embeddings(), model.config.model_type
    if head is None or not hasattr(head, "weight"):
        raise ModelInvalid(
            f"architecture {kind!r} has no head that gives the next token, so it cannot be trained to write"
        )
    if getattr(head, "bias", None) is not None:
        raise ModelInvalid(
            f"architecture {kind!r}: its head adds a bias to the logits, which the trainer does not compute"
        )
    weight: Tensor = head.weight
    return weight


def _kinds(config: Any) -> tuple[set[str], int]:
    """The kinds of attention of the layers, and the window in tokens of those that have one; 0 if none has."""
    window = int(getattr(config, "sliding_window", None) or 0)
    kinds = set(getattr(config, "layer_types", None) or ([SLIDING] if window else [FULL]))
    if strange := sorted(kinds - {FULL, SLIDING}):
        raise ModelInvalid(
            f"architecture {config.model_type!r} has layers of kind {strange[0]!r}; layers that attend to all that stands before, or "
            "to a window of it, can be trained"
        )
    if SLIDING in kinds and not window:
        raise ModelInvalid(
            f"architecture {config.model_type!r}: config.json names no sliding_window for its windowed layers"
        )
    return kinds, window if SLIDING in kinds else 0
