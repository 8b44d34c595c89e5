"""One checksum for all weights of a push."""

from collections.abc import Callable

import pytest
import torch

from trainer.inference.checksum import Checksum, digest_of

Weights = dict[str, torch.Tensor]
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


def pushed() -> Weights:
    """Tensors that are summed in several pieces, alone and together, by one thread and by several threads."""
    draws = torch.Generator().manual_seed(0)
    small = {f"layer.{place}": torch.randn(40 + place, 32, generator=draws) for place in range(300)}
    large = {f"large.{place}": torch.randn(2_200_000, generator=draws) for place in range(4)}
    return small | large | {"half": torch.randn(1000, generator=draws).bfloat16()}


def torn(weights: Weights) -> None:
    weights["large.3"][1_500_000:] = 0.0


def late(weights: Weights) -> None:
    """The last layers still have the weights of the push before."""
    weights["layer.299"] -= 1e-3


def swapped(weights: Weights) -> None:
    weights["large.0"], weights["large.1"] = weights["large.1"], weights["large.0"]


def swapped_within(weights: Weights) -> None:
    weights["layer.7"][[0, 1]] = weights["layer.7"][[1, 0]]


def shifted(weights: Weights) -> None:
    """All values are there, but moved by one place."""
    weights["large.2"] = weights["large.2"].roll(1)


def cut_elsewhere(weights: Weights) -> None:
    """The bytes are in the same order, but the first tensor ends at another place."""
    both = torch.cat([weights["layer.0"].flatten(), weights["layer.1"].flatten()])
    weights["layer.0"], weights["layer.1"] = both[:1000], both[1000:]


def one_bit(weights: Weights) -> None:
    weights["large.3"].view(torch.int32)[-1] ^= 1


def sign(weights: Weights) -> None:
    weights["half"][500] *= -1


def rounded(weights: Weights) -> None:
    weights["layer.5"] = weights["layer.5"].bfloat16().float()


def lost(weights: Weights) -> None:
    del weights["layer.100"]


@pytest.mark.parametrize(
    "fault", [torn, late, swapped, swapped_within, shifted, cut_elsewhere, one_bit, sign, rounded, lost]
)
def test_a_push_that_did_not_arrive_as_it_left_is_found(fault: Callable[[Weights], None]) -> None:
    sent, held = pushed(), pushed()
    assert digest_of(sent) == digest_of(held)
    fault(held)
    assert digest_of(sent) != digest_of(held)


def test_the_number_of_threads_changes_no_checksum(monkeypatch: pytest.MonkeyPatch) -> None:
    found = set()
    for threads in (1, 2, 5):
        monkeypatch.setattr(torch, "get_num_threads", lambda threads=threads: threads)
        found.add(digest_of(pushed()))
        by_and_by = Checksum()
        for _ in by_and_by.watching(pushed().items()):
            pass
        found.add(by_and_by.hexdigest())
    assert len(found) == 1
