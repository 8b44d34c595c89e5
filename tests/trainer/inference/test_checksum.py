"""One number for all weights of a push."""

import torch

from trainer.inference.checksum import Checksum, digest_of

WEIGHTS = {"a": torch.zeros(3), "b": torch.ones(2, dtype=torch.bfloat16)}


def test_a_single_bit_changes_the_digest() -> None:
    assert digest_of(WEIGHTS) == digest_of(dict(reversed(WEIGHTS.items())))
    for name, other in (("a", torch.tensor([0.0, 1e-45, 0.0])), ("a", torch.zeros(3, 1)), ("b", torch.ones(2))):
        assert digest_of(WEIGHTS | {name: other}) != digest_of(WEIGHTS)
    assert digest_of({"c": WEIGHTS["a"], "b": WEIGHTS["b"]}) != digest_of(WEIGHTS)


def test_both_zeros_are_one_weight() -> None:
    assert digest_of(WEIGHTS | {"a": torch.tensor([0.0, -0.0, 0.0])}) == digest_of(WEIGHTS)


def test_weights_are_added_as_they_pass() -> None:
    checksum = Checksum()
    assert dict(checksum.watching(WEIGHTS.items())).keys() == WEIGHTS.keys()
    assert checksum.hexdigest() == digest_of(WEIGHTS)
