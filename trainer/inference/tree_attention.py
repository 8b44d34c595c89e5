"""Attention over a prefix tree without a mask of all nodes by all nodes.

The nodes of a tree are in depth-first order, so the descendants of node j are the nodes right behind it, up to its exit.
Node i sees node j if j is i itself or an ancestor: `j <= i < exit_j`. Two integers per node are the whole mask.

On a CPU the mask is never made. A run is a row of nodes of which each is the only child of the one before. It sees itself causally, and
all nodes below it, `[end, exit)`, see the whole run. So attention is one causal block and at most one full block per run.
The results are joined by their log-sum-exps, as in attention over blocks on several devices (Liu et al., 2023, ring
attention). The work is the number of pairs that see each other, and the backward pass needs only inputs
and outputs. On CUDA the two integers are the `mask_mod` of FlexAttention (Dong et al., 2024).

Axes: N nodes, S = `before` + N keys, H query heads, K key-value heads, R = H / K, D width of a head.
"""

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention

BLOCK = 128
"""Rows and columns of a block of FlexAttention."""
_CALL = 2e6
"""Multiplications and additions that take as long on a CPU as one call of an operation."""
_forward = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
_backward = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu_backward


class AttentionBlock(NamedTuple):
    """Queries `[first, last)` see keys `[low, high)`: all of them or, if both are the same nodes, causally."""

    first: int
    last: int
    low: int
    high: int
    causal: bool


class TreeMask:
    """The visibility of nodes: node i of N sees the `before` keys that stand before the tree, and node j if `j <= i < exit_j`.

    One object serves all layers of a pass, and keeps what it has made for them.
    """

    def __init__(self, positions_N: Tensor, exits_N: Tensor, before: int = 0) -> None:
        self.exits_N, self.before = exits_N, before
        self.parts = tuple(_parts(positions_N.cpu().numpy(), exits_N.cpu().numpy(), before))
        self._made: dict[Any, Any] = {}

    def to(self, device: torch.device) -> "TreeMask":
        """The mask on the queries' `device`."""
        moved = object.__new__(TreeMask)
        moved.exits_N, moved.before, moved.parts = self.exits_N.to(device), self.before, self.parts
        moved._made = {}
        return moved

    def dense(self) -> Tensor:
        """[N, S], True where a node sees a key."""
        nodes_N = torch.arange(len(self.exits_N), device=self.exits_N.device)
        seen_NN = (nodes_N[None, :] <= nodes_N[:, None]) & (nodes_N[:, None] < self.exits_N[None, :])
        return torch.cat([seen_NN.new_ones(len(nodes_N), self.before), seen_NN], dim=1)

    def added(self, dtype: torch.dtype) -> Tensor:
        """[N, S], to be added to scores: 0 if a node sees the key, else minus infinity. Made once for all layers."""
        made: Tensor = self._once(dtype, lambda: torch.zeros((), dtype=dtype).where(self.dense().cpu(), -torch.inf))
        return made

    def block_mask(self) -> Any:
        """FlexAttention's block mask, from the smallest and largest exit of each block of keys. Made once for all layers."""
        return self._once("blocks", lambda: _block_mask(self.exits_N, self.before))

    def _once(self, key: Any, make: Callable[[], Any]) -> Any:
        if key not in self._made:
            self._made[key] = make()
        return self._made[key]


def tree_attention(query: Tensor, key: Tensor, value: Tensor, tree: TreeMask, scale: float | None) -> Tensor:
    """Query [1, H, N, D] on key and value [1, K, S, D] -> [1, N, H, D]. `scale` is that of the scores; None: 1 / sqrt(D)."""
    if query.device.type == "cuda" and _flex_runs(query):
        flexed: Tensor = _flex()(query, key, value, block_mask=tree.block_mask(), scale=scale, enable_gqa=True)
        return flexed.transpose(1, 2)
    if query.device.type == "cpu" and _in_parts(query, key, tree):
        out: Tensor = _BlockAttention.apply(query, key, value, tree, scale)  # type: ignore[no-untyped-call]  # torch leaves it so
        return out
    mask = tree.added(query.dtype) if query.device.type == "cpu" else tree.dense()
    query_, key_, value_ = (_by_repeat(part, key.shape[1], query.shape[1]) for part in (query, key, value))
    out_RKND = scaled_dot_product_attention(query_, key_, value_, attn_mask=mask, scale=scale)
    return out_RKND.permute(2, 1, 0, 3).reshape(1, query.shape[2], query.shape[1], -1)


