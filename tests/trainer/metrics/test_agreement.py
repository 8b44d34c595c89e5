"""Agreement coefficients compared with published numbers and hand-worked tables, and the degenerate cases."""

import gzip
import json

import krippendorff
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.shared import SHARED, needs_shared
from trainer.metrics.agreement import (
    RatingProblem,
    UnitRating,
    _alpha_draws,
    ac1,
    alpha,
    cohen,
    cohen_pairs,
    counted,
    fleiss,
    parse_rating,
    percent,
    report,
    tabulate,
)

# Krippendorff (2011): four observers, twelve units, * is missing
FOUR_BY_TWELVE = [
    "1 2 3 3 2 1 4 1 2 * * *",
    "1 2 3 3 2 2 4 1 2 5 * 3",
    "* 3 3 3 2 3 4 2 2 5 1 *",
    "1 2 3 3 2 4 4 1 2 5 1 *",
]


def ratings(rows: list[str]) -> list[UnitRating]:
    return [
        UnitRating(str(unit), str(rater), float(value))
        for rater, row in enumerate(rows)
        for unit, value in enumerate(row.split())
        if value != "*"
    ]


@pytest.mark.parametrize(
    ("level", "published"), [("nominal", 0.743), ("ordinal", 0.815), ("interval", 0.849), ("ratio", 0.797)]
)
def test_alpha_is_krippendorffs_published_value(level, published) -> None:
    found = alpha(tabulate(ratings(FOUR_BY_TWELVE)), level)
    assert round(found.value, 3) == published
    assert found.n == 11  # unit 12 has one rating
    assert found.low < published <= found.high


def test_a_few_units_that_all_agree_are_no_certainty() -> None:
    table = tabulate(ratings(["1 1 2", "1 1 2"]))
    share = percent(table)
    assert share.value == 1 and share.high == 1
    assert share.low == pytest.approx(0.4385, abs=1e-4)  # Wilson's interval of 3 of 3
    for found in (fleiss(table), ac1(table), alpha(table, "nominal"), cohen([(1, 1), (1, 1), (2, 2)])):
        assert (found.value, found.low, found.high) == (1, None, None)
        assert found.interval == "the same in every resample, so its certainty is not known"


def test_fleiss_and_ac1_are_gwets_published_values_for_the_same_table() -> None:
    table = tabulate(ratings(FOUR_BY_TWELVE))
    assert fleiss(table).value == pytest.approx(0.76117, abs=1e-5)  # Gwet (2014)
    assert ac1(table).value == pytest.approx(0.77544, abs=1e-5)
    assert percent(table).value == pytest.approx(9 / 11)  # per unit: eight 1, then 1/2, 0, 1/2 ... sums to 9


def test_cohen_by_hand() -> None:
    # 20 yes/yes, 5 yes/no, 10 no/yes, 15 no/no: p_o = 0.7, p_e = 0.5, kappa = 0.4
    pairs = [("y", "y")] * 20 + [("y", "n")] * 5 + [("n", "y")] * 10 + [("n", "n")] * 15
    table = tabulate(
        UnitRating(str(i), rater, v) for i, pair in enumerate(pairs) for rater, v in zip("ab", pair, strict=True)
    )
    [found] = cohen_pairs(table)
    assert found["raters"] == ["a", "b"]
    assert found["value"] == pytest.approx(0.4)
    assert found["n"] == 50


def test_one_value_throughout_is_undefined_and_says_why() -> None:
    table = tabulate(ratings(["1 1 1", "1 1 1"]))
    for coefficient in (fleiss(table), ac1(table), alpha(table, "nominal"), cohen([(1, 1), (1, 1)])):
        assert "one" in coefficient.undefined
        assert coefficient.value is None
    assert percent(table).value == 1


def test_ratings_as_arrays_make_the_same_table() -> None:
    given = [(7, "a", "x"), (7, "b", "z"), (9, "a", "z"), (9, "b", "z"), (2**40, "b", "x")]
    table = tabulate(UnitRating(str(unit), rater, value) for unit, rater, value in given)
    values = ["w", "x", "y", "z"]  # w and y occur only elsewhere, so they are not categories here
    found = counted([unit for unit, _, _ in given], [values.index(value) for _, _, value in given], values)
    assert found.values == table.values == ("x", "z")
    assert found.counts_UV.tolist() == table.counts_UV.tolist()
    assert ac1(found) == ac1(table) and alpha(found, "nominal") == alpha(table, "nominal")
    assert not len(counted([], [], []).counts_UV)


