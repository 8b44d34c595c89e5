"""Sequences that start alike, laid out so that every shared prefix is computed once.

The responses of a group continue one prompt, and all prompts share the system message. A trie of the token sequences,
flattened to one row in which each node sees only its ancestors, gives every sequence exactly the hidden states it would
have alone, at the cost of its unshared tokens.

In the order of their tokens, neighbours share most. So sorting the sequences and comparing neighbours is enough to
lay out a trie depth first, and to know what any two sequences share. Python does nothing token by token.
"""

from array import array
from bisect import bisect, insort
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from .tree_attention import TreeMask


@dataclass(frozen=True)
class PrefixTree:
    """N nodes, depth first. `paths[i]` lists the nodes of sequence i in order, so `tokens_N[paths[i]]` is the sequence."""

    tokens_N: Tensor
    positions_N: Tensor
    paths: tuple[Tensor, ...]
    mask: TreeMask

    @classmethod
    def of(cls, sequences: Sequence[Sequence[int]], before: int = 0) -> "PrefixTree":
        """The tree of the sequences. `before` is the number of tokens, kept in a cache, that stand before all of them.

        Raises ValueError for an empty sequence, which has no node to continue from.
        """
        if not all(len(sequence) for sequence in sequences):
            raise ValueError("a sequence without tokens cannot be laid out")
        ordered = _Sorted(sequences)
        lengths, shared, fresh = ordered.lengths, ordered.shared, ordered.fresh
        begins = [0, *np.cumsum(fresh).tolist()]
        path, paths = np.empty(max(lengths), dtype=np.int64), [np.empty(0, dtype=np.int64)] * len(sequences)
        for rank, place in enumerate(ordered.places):
            path[shared[rank] : lengths[rank]] = np.arange(begins[rank], begins[rank + 1])
            paths[place] = path[: lengths[rank]].copy()
        new = [slice(*ends) for ends in zip(shared, lengths, strict=True)]
        tokens_N = np.concatenate(
            [ordered.tokens[place][part] for place, part in zip(ordered.places, new, strict=True)]
        )
        positions_N = torch.from_numpy(np.concatenate([np.arange(part.start, part.stop) for part in new]))
        mask = TreeMask(positions_N, torch.from_numpy(_exits(ordered, begins)), before)
        nodes = torch.from_numpy(tokens_N.astype(np.int64))
        return cls(nodes, before + positions_N, tuple(torch.from_numpy(path) for path in paths), mask)

    def to(self, device: torch.device) -> "PrefixTree":
        """Nodes and mask on the model's `device`. Paths stay on the CPU, which reads them."""
        return PrefixTree(self.tokens_N.to(device), self.positions_N.to(device), self.paths, self.mask.to(device))

    def model_inputs(self) -> dict[str, Any]:
        """Keyword arguments of a transformers decoder that attends by groups: a batch of one row."""
        return {"input_ids": self.tokens_N[None], "position_ids": self.positions_N[None], "tree": self.mask}


class _Sorted:
    """Sequences in the order of their tokens, each after those it begins with. Rank r is the given `places[r]`, has
    `lengths[r]` tokens, and shares its first `shared[r]` tokens with the one before it; `fresh[r]` are its own.
    """

    def __init__(self, sequences: Sequence[Sequence[int]]) -> None:
        self.tokens = [np.frombuffer(array("I", sequence), dtype=np.uint32) for sequence in sequences]
        # Bytes of big-endian numbers compare as the numbers do, all at once.
        self.keys = [tokens.astype(">u4").tobytes() for tokens in self.tokens]
        self.places = sorted(range(len(self.keys)), key=self.keys.__getitem__)
        self.ranks = {place: rank for rank, place in enumerate(self.places)}
        ordered = [self.tokens[place] for place in self.places]
        self.lengths = [len(tokens) for tokens in ordered]
        pairs = zip(ordered[:-1], ordered[1:], strict=True)
        self.shared = [0, *(_common(one, two) for one, two in pairs)][: len(ordered)]
        self.fresh = [length - shared for length, shared in zip(self.lengths, self.shared, strict=True)]
        self._shared = np.array(self.shared)

    def common(self, one: int, two: int) -> int:
        """The number of equal tokens with which the sequences of two ranks begin."""
        if one == two:
            return self.lengths[one]
        low, high = min(one, two), max(one, two)
        return self.shared[high] if high == low + 1 else int(self._shared[low + 1 : high + 1].min())


