"""Prefix trees: which nodes are shared, which nodes see each other, and that hidden states do not change."""

from collections.abc import Sequence
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from trainer.inference.attention import use_grouped_attention
from trainer.inference.models import load_model
from trainer.inference.prefix import PrefixTree, pack, pack_units


def test_shared_prefixes_become_shared_nodes() -> None:
    tree = PrefixTree.of([[7, 8, 1], [7, 8, 2, 3], [7, 8]])
    assert tree.tokens_N.tolist() == [7, 8, 1, 2, 3]
    assert tree.positions_N.tolist() == [0, 1, 2, 2, 3]
    assert [path.tolist() for path in tree.paths] == [[0, 1, 2], [0, 1, 3, 4], [0, 1]]


def test_a_node_sees_its_ancestors_and_itself() -> None:
    seen = PrefixTree.of([[7, 8, 1], [7, 8, 2, 3]]).mask.dense()
    rows = [row.nonzero()[:, 0].tolist() for row in seen]
    assert rows == [[0], [0, 1], [0, 1, 2], [0, 1, 3], [0, 1, 3, 4]]


def test_hidden_states_equal_those_of_each_sequence_alone(tiny_dir: Path) -> None:
    sequences = [[3, 5, 8, 13, 21], [3, 5, 8, 2], [4, 5, 8, 13]]
    plain, ours = load_model(tiny_dir), load_model(tiny_dir)
    use_grouped_attention(ours)
    tree = PrefixTree.of(sequences)
    with torch.no_grad():
        shared = ours.model(**tree.model_inputs(), use_cache=False).last_hidden_state[0]
        for sequence, path in zip(sequences, tree.paths, strict=True):
            alone = plain.model(torch.tensor([sequence])).last_hidden_state[0]
            torch.testing.assert_close(shared[path], alone, atol=1e-5, rtol=1e-5)


TREES = st.lists(
    st.tuples(st.sampled_from([(), (1,), (1, 2), (1, 2, 1, 2, 1), (2,) * 30]), st.lists(st.integers(0, 2), max_size=6))
    .map(lambda parts: [*parts[0], *parts[1]])
    .filter(len),
    min_size=1,
    max_size=12,
)
"""Sequences with and without a prompt, equal ones, chains, single nodes, and one that is the beginning of another."""


def trie(sequences: Sequence[Sequence[int]]) -> set[tuple[int, ...]]:
    """The nodes of a tree, each with the tokens that lead to it."""
    return {tuple(sequence[: end + 1]) for sequence in sequences for end in range(len(sequence))}


@settings(max_examples=60, deadline=None)
@given(TREES)
def test_any_tree_has_each_prefix_once_and_every_node_sees_its_own_prefixes(sequences: list[list[int]]) -> None:
    tree = PrefixTree.of(sequences)
    nodes: dict[int, tuple[int, ...]] = {}
    for sequence, path in zip(sequences, tree.paths, strict=True):
        assert tree.tokens_N[path].tolist() == sequence and tree.positions_N[path].tolist() == list(
            range(len(sequence))
        )
        nodes |= {node: tuple(sequence[: end + 1]) for end, node in enumerate(path.tolist())}
    assert sorted(nodes) == list(range(len(tree.tokens_N))) and set(nodes.values()) == trie(sequences)
    dense = tree.mask.dense()
    for mine, whole in nodes.items():
        ancestors = [other for other, prefix in nodes.items() if whole[: len(prefix)] == prefix]
        assert sorted(ancestors) == dense[mine].nonzero()[:, 0].tolist()


@settings(max_examples=60, deadline=None)
@given(TREES, st.integers(1, 40))
def test_packs_hold_every_sequence_once_and_say_what_their_trees_have(sequences: list[list[int]], limit: int) -> None:
    packs = pack(sequences, limit)
    assert sorted(place for each in packs for place in each.places) == list(range(len(sequences)))
    for each in packs:
        held = [sequences[place] for place in each.places]
        assert each.nodes == len(trie(held))
        assert each.nodes <= limit or len(trie(held)) == max(map(len, held))


def test_packing_keeps_groups_together_and_the_limit() -> None:
    first, second = [1, 2, 3, 4], [9, 8, 7, 6]
    sequences = [[*prompt, response, response] for response in (11, 12, 13) for prompt in (first, second)]
    packs = pack(sequences, 10)
    assert [(found.places, found.nodes) for found in packs] == [([0, 2, 4], 10), ([1, 3, 5], 10)]


def test_short_responses_fill_what_long_ones_leave() -> None:
    sequences = [[1], [2] * 7, [3] * 5, [4] * 3, [5] * 4]
    packs = pack(sequences, 10)
    assert [found.places for found in packs] == [[1, 3], [0, 2, 4]]
    assert all(found.nodes == 10 for found in packs)


def test_a_group_is_not_torn_apart_by_the_lengths_of_its_sequences() -> None:
    first, second = [1] * 4, [2] * 4
    lengths = (5, 3, 2, 1)
    sequences = [[*prompt, *[10 + length] * length] for length in lengths for prompt in (first, second)]
    packs = pack(sequences, 19)
    assert [(found.places, found.nodes) for found in packs] == [([0, 2, 4, 6], 15), ([1, 3, 5, 7], 15)]


def test_a_sequence_beyond_the_limit_has_a_pack_of_its_own() -> None:
    packs = pack([[1, 2, 3], [5] * 12, [1, 2, 4]], 7)
    assert [(found.places, found.nodes) for found in packs] == [([1], 12), ([0, 2], 4)]


def test_an_empty_sequence_is_refused() -> None:
    with pytest.raises(ValueError, match="without tokens"):
        PrefixTree.of([[1], []])


def test_a_unit_is_never_divided_and_its_tree_is_what_it_costs() -> None:
    prompt = list(range(100, 110))
    pairs = [([*prompt, i, i], [*prompt, i + 1, i]) for i in range(0, 12, 2)]
    packs = pack_units(pairs, 20)
    assert sorted(place for each in packs for place in each.places) == list(range(6))
    assert all(each.nodes <= 20 for each in packs)
    for each in packs:
        tree = PrefixTree.of([sequence for place in each.places for sequence in pairs[place]])
        assert len(tree.tokens_N) == each.nodes == 10 + 4 * len(each.places)
    alone = pack_units([(prompt, [1, 2, 3])], 5)
    assert [(each.places, each.nodes) for each in alone] == [([0], 13)]