def test_units_with_one_rating_agree_with_nothing() -> None:
    table = tabulate(ratings(["1 2 *", "* * 1"]))
    assert percent(table).undefined
    assert alpha(table, "nominal").undefined
    assert list(cohen_pairs(table)) == []


def test_raters_who_share_no_unit_are_said_to_have_no_kappa() -> None:
    """a and b share only unit 1. c shares no unit."""
    table = tabulate(ratings(["1 2 *", "1 * *", "* * 1"]))
    found = {tuple(pair["raters"]): pair.get("undefined", "") for pair in report(table, "nominal")["cohen"]}
    assert list(found) == [("0", "1"), ("0", "2"), ("1", "2")]
    assert found["0", "2"] == found["1", "2"] == "the two raters share no unit"
    assert report(table, "nominal")["raters_apart"] == 2


def test_a_crowd_that_hardly_meets_is_counted_and_not_listed() -> None:
    table = tabulate(UnitRating(str(n), str(n), 1.0) for n in range(50))
    assert report(table, "nominal")["cohen"] == []
    assert report(table, "nominal")["raters_apart"] == 50 * 49 / 2


@pytest.mark.parametrize("unit", [1e-300, 1e300])
@pytest.mark.parametrize("level", ["ordinal", "interval", "ratio"])
def test_alpha_does_not_depend_on_the_unit_of_the_values(level, unit) -> None:
    rows = ratings(FOUR_BY_TWELVE)
    expected = alpha(tabulate(rows), level)
    found = alpha(tabulate(UnitRating(r.unit, r.rater, r.value * unit) for r in rows), level)
    assert (found.value, found.low, found.high) == pytest.approx((expected.value, expected.low, expected.high))


@pytest.mark.parametrize("level", ["nominal", "interval"])
def test_whole_numbers_may_be_longer_than_a_float(level) -> None:
    row = {"unit": 1, "rater": 1, "value": 10**400}
    if level == "nominal":
        assert parse_rating(row, level).value == 10**400
        assert parse_rating({**row, "value": 2**70}, level) != parse_rating({**row, "value": 2**70 + 1}, level)
    else:
        with pytest.raises(RatingProblem, match="'value': expected a finite number, found 1000"):
            parse_rating(row, level)


def test_a_rater_cannot_rate_a_unit_twice() -> None:
    with pytest.raises(RatingProblem, match="'u' twice"):
        tabulate([UnitRating("u", "r", 1.0), UnitRating("u", "r", 2.0)])


@pytest.mark.parametrize("value", ["high", True, float("nan"), [1]])
def test_ordinal_values_must_be_finite_numbers(value) -> None:
    with pytest.raises(RatingProblem, match="value"):
        parse_rating({"unit": 1, "rater": 1, "value": value}, "ordinal")


def test_null_is_a_missing_rating() -> None:
    assert parse_rating({"unit": 1, "rater": 1, "value": None}, "nominal") is None


@given(
    st.lists(st.lists(st.integers(0, 3), min_size=3, max_size=3), min_size=2, max_size=12),
    st.sampled_from(["nominal", "ordinal", "interval", "ratio"]),
)
def test_bootstrap_of_alpha_computes_what_the_library_computes(rows, level) -> None:
    """If every unit is drawn once, the resampling formula must give the library's alpha."""
    counts = np.array([[row.count(v) for v in range(4)] for row in rows], dtype=float)
    counts = counts[:, counts.sum(0) > 0]
    if counts.shape[1] < 2:
        return
    domain = np.arange(counts.shape[1], dtype=float)
    expected = krippendorff.alpha(value_counts=counts, value_domain=domain, level_of_measurement=level)
    [found] = _alpha_draws(counts, np.ones((1, len(counts))), domain, level)
    assert found == pytest.approx(expected)


@given(st.permutations(range(12)))
def test_the_order_of_units_changes_no_value(order) -> None:
    rows = [" ".join(row.split()[i] for i in order) for row in FOUR_BY_TWELVE]
    assert alpha(tabulate(ratings(rows)), "ordinal").value == pytest.approx(0.8153875)


def graded(tasks: int, together: int, seed: int = 5) -> list[tuple[int, int, int, int]]:
    """(task, criterion, rater, value) of two raters. Within a task they agree on all criteria or on few, as people do who understand a text
    alike or not."""
    generator = np.random.default_rng(seed)
    found = []
    for task in range(tasks):
        agreeing = generator.random() < 0.6
        for criterion in range(together):
            value = int(generator.random() < 0.5)
            other = value if generator.random() < (0.95 if agreeing else 0.3) else 1 - value
            found += [(task, criterion, 0, value), (task, criterion, 1, other)]
    return found


