"""What of an example recipes count, by hand."""

import pytest

from trainer.contracts import COUNTS, Example, training_counts

ASKED = ({"role": "user", "content": "Name a colour."},)
ANSWERS = ({"id": "a", "text": "red"}, {"id": "b", "text": "7"}, {"id": "c", "text": "blue"})


def example(**fields) -> Example:
    return Example.model_validate({"key": "e", "prompt": ASKED, **fields})


def compared(*judgements) -> Example:
    """`("a", "b", -2)`: a is better by 2; None for a strength: nobody could tell."""
    preferences = [
        {"a": a, "b": b, "strength": strength, "verdict": "compared" if strength is not None else "cannot_assess"}
        for a, b, strength in judgements
    ]
    return example(responses=ANSWERS, preferences=preferences)


@pytest.mark.parametrize(
    ("judgements", "found"),
    [
        ([("a", "b", -2)], {"pairs": 1}),
        ([("a", "b", -2), ("b", "a", 1)], {"pairs": 1}),  # the same pair, the same side
        ([("a", "b", -3), ("a", "b", 1)], {"ties": 1}),  # one vote each: strength does not outvote a person
        ([("a", "b", 0)], {"ties": 1}),
        ([("a", "b", None)], {"undecided": 1}),
        ([("a", "b", None), ("a", "b", 1)], {"pairs": 1}),
        ([("a", "b", 1), ("b", "c", 0), ("a", "c", None)], {"pairs": 1, "ties": 1, "undecided": 1}),
    ],
)
def test_a_pair_counts_once_by_the_side_of_most_raters(judgements, found):
    counts = training_counts(compared(*judgements))
    assert {key: counts[key] for key in ("pairs", "ties", "undecided") if counts[key]} == found
    assert counts["preferences"] == counts["responses"] == 1


def test_rubrics_are_told_by_who_can_decide_them():
    verifier = {"name": "must_contain", "args": {"texts": ["red"]}}
    sure = {"id": "c1", "text": "Names red", "points": 1, "verifier": verifier}
    open_ = {"id": "c2", "text": "Is kind", "points": 1}
    assert training_counts(example(rubric={"criteria": [sure]})) == {
        "examples": 1,
        "rubrics": 1,
        "criteria": 1,
        "verified": 1,
    }
    found = training_counts(example(rubric={"criteria": [sure, open_]}))
    assert (found["verified"], found["unjudged"], found["unjudged_criteria"], found["criteria"]) == (0, 1, 1, 2)


def test_texts_to_imitate_are_told_by_where_they_stand():
    turns = (*ASKED, {"role": "assistant", "content": "Red."}, *ASKED)
    found = training_counts(example(prompt=turns, reference="Blue."))
    assert (found["turns"], found["references"], found["responses"]) == (1, 1, 0)


def test_every_count_has_a_name_in_words():
    everything = compared(("a", "b", 1), ("b", "c", 0), ("a", "c", None))
    assert set(training_counts(everything)) <= set(COUNTS)
