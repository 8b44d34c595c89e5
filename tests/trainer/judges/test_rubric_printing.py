"""Demonstrations of rubrics: a written rubric is read as the same rubric."""

import re
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainer.contracts import Criterion
from trainer.contracts.rubric import Importance, Kind, RubricForm
from trainer.judges.rubric_forms import WrittenItem, read_rubric
from trainer.judges.rubric_printing import Unwritable, items_of, write_rubric

FORMS: tuple[RubricForm, ...] = get_args(RubricForm)
WORDS = st.lists(st.text("abcXYZ09äé.,'-", min_size=1, max_size=8), min_size=1, max_size=6).map(" ".join)
ANY = st.text(min_size=1, max_size=40).filter(lambda text: text.strip() != "")
POINTS = st.integers(-20, 20).filter(bool).map(float) | st.floats(0.25, 10).map(lambda value: round(value, 2))


def criteria(words: st.SearchStrategy[str]) -> st.SearchStrategy[list[Criterion]]:
    def made(rows: list[tuple[Any, ...]]) -> list[Criterion]:
        return [
            Criterion(id=f"c{n}", text=text, points=points, kind=kind, importance=importance)
            for n, (text, points, kind, importance) in enumerate(rows)
        ]

    kinds, importances = st.sampled_from(get_args(Kind)), st.sampled_from(get_args(Importance))
    return st.lists(st.tuples(words, POINTS, kinds, importances), min_size=1, max_size=6).map(made)


@pytest.mark.parametrize("form", FORMS)
@given(data=st.data())
def test_what_is_written_of_criteria_is_read_back_to_the_last_item(form: RubricForm, data: st.DataObject) -> None:
    items = items_of(data.draw(criteria(WORDS)), form)
    try:
        text = write_rubric(items, form)
    except Unwritable as why:
        assert re.search("sum|above 0|pitfalls only", str(why)), (
            "plain words are always writable, a rubric without a merit is not"
        )
        return
    read = read_rubric(text, form)
    assert read.ok and read.items == items and read.criteria


@pytest.mark.parametrize("form", FORMS)
@given(data=st.data())
def test_whatever_the_words_it_is_read_back_or_refused(form: RubricForm, data: st.DataObject) -> None:
    found = st.builds(
        WrittenItem,
        ANY,
        title=st.just("") | ANY,
        points=st.none() | POINTS,
        kind=st.sampled_from(get_args(Kind)),
        importance=st.sampled_from(get_args(Importance)),
    )
    for items in (data.draw(st.lists(found, min_size=0, max_size=4)), items_of(data.draw(criteria(ANY)), form)):
        try:
            text = write_rubric(items, form)
        except Unwritable:
            continue
        assert read_rubric(text, form).ok and read_rubric(text, form).items == tuple(items)


HUMAN = [
    Criterion(id="a", text="Names the\nsource", points=7, kind="hard", importance="essential"),
    Criterion(id="b", text="The response is short", points=1, importance="optional"),
    Criterion(id="c", text="Insults the reader", points=-3, importance="pitfall"),
]


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        (
            "rubric_arm",
            [("The response meets this: Names the source", None), ("The response is short", None)]
            + [("The response does not do this: Insults the reader", None)],
        ),
        ("mams", [("Names the source", 5.0), ("The response is short", 1.0), ("Insults the reader", -2.0)]),
        ("openrubrics", [("Names the source", None), ("The response is short", None), ("Insults the reader", None)]),
        ("touchstone", [("Names the source", 7.0), ("The response is short", 1.0), ("Insults the reader", -3.0)]),
    ],
)
def test_peoples_criteria_in_each_form(form: RubricForm, expected: list[tuple[str, float | None]]) -> None:
    read = read_rubric(write_rubric(items_of(HUMAN, form), form), form)
    assert [(item.text, item.points) for item in read.items] == expected


def test_what_a_form_cannot_say_is_refused_with_the_reason() -> None:
    only_pitfall = [HUMAN[2]]
    shapes: list[tuple[RubricForm, str]] = [
        ("mams", "sum"),
        ("openrubrics", "pitfalls only"),
        ("touchstone", "above 0"),
    ]
    for form, said in shapes:
        with pytest.raises(Unwritable, match=said):
            write_rubric(items_of(only_pitfall, form), form)
    assert write_rubric(items_of(only_pitfall, "rubric_arm"), "rubric_arm"), "there the absence of a flaw is a merit"
    with pytest.raises(Unwritable, match="no place"):
        write_rubric([WrittenItem("The response is kind", points=2.0)], "rubric_arm")
    with pytest.raises(Unwritable, match="no criterion"):
        write_rubric([], "rubric_arm")