def grouped(rows: list[tuple[int, int, int, int]]):
    units = [f"{task}:{criterion}" for task, criterion, _, _ in rows]
    given = [UnitRating(unit, str(rater), float(value)) for unit, (_, _, rater, value) in zip(units, rows, strict=True)]
    return tabulate(given, lambda unit: unit.partition(":")[0])


def drawn_by_hand(rows: list[tuple[int, int, int, int]], coefficient) -> tuple[float, float]:
    """The interval by drawing whole tasks, each sample as a table of its own."""
    by_task: dict[int, list[tuple[int, int, int, int]]] = {}
    for row in rows:
        by_task.setdefault(row[0], []).append(row)
    generator = np.random.default_rng(1)
    values = []
    for _ in range(400):
        drawn = generator.integers(len(by_task), size=len(by_task))
        given = [
            UnitRating(f"{place} {criterion}", str(rater), float(value))
            for place, task in enumerate(drawn.tolist())
            for _, criterion, rater, value in by_task[task]
        ]
        values.append(coefficient(tabulate(given)).value)
    low, high = np.percentile(values, [2.5, 97.5])
    return float(low), float(high)


@pytest.mark.parametrize("coefficient", [percent, fleiss, ac1, lambda table: alpha(table, "nominal")])
def test_criteria_of_one_task_are_drawn_together(coefficient) -> None:
    rows = graded(tasks=40, together=12)
    found = coefficient(grouped(rows))
    low, high = drawn_by_hand(rows, coefficient)
    assert found.n == 480
    assert (found.low, found.high) == (pytest.approx(low, abs=0.03), pytest.approx(high, abs=0.03))
    alone = coefficient(tabulate(UnitRating(f"{t}:{c}", str(r), float(v)) for t, c, r, v in rows))
    assert alone.value == found.value
    assert found.high - found.low > 1.5 * (alone.high - alone.low), "480 criteria are not 480 independent cases"


def test_groups_of_one_unit_change_nothing() -> None:
    given = ratings(FOUR_BY_TWELVE)
    assert report(tabulate(given, lambda unit: unit), "ordinal") == report(tabulate(given), "ordinal")


def test_groups_that_all_agree_count_once_each() -> None:
    same = [(task, criterion, rater, 1) for task in range(4) for criterion in range(25) for rater in (0, 1)]
    found = percent(grouped([*same, (4, 0, 0, 0), (4, 0, 1, 0)]))
    assert (found.value, found.n) == (1.0, 101)
    assert (found.low, found.high) == (pytest.approx(5 / (5 + 1.959964**2)), 1.0)  # Wilson's for five of five


def test_a_single_task_has_no_interval() -> None:
    for found in (percent(grouped(graded(1, 30))), alpha(grouped(graded(1, 30)), "nominal")):
        assert found.value is not None and (found.low, found.interval) == (None, "one group has no spread")


def test_counted_ratings_have_the_groups_of_their_units() -> None:
    rows = graded(tasks=6, together=3)
    found = counted(
        [10 * task + criterion for task, criterion, _, _ in rows],
        [value for *_, value in rows],
        [0.0, 1.0],
        [task for task, *_ in rows],
    )
    assert report(found, "nominal") | {"cohen": [], "raters": 0} == report(grouped(rows), "nominal") | {
        "cohen": [],
        "raters": 0,
    }


@needs_shared
def test_pandalm_annotators_agree_as_published() -> None:
    rows = json.loads((SHARED / "pandalm/testset-v1.json").read_text())
    table = tabulate(
        UnitRating(str(row["idx"]), str(k), float(row[f"annotator{k}"])) for row in rows for k in (1, 2, 3)
    )
    found = {tuple(pair["raters"]): round(pair["value"], 4) for pair in cohen_pairs(table)}
    assert found == {("1", "2"): 0.8520, ("1", "3"): 0.8789, ("2", "3"): 0.8617}


@needs_shared
@pytest.mark.slow
def test_convincing_arguments_have_the_known_alpha() -> None:
    def judgments():
        with gzip.open(SHARED / "ukpconvarg1/pairs_with_reasons.jsonl.gz") as file:
            for line in file:
                pair = json.loads(line)
                for given_ in pair["annotations"]:
                    yield UnitRating(pair["topic"] + pair["id"], given_["worker"], given_["value"])

    found = alpha(tabulate(judgments()), "nominal")
    assert round(found.value, 4) == 0.2668
    assert found.n == 16_927
