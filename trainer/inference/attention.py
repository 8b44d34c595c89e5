"""Grouped-query attention without a copy of keys and values for each query head.

Query heads that share a key-value head are laid out as further query positions of that head, so that
`scaled_dot_product_attention` reads each key once. On a CPU this halves the cost of a decoding step. Passes over a prefix tree
give the tree instead of a mask (`tree_attention`).
"""

from typing import Any

from torch import Tensor, nn
from transformers import AttentionInterface

from .tree_attention import TreeMask, tree_attention

NAME = "touchstone_grouped"


def grouped_attention(
    module: nn.Module,
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attention_mask: Tensor | None,
    scaling: float | None = None,
    tree: TreeMask | None = None,
    **_: Any,
) -> tuple[Tensor, None]:
    """Query [B, H, Q, D] on key and value [B, H / R, S, D] -> [B, Q, H, D]; the mask is [B or 1, 1, Q, S], True = seen.

    `tree` replaces the mask for a batch of one. Raises ValueError if neither is given.
    """
    if tree is not None:
        return tree_attention(query, key, value, tree, scaling), None
    if attention_mask is None:
        raise ValueError("grouped attention needs an explicit mask or a tree")
    B, H, Q, D = query.shape
    heads_kv = key.shape[1]
    repeats = H // heads_kv
    folded = query.reshape(B, heads_kv, repeats * Q, D)
    mask = attention_mask if Q == 1 else attention_mask.repeat(1, 1, repeats, 1)
    out = nn.functional.scaled_dot_product_attention(folded, key, value, attn_mask=mask, scale=scaling)
    return out.reshape(B, H, Q, D).transpose(1, 2).contiguous(), None


def use_grouped_attention(model: nn.Module) -> None:
    """Make a transformers model attend by groups. Callers then pass four-dimensional boolean masks, or `tree`."""
    AttentionInterface.register(NAME, grouped_attention)
    model.config._attn_implementation = NAME  # type: ignore[union-attr]
