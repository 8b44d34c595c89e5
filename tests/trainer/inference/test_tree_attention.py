"""Attention over a tree: two integers per node replace a mask of all nodes by all nodes."""

from collections.abc import Iterator, Sequence
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from trainer.inference import tree_attention as module
from trainer.inference.prefix import PrefixTree
from trainer.inference.tree_attention import TreeMask, tree_attention

from .test_prefix import TREES

HEADS, HEADS_KV, WIDTH = 4, 2, 16


def group(prompt: int, responses: int, tokens: int) -> PrefixTree:
    """A prompt with its responses (the first half begin alike), and a sequence that shares nothing with them."""
    draw = torch.Generator().manual_seed(prompt)
    begin, alike, *rest = (
        torch.randint(50, (count,), generator=draw).tolist() for count in (prompt, tokens // 3, *[tokens] * responses)
    )
    made = [[*begin, *(alike if i < responses // 2 else []), *own[i:]] for i, own in enumerate(rest)]
    return PrefixTree.of([*made, [60] * tokens])


def inputs(tree: TreeMask, dtype: torch.dtype) -> tuple[Tensor, Tensor, Tensor]:
    draw = torch.Generator().manual_seed(0)
    nodes, keys = len(tree.exits_N), tree.before + len(tree.exits_N)

    def drawn(heads: int, count: int) -> Tensor:
        return torch.randn((1, heads, count, WIDTH), generator=draw, dtype=dtype).requires_grad_()

    return drawn(HEADS, nodes), drawn(HEADS_KV, keys), drawn(HEADS_KV, keys)


def written_out(query: Tensor, key: Tensor, value: Tensor, tree: TreeMask) -> Tensor:
    key, value = (part.repeat_interleave(HEADS // HEADS_KV, 1) for part in (key, value))
    scores = (query @ key.transpose(-1, -2) / WIDTH**0.5).masked_fill(~tree.dense(), -torch.inf)
    return (scores.softmax(-1) @ value).transpose(1, 2)


def gradients(out: Tensor, given_: Sequence[Tensor]) -> list[Tensor]:
    pull = torch.randn(out.shape, generator=torch.Generator().manual_seed(1), dtype=out.dtype)
    return list(torch.autograd.grad(out, given_, pull))


@pytest.fixture
def _in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_CALL", 0.0)


def same(mask: TreeMask, dtype: torch.dtype, close: float) -> None:
    given_ = inputs(mask, dtype)
    ours, theirs = tree_attention(*given_, mask, None), written_out(*given_, mask)
    torch.testing.assert_close(ours, theirs, atol=close, rtol=close)
    for mine, expected in zip(gradients(ours, given_), gradients(theirs, given_), strict=True):
        torch.testing.assert_close(mine, expected, atol=close, rtol=close)


@pytest.mark.parametrize("call", [0.0, 1e30], ids=["in parts", "with a mask"])
def test_any_tree_gives_what_the_mask_gives_in_values_and_gradients(call: float) -> None:
    seen = set()

    @settings(max_examples=40, deadline=None)
    @given(TREES, st.sampled_from([0, 1, 7]))
    def holds(sequences: list[list[int]], before: int) -> None:
        same(PrefixTree.of(sequences, before).mask, torch.float64, 1e-12)
        seen.add(before)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_CALL", call)
        holds()
    assert seen == {0, 1, 7}


@pytest.mark.usefixtures("_in_parts")
@pytest.mark.parametrize(
    ("tree", "dtype", "close"),
    [(group(300, 12, 150), torch.float32, 5e-6), (group(2000, 3, 24), torch.float64, 1e-12)],
    ids=["wide", "deep"],
)
def test_at_two_thousand_nodes_it_equals_the_mask(tree: PrefixTree, dtype: torch.dtype, close: float) -> None:
    assert len(tree.tokens_N) > 1500
    same(tree.mask, dtype, close)


def test_few_nodes_that_branch_everywhere_take_a_mask_that_all_layers_share(monkeypatch: pytest.MonkeyPatch) -> None:
    mask = PrefixTree.of([[i, i] for i in range(40)]).mask
    monkeypatch.setattr(module._BlockAttention, "apply", None)
    given_ = inputs(mask, torch.float32)
    kept: list[int] = []

    def keep(tensor: Tensor) -> Tensor:
        kept.append(tensor.data_ptr())
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        for _ in range(2):
            tree_attention(*given_, mask, None)
    assert kept.count(mask.added(torch.float32).data_ptr()) == 2, "one mask, kept by both"


@pytest.mark.usefixtures("_in_parts")
def test_nothing_of_all_nodes_by_all_nodes_is_made_or_kept() -> None:
    """The inputs of the backward pass: query, key, value, result and log-sum-exps."""
    mask = group(600, 16, 100).mask
    nodes, given_, sizes = len(mask.exits_N), inputs(mask, torch.float32), list[int]()
    with torch.autograd.graph.saved_tensors_hooks(lambda t: (sizes.append(t.numel()), t)[1], lambda t: t):
        out = tree_attention(*given_, mask, None)
    assert sum(sizes) == sum(tensor.numel() for tensor in given_) + out.numel() + nodes * HEADS
    assert mask._made == {}


@pytest.mark.usefixtures("_in_parts")
def test_bfloat16_is_put_together_in_float32() -> None:
    mask = group(40, 6, 30).mask
    given_ = inputs(mask, torch.bfloat16)
    query, key, value = (part.detach() for part in given_)
    exact = written_out(query.double(), key.double(), value.double(), mask)
    dense = torch.nn.functional.scaled_dot_product_attention(
        query, key, value, attn_mask=mask.dense(), enable_gqa=True
    ).transpose(1, 2)
    ours = tree_attention(query, key, value, mask, None)
    assert ours.dtype == torch.bfloat16
    assert float((ours - exact).abs().mean()) <= 1.5 * float((dense - exact).abs().mean())


@pytest.mark.usefixtures("_in_parts")
def test_gradients_in_bfloat16_are_computed_in_float32(monkeypatch: pytest.MonkeyPatch) -> None:
    """torch's own backward pass in bfloat16 takes several times as long, and is less exact."""
    mask, backward = group(40, 6, 30).mask, module._backward
    given_ = inputs(mask, torch.bfloat16)
    slope = torch.randn_like(tree_attention(*given_, mask, None))
    query, key, value = (part.double() for part in given_)
    exact = torch.autograd.grad(written_out(query, key, value, mask), given_, slope.double())

    def only_wide(*tensors: Any, **named: Any) -> Any:
        assert all(each.dtype == torch.float32 for each in tensors[:6])
        return backward(*tensors, **named)

    monkeypatch.setattr(module, "_backward", only_wide)
    ours = torch.autograd.grad(tree_attention(*given_, mask, None), given_, slope)
    for mine, right in zip(ours, exact, strict=True):
        assert mine.dtype == torch.bfloat16
        assert float((mine - right).norm()) < 0.01 * float(right.norm())


def blocks_of(mask: TreeMask) -> Iterator[tuple[int, int, Tensor]]:
    """Each block of the dense mask, filled up with zeros at the end."""
    dense, size = mask.dense(), module.BLOCK
    missing = [-length % size for length in dense.shape]
    padded = torch.nn.functional.pad(dense, (0, missing[1], 0, missing[0]))
    for i in range(padded.shape[0] // size):
        for j in range(padded.shape[1] // size):
            yield i, j, padded[i * size : (i + 1) * size, j * size : (j + 1) * size]


@pytest.mark.parametrize("before", [0, 5, 200])
def test_blocks_for_the_card_are_those_of_the_dense_mask(before: int) -> None:
    draw = torch.Generator().manual_seed(0)
    branches, ends = torch.randint(2, (40, 9), generator=draw), torch.randint(60, (40,), generator=draw)
    grown = [[*branch, *[7] * end] for branch, end in zip(branches.tolist(), ends.tolist(), strict=True)]
    mask = PrefixTree.of(grown, before).mask
    made: Any = mask.block_mask()
    for i, j, block in blocks_of(mask):
        some = j in made.kv_indices[0, 0, i, : made.kv_num_blocks[0, 0, i]].tolist()
        whole = j in made.full_kv_indices[0, 0, i, : made.full_kv_num_blocks[0, 0, i]].tolist()
        assert (some or whole) == bool(block.any()) and whole == bool(block.all())
    nodes, keys = mask.dense().shape
    q, kv = torch.arange(nodes)[:, None], torch.arange(keys)[None]
    assert torch.equal(made.mask_mod(0, 0, q, kv), mask.dense())


def test_flex_attention_with_these_blocks_gives_what_the_mask_gives() -> None:
    """The attention as PyTorch computes it without a GPU: all scores at once, with the same `mask_mod`."""
    from torch.nn.attention.flex_attention import flex_attention

    mask = group(90, 3, 40).mask
    query, key, value = (part.detach() for part in inputs(mask, torch.float32))
    ours = flex_attention(query, key, value, block_mask=mask.block_mask(), enable_gqa=True).transpose(1, 2)
    torch.testing.assert_close(ours, written_out(query, key, value, mask), atol=1e-5, rtol=1e-5)
