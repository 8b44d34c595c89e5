"""The RubricBench protocol by hand, in undefined cases, and its invariances."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainer.metrics.rubricbench import (
    JudgedPair,
    accuracy,
    alignment,
    alignments,
    diagnose,
    rubric_gap,
    scaling,
    subsample,
)

A, TIE, B = -1, 0, 1
MATCHES = st.tuples(st.integers(0, 5), st.integers(0, 5)).flatmap(
    lambda size: st.tuples(
        st.just(size),
        st.lists(st.tuples(st.integers(0, max(0, size[0] - 1)), st.integers(0, max(0, size[1] - 1)))).map(
            lambda pairs: pairs if all(size) else []
        ),
    )
)


def judged(*rows: tuple[str, int | None], label: int = A) -> list[JudgedPair]:
    return [JudgedPair(f"{domain}{at}", domain, label, verdict) for at, (domain, verdict) in enumerate(rows)]


def test_ties_and_invalid_verdicts_are_wrong_and_counted() -> None:
    found = accuracy(judged(("code", A), ("code", A), ("code", TIE), ("chat", None), ("chat", A), ("chat", B)))
    assert (found.overall.value, found.overall.n, found.overall.missing) == (0.5, 6, 1)
    assert (found.ties, found.invalid) == (1, 1)
    assert found.domains["code"].value == pytest.approx(2 / 3) and found.domains["chat"].missing == 1


def test_every_domain_weighs_the_same_in_their_mean() -> None:
    found = accuracy(judged(*[("big", A)] * 8, ("small", B), ("small", B)))
    assert found.overall.value == 0.8
    assert found.mean_of_domains.value == 0.5
    assert found.mean_of_domains.n == 10


def test_nothing_judged_is_undefined() -> None:
    found = accuracy([])
    assert found.overall.undefined and found.mean_of_domains.undefined and found.domains == {}


def test_a_pair_judged_twice_is_refused() -> None:
    with pytest.raises(ValueError, match="'k' is judged twice"):
        accuracy([JudgedPair("k", "d", A, A), JudgedPair("k", "e", A, A)])


def test_the_rubric_gap_is_paired() -> None:
    own = [JudgedPair(str(i), "", A, A if i < 5 else None) for i in range(10)]
    human = [JudgedPair(str(i), "", A, A if i < 8 else B) for i in range(10)] + [JudgedPair("x", "", A, A)]
    found = rubric_gap(human, own)
    assert (found.value, found.n, found.missing) == (pytest.approx(0.3), 10, 1)
    assert found.low >= 0


def test_alignment_by_hand() -> None:
    # 4 generated, 3 references: item 0 matches two references, items 0 and 1 the same one, items 2 and 3 nothing
    found = alignment([(0, 0), (0, 1), (1, 1)], generated=4, reference=3)
    assert found.recall == pytest.approx(2 / 3)
    assert found.hallucination == found.precision == 0.5
    assert found.f1 == pytest.approx(2 * (2 / 3) * 0.5 / (2 / 3 + 0.5))


def test_no_generated_items_no_references_no_matches() -> None:
    none_generated = alignment([], 0, 3)
    assert (none_generated.recall, none_generated.hallucination, none_generated.f1) == (0.0, None, 0.0)
    no_reference = alignment([], 3, 0)
    assert (no_reference.recall, no_reference.hallucination, no_reference.f1) == (None, None, None)
    nothing_fits = alignment([], 2, 2)
    assert (nothing_fits.recall, nothing_fits.hallucination, nothing_fits.f1) == (0.0, 1.0, 0.0)
    with pytest.raises(ValueError, match="outside 1 generated"):
        alignment([(1, 0)], 1, 1)


def test_means_over_rubrics_count_what_is_undefined() -> None:
    found = alignments([alignment([(0, 0)], 1, 1), alignment([], 0, 2), alignment([], 2, 0), None])
    assert {name: (each.value, each.n, each.missing) for name, each in found.items()} == {
        "recall": (0.5, 2, 2),
        "precision": (1.0, 1, 3),
        "hallucination": (0.0, 1, 3),
        "f1": (0.5, 2, 2),
    }
    assert alignments([None])["f1"].undefined == "no rubric has reference items"


@given(MATCHES, st.randoms(use_true_random=False))
def test_items_may_come_in_any_order_and_more_matches_never_hurt(drawn, random) -> None:
    (generated, reference), pairs = drawn
    ks, js = random.sample(range(generated), generated), random.sample(range(reference), reference)
    found = alignment(pairs, generated, reference)
    assert alignment([(ks[k], js[j]) for k, j in pairs], generated, reference) == found
    if pairs:
        fewer = alignment(pairs[1:], generated, reference)
        assert found.recall >= fewer.recall and found.hallucination <= fewer.hallucination and found.f1 >= fewer.f1


def test_diagnosis_by_hand() -> None:
    found = diagnose([1, 2, 5, 5, None], [5, 4, 1, 2, 3])
    assert (found.necessity.value, found.rigidity.value) == (13 / 4, 3)
    assert (found.unnecessary.value, found.rigid.value, found.burdensome.value) == (0.25, 0.25, 0.5)
    # deviations N -2.25 -1.25 1.75 1.75, R 2 1 -2 -1: -11 / sqrt(12.75 * 10)
    assert found.correlation.value == pytest.approx(-11 / (12.75 * 10) ** 0.5)
    assert found.correlation.n == 4 and found.correlation.missing == 1


def test_diagnosis_without_spread_or_ratings() -> None:
    assert "same value" in diagnose([3, 3], [1, 5]).correlation.undefined
    nothing = diagnose([None], [5])
    assert nothing.necessity.undefined == "no item has both ratings" and nothing.correlation.value is None
    with pytest.raises(ValueError, match="rating 6"):
        diagnose([6], [1])
    with pytest.raises(ValueError, match="1 ratings of necessity but 2"):
        diagnose([1], [1, 2])


def test_items_of_one_rubric_are_drawn_together() -> None:
    alone = diagnose([1, 5] * 10, [1, 5] * 10)
    together = diagnose([1, 5] * 10, [1, 5] * 10, rubrics_K=[i // 10 for i in range(20)])
    assert together.necessity.high - together.necessity.low < alone.necessity.high - alone.necessity.low
    # a second item with the same ratings in every rubric adds nothing: the interval is that of the ten rubrics
    necessity, rigidity = [1, 2, 2, 3, 4, 4, 5, 5, 3, 1], [5, 5, 4, 4, 2, 1, 1, 3, 2, 3]
    once, twice = diagnose(necessity, rigidity), diagnose(necessity * 2, rigidity * 2, [*range(10), *range(10)])
    found, expected = twice.correlation, once.correlation
    assert (found.value, found.low, found.high) == pytest.approx((expected.value, expected.low, expected.high))


def test_subsamples_are_seeded_nested_and_in_order() -> None:
    items = list("abcdefgh")
    draws = {size: subsample(items, size, seed=1, key="k") for size in range(1, 9)}
    assert draws[8] == items and subsample(items, 9, seed=1, key="k") is None
    for size in range(1, 8):
        assert set(draws[size]) < set(draws[size + 1]) and draws[size] == sorted(draws[size])
    assert draws[4] == subsample(items, 4, seed=1, key="k")
    others = {tuple(subsample(items, 4, seed=1, key=str(key))) for key in range(20)}
    assert len(others) > 10


def test_a_curve_compares_the_same_pairs_at_every_size() -> None:
    two = [JudgedPair("a", "", A, A), JudgedPair("b", "", A, None)]
    four = [JudgedPair("a", "", A, A), JudgedPair("b", "", A, A), JudgedPair("c", "", A, B)]
    curve = scaling({4: four, 2: two})
    assert [(size, each.value, each.n, each.missing) for size, each in curve.items()] == [
        (2, 0.5, 2, 2),  # b has no verdict, and c has none at this size
        (4, 1.0, 2, 1),
    ]
    assert scaling({}) == {}
    assert scaling({2: two, 4: []})[2].undefined
