"""The counts of an example that recipes need, compared with counts by hand."""

import pytest

from trainer.contracts import COUNTS, Example, training_counts

ASKED = ({"role": "user", "content": "Name a colour."},)
ANSWERS = ({"id": "a", "text": "red"}, {"id": "b", "text": "7"}, {"id": "c", "text": "blue"})


def example(**fields) -> Example:
    return Example.model_validate({"key": "e", "prompt": ASKED, **fields})


def compared(*judgements) -> Example:
    """`("a", "b", -2)`: a is better by 2. A strength of None means that the rater could not tell."""
    preferences = [
        {"a": a, "b": b, "strength": strength, "verdict": "compared" if strength is not None else "cannot_assess"}
        for a, b, strength in judgements
    ]
    return example(responses=ANSWERS, preferences=preferences)


@pytest.mark.parametrize(
    ("judgements", "found"),
    [
        ([("a", "b", -2)], {"pairs": 1}),
        ([("a", "b", -2), ("b", "a", 1)], {"pairs": 1}),  # the same pair, with the same side preferred
        ([("a", "b", -3), ("a", "b", 1)], {"ties": 1}),  # one vote each: strength does not give a person more votes
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


def test_reasons_count_where_the_side_of_most_raters_gave_any():
    def given(*reasons: tuple[int, str]) -> int:
        preferences = [
            {"a": "a", "b": "b", "strength": strength, "reasons": [{"text": text}], "rater": f"r{place}"}
            for place, (strength, text) in enumerate(reasons)
        ]
        found = training_counts(example(responses=ANSWERS, preferences=preferences))
        assert found["pairs"] == 1
        return found["reasoned_pairs"]

    assert given((-2, "Is a colour.")) == 1
    assert given((-2, " ")) == 0, "without text"
    assert given((-2, " "), (-1, "\t"), (2, "Is short.")) == 0, "a reason for the other answer"


def test_rubrics_are_told_by_who_can_decide_them():
    verifier = {"name": "must_contain", "args": {"texts": ["red"]}}
    sure = {"id": "c1", "text": "Names red", "points": 1, "verifier": verifier}
    open_ = {"id": "c2", "text": "Is kind", "points": 1}
    assert training_counts(example(rubric={"criteria": [sure]})) == {
        "examples": 1,
        "rubrics": 1,
        "criteria": 1,
        "verified": 1,
        "verifiable": 1,
    }
    assert training_counts(example(rubric={"criteria": [open_]}))["judgeable"] == 1
    pitfall = {"id": "c3", "text": "Is rude", "points": -1}
    assert training_counts(example(rubric={"criteria": [sure, pitfall]}))["judgeable"] == 0, "nothing to earn there"
    found = training_counts(example(rubric={"criteria": [sure, open_]}))
    assert (found["verifiable"], found["judgeable"]) == (1, 1)
    assert (found["verified"], found["unjudged"], found["unjudged_criteria"], found["criteria"]) == (0, 1, 1, 2)


def test_texts_to_imitate_are_told_by_where_they_stand():
    turns = (*ASKED, {"role": "assistant", "content": "Red."}, *ASKED)
    asked_again = training_counts(example(prompt=turns, reference="Blue."))
    assert (asked_again["turns"], asked_again["references"], asked_again["responses"]) == (0, 1, 0)
    answered = training_counts(example(prompt=turns[:2], reference="Blue."))
    assert (answered["turns"], answered["references"]) == (1, 0)
    assert training_counts(example(responses=ANSWERS[:1]))["turns"] == 1


def test_an_answer_that_also_lost_was_not_chosen():
    assert training_counts(compared(("a", "b", -1), ("c", "a", -1)))["chosen"] == 1  # c
    assert training_counts(compared(("a", "b", -1), ("b", "c", -1), ("c", "a", -1)))["chosen"] == 0  # each loses one
    same = ({"id": "a", "text": "red"}, {"id": "b", "text": "red"})
    found = training_counts(example(responses=same, preferences=[{"a": "a", "b": "b", "strength": 2}]))
    assert (found["equal"], found["pairs"]) == (1, 0)


def test_answers_are_valued_where_rewards_are_stored_or_verifiers_decide_all():
    assert training_counts(example(responses=ANSWERS, meta={"rewards": {"a": 1, "b": 0.5, "gone": 1}}))["valued"] == 1
    assert training_counts(example(responses=ANSWERS, meta={"rewards": {"a": 1, "b": True}}))["valued"] == 0
    verifier = {"name": "must_contain", "args": {"texts": ["red"]}}
    rubric = {"criteria": [{"id": "c1", "text": "Names red", "points": 1, "verifier": verifier}]}
    assert training_counts(example(responses=ANSWERS, rubric=rubric))["valued"] == 1
    assert training_counts(example(responses=ANSWERS[:1], rubric=rubric))["valued"] == 0


def test_every_count_has_a_name_in_words():
    everything = compared(("a", "b", 1), ("b", "c", 0), ("a", "c", None))
    assert set(training_counts(everything)) <= set(COUNTS)