def _in_parts(query: Tensor, key: Tensor, tree: TreeMask) -> bool:
    """Whether parts cost less than all pairs: a few nodes that branch everywhere are faster with a mask."""
    _, H, N, D = query.shape
    return len(tree.parts) * _CALL <= 4.0 * N * key.shape[2] * H * D


def _by_repeat(tensor: Tensor, heads_kv: int, heads: int) -> Tensor:
    """[1, H or K, L, D] -> [R, K, L, D] without a copy: query head `k R + r` is row r, and keys are the same for each r."""
    repeats = heads // heads_kv
    if tensor.shape[1] == heads:
        apart: Tensor = tensor[0].unflatten(0, (heads_kv, repeats))
        return apart.transpose(0, 1)
    return tensor.expand(repeats, -1, -1, -1)


class _BlockAttention(torch.autograd.Function):
    """Attention part by part. Keeps query, key, value, result and its log-sum-exps [R, K, N]."""

    @staticmethod
    def forward(ctx: Any, query: Tensor, key: Tensor, value: Tensor, tree: TreeMask, scale: float | None) -> Tensor:
        _, H, N, D = query.shape
        heads_kv = key.shape[1]
        q, k, v = (_by_repeat(each, heads_kv, H) for each in (query, key, value))
        wide = torch.promote_types(query.dtype, torch.float32)
        out_NKRD = query.new_empty(N, heads_kv, H // heads_kv, v.shape[-1], dtype=wide)
        out, lse = out_NKRD.permute(2, 1, 0, 3), query.new_empty(H // heads_kv, heads_kv, N, dtype=wide)
        for part in tree.parts:
            rows, keys = slice(part.first, part.last), slice(part.low, part.high)
            found, found_lse = _forward(q[:, :, rows], k[:, :, keys], v[:, :, keys], 0.0, part.causal, scale=scale)
            if part.causal:
                out[:, :, rows], lse[:, :, rows] = found, found_lse
            else:
                _put_together(out[:, :, rows], lse[:, :, rows], found, found_lse)
        whole = out_NKRD.to(query.dtype).reshape(1, N, H, -1)
        ctx.save_for_backward(query, key, value, whole, lse)
        ctx.tree, ctx.scale = tree, scale
        return whole

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> Any:
        """Each part's own backward pass with the whole result and log-sum-exp, so that its probabilities are those of the whole. It runs in
        float32 also if the pass was in bfloat16, because torch's backward pass in bfloat16 takes several times as long.
        """
        query, key, value, whole, lse = ctx.saved_tensors
        heads, heads_kv = query.shape[1], key.shape[1]
        q, k, v = (_by_repeat(each.to(lse.dtype), heads_kv, heads) for each in (query, key, value))
        out, slope = (_by_repeat(each.to(lse.dtype).transpose(1, 2), heads_kv, heads) for each in (whole, gradients[0]))
        q_slope, k_slope, v_slope = (torch.zeros_like(each, dtype=lse.dtype) for each in (query, key, value))
        to_q = _by_repeat(q_slope, heads_kv, heads)
        for part in ctx.tree.parts:
            rows, keys = slice(part.first, part.last), slice(part.low, part.high)
            given = (slope[:, :, rows], q[:, :, rows], k[:, :, keys], v[:, :, keys], out[:, :, rows], lse[:, :, rows])
            to_rows, to_keys, to_values = _backward(*given, 0.0, part.causal, scale=ctx.scale)
            to_q[:, :, rows] += to_rows
            k_slope[0, :, keys] += to_keys.sum(0)
            v_slope[0, :, keys] += to_values.sum(0)
        return q_slope.to(query.dtype), k_slope.to(key.dtype), v_slope.to(value.dtype), None, None


def _put_together(out: Tensor, lse: Tensor, more: Tensor, more_lse: Tensor) -> None:
    """Join the softmax over two sets of keys: each weighs by its share of the sums of exponentials. In place."""
    both = torch.logaddexp(lse, more_lse)
    out.lerp_(more.to(out.dtype), (more_lse - both).exp_()[..., None])
    lse.copy_(both)


def _parts(positions_N: np.ndarray, exits_N: np.ndarray, before: int) -> Iterator[AttentionBlock]:
    """The blocks, causal ones first, because they give every node a result to add to."""
    nodes = len(positions_N)
    goes_on = (positions_N[1:] == positions_N[:-1] + 1) & (exits_N[1:] == exits_N[:-1])
    starts = [0, *(np.flatnonzero(~goes_on) + 1).tolist()]
    runs = list(zip(starts, [*starts[1:], nodes], exits_N[starts].tolist(), strict=True))
    yield from (AttentionBlock(start, end, before + start, before + end, True) for start, end, _ in runs)
    if before:
        yield AttentionBlock(0, nodes, 0, before, False)
    yield from (
        AttentionBlock(end, exit_, before + start, before + end, False) for start, end, exit_ in runs if end < exit_
    )


@cache
def _flex() -> Any:
    """FlexAttention compiled for any number of nodes, because each pass has another number."""
    from torch.nn.attention.flex_attention import flex_attention

    return torch.compile(flex_attention, dynamic=True)


def _flex_runs(query: Tensor) -> bool:
    """Whether its kernels, which are Triton's, can run: not for float64, nor for heads narrower than 16."""
    from torch.utils._triton import has_triton

    return query.dtype != torch.float64 and query.shape[-1] >= 16 and has_triton()


def _block_mask(exits_N: Tensor, before: int) -> Any:
    """Some queries of a later block see a block of keys if its largest exit lies behind the first of them; all of them see it
    if its smallest exit does not lie before their end. Blocks on the diagonal are computed node by node.
    """
    from torch.nn.attention.flex_attention import BlockMask

    nodes = len(exits_N)
    # All nodes see a key before the tree: it is like a node that stands before all others and never ends.
    forever = exits_N.new_full((before,), nodes)
    exits_S = torch.cat([forever, exits_N])
    entries_S = torch.arange(-before, nodes, device=exits_N.device)

    def seen(_b: Tensor, _h: Tensor, q: Tensor, kv: Tensor) -> Tensor:
        return (entries_S[kv] <= q) & (q < exits_S[kv])

    some, whole = _blocks(entries_S, exits_S, nodes)
    lists = [(found.sum(-1, dtype=torch.int32)[None, None], _listed(found)) for found in (some & ~whole, whole)]
    (partly, partly_at), (fully, fully_at) = lists
    return BlockMask.from_kv_blocks(
        partly, partly_at, fully, fully_at, BLOCK, seen, seq_lengths=(nodes, before + nodes)
    )


def _blocks(entries_S: Tensor, exits_S: Tensor, nodes: int) -> tuple[Tensor, Tensor]:
    """Two tensors [blocks of queries, blocks of keys]: whether some pair sees each other, and whether all do. No query sees keys that
    are missing in the last block, and queries that are missing see nothing.
    """
    missing = -len(exits_S) % BLOCK
    entries = torch.nn.functional.pad(entries_S, (0, missing), value=nodes).view(-1, BLOCK)
    exits = torch.nn.functional.pad(exits_S, (0, missing), value=-1).view(-1, BLOCK)
    first = torch.arange(0, nodes, BLOCK, device=exits_S.device)[:, None]
    last = (first + BLOCK - 1).clamp(max=nodes - 1)
    # For each key, whether its interval [entry, exit) meets the block's queries, or contains them all.
    some = ((entries[None] <= last[..., None]) & (exits[None] > first[..., None])).any(-1)
    whole = (entries.amax(-1)[None] <= first) & (exits.amin(-1)[None] >= first + BLOCK)
    return some, whole


def _listed(found: Tensor) -> Tensor:
    """[1, 1, blocks of queries, blocks of keys]: in each row, the columns that are True, before those that are not."""
    return found.to(torch.int8).argsort(dim=-1, descending=True, stable=True).to(torch.int32)[None, None]