def _common(one: np.ndarray, two: np.ndarray) -> int:
    shorter = min(len(one), len(two))
    different = one[:shorter] != two[:shorter]
    return int(different.argmax()) if different.any() else shorter


def _exits(ordered: _Sorted, begins: Sequence[int]) -> np.ndarray:
    """For each node [N], the first node behind its descendants: there a later sequence leaves its path."""
    exits_N = np.empty(begins[-1], dtype=np.int64)
    by_depth = np.full(max(ordered.lengths), begins[-1])
    for rank in range(len(ordered.places) - 1, -1, -1):
        shared = ordered.shared[rank]
        exits_N[begins[rank] : begins[rank + 1]] = by_depth[shared : ordered.lengths[rank]]
        by_depth[shared:] = begins[rank]
    return exits_N


@dataclass(frozen=True)
class Pack:
    """Sequences, by their places among the packed ones, that are computed in one pass over `nodes` tokens."""

    places: list[int]
    nodes: int


_OPEN_PACKS = 8


def pack(sequences: Sequence[Sequence[int]], max_nodes: int) -> list[Pack]:
    """All sequences in packs whose trees have at most `max_nodes` nodes; a longer sequence gets its own pack.

    Best fit: among the packs begun last that have room, a sequence joins the one that already shares most of it
    and, of equals, the fullest. Sequences in the order of their tokens keep a group together; longest first fills
    packs better if they share nothing. The order with fewer nodes, then fewer packs, is taken. The memory
    of a pass grows with its nodes, so not everything can be one tree.
    """
    return pack_units([(sequence,) for sequence in sequences], max_nodes)


def pack_units(units: Sequence[Sequence[Sequence[int]]], max_nodes: int) -> list[Pack]:
    """Like `pack`, for units whose sequences must be in one pass, such as the two answers of a pair; places are those of the units."""
    ordered = _Sorted([sequence for unit in units for sequence in unit])
    sized, first = [], 0
    for unit in units:
        sized.append(_Unit.of([ordered.ranks[place] for place in range(first, first + len(unit))], ordered))
        first += len(unit)
    places = range(len(units))
    longest_first = _best_fit(sized, ordered, max_nodes, sorted(places, key=lambda place: -sized[place].nodes))
    alike = _best_fit(sized, ordered, max_nodes, sorted(places, key=lambda place: sized[place].order))
    return min(longest_first, alike, key=lambda packs: (sum(each.nodes for each in packs), len(packs)))


class _Trie:
    """Sequences by their ranks, and how many nodes their tree has."""

    def __init__(self, ordered: _Sorted) -> None:
        self._ordered = ordered
        self._ranks: list[int] = []
        self.nodes = 0

    def add(self, rank: int) -> None:
        self.nodes += self._ordered.lengths[rank] - self.shared(rank)
        insort(self._ranks, rank)

    def shared(self, rank: int) -> int:
        """The number of the sequence's tokens that are in the tree already: those that its nearest neighbours share with it."""
        at = bisect(self._ranks, rank)
        return max((self._ordered.common(rank, near) for near in self._ranks[max(0, at - 1) : at + 1]), default=0)


@dataclass(frozen=True)
class _Unit:
    """Sequences by their ranks, all of which begin with the first `stem` tokens of the first one, and the nodes of their tree.

    `order` sorts units by the tokens of their stems.
    """

    ranks: Sequence[int]
    stem: int
    nodes: int
    order: bytes

    @classmethod
    def of(cls, ranks: Sequence[int], ordered: _Sorted) -> "_Unit":
        tree = _Trie(ordered)
        for rank in ranks:
            tree.add(rank)
        stem = min(ordered.common(ranks[0], rank) for rank in ranks)
        return cls(ranks, stem, tree.nodes, ordered.keys[ordered.places[ranks[0]]][: 4 * stem])


def _best_fit(units: Sequence[_Unit], ordered: _Sorted, max_nodes: int, order: Sequence[int]) -> list[Pack]:
    packs: list[tuple[_Trie, list[int]]] = []
    for place in order:
        unit = units[place]
        best, score = None, (-1, -1)
        for trie, places in packs[-_OPEN_PACKS:]:
            shared = min(unit.stem, trie.shared(unit.ranks[0]))
            if trie.nodes + unit.nodes - shared <= max_nodes and (shared, trie.nodes) > score:
                best, score = (trie, places), (shared, trie.nodes)
        if best is None:
            best = (_Trie(ordered), [])
            packs.append(best)
        for rank in unit.ranks:
            best[0].add(rank)
        best[1].append(place)
    return [Pack(sorted(places), trie.nodes) for trie, places in packs]
