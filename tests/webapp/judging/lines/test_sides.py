"""Verdicts in the forms in which files write them."""

import pytest

from webapp.judging.lines.sides import side


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        *[(text, -1) for text in ("A", "a", " A ", "first", "1", "A>B", "A >> B", "B<A", "[[A]]", "[[A>>B]]")],
        *[
            (text, -1)
            for text in ("A is better", "A much better", "a_slightly_better", "A wins", "Response A", "model_a")
        ],
        *[
            (text, 1)
            for text in ("b", "B", "second", "2", "B>A", "B>>A", "A < B", "[[B]]", "B much better", "output 2")
        ],
        *[(text, 0) for text in ("tie", "Tie.", "TIE", "equal", "same", "draw", "A=B", "A == B", "[[C]]", "[[A=B]]")],
        (None, None),
    ],
)
def test_verdicts_are_understood(text, expected) -> None:
    assert side(text) == expected


@pytest.mark.parametrize(
    "value", ["", " ", "both", "A>A", "null", "A or B", True, [1], {"a": 1}, 1, 2, 0, float("nan")]
)
def test_what_is_no_verdict_is_refused(value) -> None:
    with pytest.raises(ValueError, match="verdict"):
        side(value)


@pytest.mark.parametrize(("value", "expected"), [(-2, -1), (0, 0), (0.5, 1), (2, 1), ("A", -1)])
def test_where_a_scale_is_meant_numbers_count_by_their_sign(value, expected) -> None:
    assert side(value, numbers=True) == expected


@pytest.mark.parametrize("value", [True, float("nan"), [1]])
def test_what_is_no_number_is_no_verdict_on_a_scale_either(value) -> None:
    with pytest.raises(ValueError, match="verdict"):
        side(value, numbers=True)


def test_a_long_value_is_cut_in_the_message() -> None:
    with pytest.raises(ValueError, match=r"\.\.\.") as caught:
        side("x" * 10_000)
    assert len(str(caught.value)) < 150
