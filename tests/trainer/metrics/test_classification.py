"""Confusion matrices by hand, in extreme cases, and against scikit-learn's definition."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainer.metrics.classification import accuracy, by_criterion, confusion, f1, kappa, macro, precision, recall

LABELS = st.lists(st.tuples(st.integers(0, 2), st.sampled_from([0, 1, 2, None])), min_size=1, max_size=20)


def test_by_hand() -> None:
    # met: 3 right, 1 missed, 1 missing; not met: 2 right, 2 called met; one without a label
    labels = [True] * 5 + [False] * 4 + [None]
    said = [True, True, True, False, None, False, False, True, True, True]
    table = confusion(labels, said, (False, True))
    assert (table.n, table.missing, table.unlabelled) == (9, 1, 1)
    assert table.cells_VV == ((2, 2), (1, 3))
    assert accuracy(table).value == pytest.approx(5 / 9)
    assert precision(table, True).value == pytest.approx(3 / 5)
    assert recall(table, True).value == pytest.approx(3 / 5)  # the missing one is not found
    assert f1(table, True).value == pytest.approx(3 / 5)
    # over the 8 judged: p_o = 5/8, p_e = 4/8 * 3/8 + 4/8 * 5/8 = 1/2
    assert kappa(table).value == pytest.approx((5 / 8 - 1 / 2) / (1 - 1 / 2))
    assert kappa(table).missing == 1


def test_what_never_occurs_is_undefined_and_says_so() -> None:
    table = confusion([False, False], [False, False], (False, True))
    assert precision(table, True).undefined == "nothing was judged True"
    assert recall(table, True).undefined == "nothing is labelled True"
    assert f1(table, True).value is None
    assert accuracy(table).value == 1
    assert "0/0" in kappa(table).undefined


def test_all_missing_and_no_labels() -> None:
    table = confusion([True, False], [None, None], (False, True))
    assert accuracy(table).value == 0 and accuracy(table).missing == 2
    assert kappa(table).undefined == "no case has both a label and a verdict"
    nothing = confusion([None], [True], (False, True))
    assert accuracy(nothing).undefined == macro(nothing)["f1"].undefined == "no case has a label"


def test_values_that_are_not_listed_are_refused() -> None:
    with pytest.raises(ValueError, match="'maybe'"):
        confusion(["yes"], ["maybe"], ("yes", "no"))
    with pytest.raises(ValueError, match="2 labels but 1"):
        confusion([1, 1], [1], (1,))


@given(LABELS)
def test_macro_means_are_those_of_each_value(rows) -> None:
    labels, said = [label for label, _ in rows], [verdict for _, verdict in rows]
    found = macro(confusion(labels, said, (0, 1, 2)))
    used = {value for value in [*labels, *said] if value is not None}
    each = []
    for value in used:
        right = sum(a == b == value for a, b in rows)
        p = right / said.count(value) if said.count(value) else 0.0
        r = right / labels.count(value) if labels.count(value) else 0.0
        each.append((p, r, 2 * p * r / (p + r) if p + r else 0.0))
    for name, expected in zip(("precision", "recall", "f1"), zip(*each, strict=True), strict=True):
        assert found[name].value == pytest.approx(sum(expected) / len(used))


@given(LABELS, st.permutations([0, 1, 2]))
def test_the_names_of_values_change_nothing(rows, order) -> None:
    def renamed(value: int | None) -> int | None:
        return None if value is None else order[value]

    before = macro(confusion([a for a, _ in rows], [b for _, b in rows], (0, 1, 2)))
    after = macro(confusion([renamed(a) for a, _ in rows], [renamed(b) for _, b in rows], (0, 1, 2)))
    assert {k: e.value for k, e in after.items()} == pytest.approx({k: e.value for k, e in before.items()})


def test_each_criterion_has_its_own_table() -> None:
    found = by_criterion({"c1": [True, False], "c2": [True, None]}, {"c1": [True, True]})
    assert found["c1"]["cells"] == [[0, 1], [0, 1]]
    assert found["c1"]["precision"]["value"] == 0.5
    assert (found["c2"]["n"], found["c2"]["missing"], found["c2"]["unlabelled"]) == (1, 1, 1)
