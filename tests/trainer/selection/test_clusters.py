"""Near duplicates by meaning: which of them stays. Nothing is removed only because of a chain, and all N are told apart."""

import numpy as np
import pytest

from trainer.selection import near_duplicates


def at(*degrees: float) -> np.ndarray:
    """Unit vectors in the plane."""
    angles = np.deg2rad(degrees)
    return np.stack([np.cos(angles), np.sin(angles)], axis=1)


def test_of_two_alike_the_one_that_is_less_like_the_cluster_stays() -> None:
    """The centre is at 31.25 degrees. 5 degrees is farther from it than 10. Of the two at 55, the first stays."""
    assert near_duplicates(at(5, 10, 55, 55), np.cos(np.deg2rad(6))).tolist() == [0, 0, 2, 2]


def test_nothing_goes_by_a_chain_of_likenesses() -> None:
    """From the outside inwards, each is 5 degrees from the next. 0 and 20 remove 5 and 15, and 10 stays."""
    stays = near_duplicates(at(0, 5, 10, 15, 20), np.cos(np.deg2rad(5.5)))
    assert stays.tolist() == [0, 0, 2, 4, 4]


def test_what_is_alike_is_found_in_many_clusters_and_what_is_not_stays() -> None:
    draw = np.random.default_rng(1)
    base = draw.standard_normal((400, 24)).astype(np.float32)
    copies = base[:100] + draw.standard_normal((100, 24)).astype(np.float32) * 0.01
    told: list[int] = []
    stays = near_duplicates(np.concatenate([base, copies]), 0.99, size=50, tell=told.append)
    gone = np.flatnonzero(stays != np.arange(500))
    pairs = {tuple(sorted((int(place), int(stays[place])))) for place in gone}
    assert len(pairs) >= 95 and pairs <= {(place, 400 + place) for place in range(100)}
    assert told[-1] == 500
    assert (near_duplicates(np.concatenate([base, copies]), 0.99, size=50) == stays).all()


def test_empty_and_zero() -> None:
    assert near_duplicates(np.zeros((0, 3), np.float32), 0.9).tolist() == []
    assert near_duplicates(at(3), 0.9).tolist() == [0]
    with pytest.raises(ValueError, match="zero vector"):
        near_duplicates(np.zeros((1, 3)), 0.9)
