"""Sequences that start alike, laid out so that every shared prefix is computed once.

The responses of a group continue one prompt, and all prompts share the system message. A trie of the token sequences,
flattened to one row with an attention mask that lets each node see its ancestors only, gives every sequence exactly the
hidden states it would have alone, at the cost of its unshared tokens.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class PrefixTree:
    """N nodes. `paths[i]` lists the nodes of sequence i in order, so `tokens_N[paths[i]]` is the sequence."""

    tokens_N: Tensor
    positions_N: Tensor
    mask_NN: Tensor
    paths: tuple[Tensor, ...]

    @classmethod
    def of(cls, sequences: Sequence[Sequence[int]]) -> "PrefixTree":
        """Raises ValueError for an empty sequence, which has no node to continue from."""
        builder = _Builder()
        paths = [builder.add(sequence) for sequence in sequences]
        mask_NN = torch.zeros(len(builder.tokens), len(builder.tokens), dtype=torch.bool)
        for path in paths:
            mask_NN[path[:, None], path] = torch.ones(len(path), len(path), dtype=torch.bool).tril()
        return cls(torch.tensor(builder.tokens), torch.tensor(builder.depths), mask_NN, tuple(paths))

    def to(self, device: torch.device) -> "PrefixTree":
        moved = tuple(path.to(device) for path in self.paths)
        return PrefixTree(self.tokens_N.to(device), self.positions_N.to(device), self.mask_NN.to(device), moved)

    def model_inputs(self) -> dict[str, Tensor]:
        """Keyword arguments of a transformers decoder: a batch of one row."""
        return {
            "input_ids": self.tokens_N[None],
            "position_ids": self.positions_N[None],
            "attention_mask": self.mask_NN[None, None],
        }


class _Builder:
    def __init__(self) -> None:
        self.tokens: list[int] = []
        self.depths: list[int] = []
        self._children: dict[tuple[int, int], int] = {}

    def add(self, sequence: Sequence[int]) -> Tensor:
        if not sequence:
            raise ValueError("a sequence without tokens cannot be laid out")
        path, node = [], -1
        for depth, token in enumerate(sequence):
            node = self._child(node, token, depth)
            path.append(node)
        return torch.tensor(path)

    def shared(self, sequence: Sequence[int]) -> int:
        """How many of the sequence's tokens are there already."""
        node = -1
        for depth, token in enumerate(sequence):
            node = self._children.get((node, token), -1)
            if node < 0:
                return depth
        return len(sequence)

    def _child(self, parent: int, token: int, depth: int) -> int:
        known = self._children.get((parent, token))
        if known is not None:
            return known
        self.tokens.append(token)
        self.depths.append(depth)
        return self._children.setdefault((parent, token), len(self.tokens) - 1)


@dataclass(frozen=True)
class Pack:
    """Sequences, by their places in what was packed, that are computed in one pass over `nodes` tokens."""

    places: list[int]
    nodes: int


_OPEN_PACKS = 8


def pack(sequences: Sequence[Sequence[int]], max_nodes: int) -> list[Pack]:
    """All sequences in packs whose trees stay within `max_nodes`; one that is longer gets a pack of its own.

    Best fit: a sequence joins, among the packs begun last that have room for it, the one that shares most of it already,
    and of equals the fullest. Sequences that start alike one after the other keep a group together; those that share
    nothing fill packs better longest first; whichever has the fewer nodes, then packs, is taken. Attention over a tree is
    quadratic in its nodes, which is why one tree for everything would not pay.
    """
    return pack_units([(sequence,) for sequence in sequences], max_nodes)


def pack_units(units: Sequence[Sequence[Sequence[int]]], max_nodes: int) -> list[Pack]:
    """The same for units whose sequences must be in one pass, such as the two answers of a pair; places are the units'."""
    sized = [_Unit.of(unit) for unit in units]
    places = range(len(units))
    longest_first = _best_fit(sized, max_nodes, sorted(places, key=lambda place: -sized[place].nodes))
    alike = _best_fit(sized, max_nodes, sorted(places, key=lambda place: tuple(sized[place].stem)))
    return min(longest_first, alike, key=lambda packs: (sum(each.nodes for each in packs), len(packs)))


@dataclass(frozen=True)
class _Unit:
    """Sequences with what all of them begin with, `stem`, and the nodes of their tree."""

    sequences: Sequence[Sequence[int]]
    stem: Sequence[int]
    nodes: int

    @classmethod
    def of(cls, sequences: Sequence[Sequence[int]]) -> "_Unit":
        first, *others = sequences
        if not others:
            return cls(sequences, first, len(first))
        tree = _Builder()
        for sequence in sequences:
            tree.add(sequence)
        shared = min(_common(first, other) for other in others)
        return cls(sequences, first[:shared], len(tree.tokens))


def _common(one: Sequence[int], two: Sequence[int]) -> int:
    """How many tokens both begin with."""
    pairs = enumerate(zip(one, two, strict=False))
    return next((place for place, (a, b) in pairs if a != b), min(len(one), len(two)))


def _best_fit(units: Sequence[_Unit], max_nodes: int, order: Sequence[int]) -> list[Pack]:
    packs: list[tuple[_Builder, list[int]]] = []
    for place in order:
        unit = units[place]
        best, score = None, (-1, -1)
        for builder, places in packs[-_OPEN_PACKS:]:
            shared, nodes = builder.shared(unit.stem), len(builder.tokens)
            if nodes + unit.nodes - shared <= max_nodes and (shared, nodes) > score:
                best, score = (builder, places), (shared, nodes)
        if best is None:
            best = (_Builder(), [])
            packs.append(best)
        for sequence in unit.sequences:
            best[0].add(sequence)
        best[1].append(place)
    return [Pack(sorted(places), len(builder.tokens)) for builder, places in packs]
