"""Pairs of answers with their votes: orders, ties, undecided raters, ratings."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainer.contracts import Example, Message, Preference, Response
from trainer.contracts.pairs import compared, labelled_pairs


def example(*preferences: Preference, **more: Any) -> Example:
    responses = tuple(Response(id=name, text=name) for name in "abc")
    prompt = (Message(role="user", content="?"),)
    return Example(key="k", prompt=prompt, responses=responses, preferences=preferences, **more)


def test_votes_of_one_pair_come_together_whichever_way_round_they_were_given() -> None:
    (pair,) = labelled_pairs(
        example(
            Preference(a="a", b="b", strength=-3),
            Preference(a="b", b="a", strength=1),
            Preference(a="a", b="b", strength=2),
            Preference(a="b", b="a", strength=0),
            Preference(a="a", b="b", strength=None, verdict="cannot_assess"),
            Preference(a="a", b="b", strength=-2, verdict="both_bad"),
        )
    )
    assert (pair.first, pair.second) == ("a", "b")
    assert (pair.for_first, pair.for_second, pair.ties, pair.undecided) == ((3.0, 1.0), (2.0,), 1, 2)
    assert pair.votes == 4 and pair.share == 2.5 / 4 and pair.decided


def test_as_many_votes_for_the_one_as_for_the_other_are_no_decision() -> None:
    (pair,) = labelled_pairs(example(Preference(a="a", b="b", strength=-3), Preference(a="a", b="b", strength=1)))
    assert not pair.decided and pair.share == 0.5


def test_a_pair_that_nobody_could_decide_has_no_votes() -> None:
    (pair,) = labelled_pairs(example(Preference(a="a", b="b", strength=None, verdict="cannot_assess")))
    assert pair.votes == 0 and not pair.decided


def test_ratings_of_one_rater_on_the_named_scale_are_comparisons() -> None:
    ratings = [
        {"response": "a", "scale": "overall", "rater": "x", "score": 2},
        {"response": "c", "scale": "overall", "rater": "x", "score": 5},
        {"response": "b", "scale": "overall", "rater": "y", "score": 9},
        {"response": "b", "scale": "tone", "rater": "x", "score": 1},
        {"response": "gone", "scale": "overall", "rater": "x", "score": 1},
        {"response": "b", "scale": "overall", "rater": "x", "score": "N/A"},
    ]
    rated = example(meta={"ratings": ratings})
    assert labelled_pairs(rated) == []
    (pair,) = labelled_pairs(rated, "overall")
    assert (pair.first, pair.second, pair.for_first, pair.for_second) == ("a", "c", (), (2.0,))


def test_ratings_out_of_a_published_project_are_comparisons_too() -> None:
    tasks = [
        {"subject": {"response": side}, "rater": "p1", "ratings": {"overall": score, "tone": None}}
        for side, score in (("a", 4), ("b", 4), ("c", 1))
    ]
    pairs = labelled_pairs(example(meta={"annotation": {"7": {"tasks": tasks}, "8": "odd"}}), "overall")
    assert [(pair.first, pair.second, pair.share) for pair in pairs] == [("a", "b", 0.5), ("a", "c", 1), ("b", "c", 1)]


@given(st.lists(st.tuples(st.booleans(), st.integers(-3, 3)), min_size=1))
def test_turning_every_comparison_round_changes_nothing(votes: list[tuple[bool, int]]) -> None:
    straight = [Preference(a="a", b="b", strength=strength) for _, strength in votes]
    turned = [
        Preference(a="b", b="a", strength=-strength) if turn else Preference(a="a", b="b", strength=strength)
        for turn, strength in votes
    ]
    assert labelled_pairs(example(*turned)) == labelled_pairs(example(*straight))


def test_two_scores_say_how_sure_they_are_and_whether_they_are_right() -> None:
    right = compared(2.0, 0.5)
    assert right == {"margin": 1.5, "confidence": pytest.approx(0.8175744761936437), "right": 1.0}
    wrong = compared(0.5, 2.0)
    assert wrong == {"margin": -1.5, "confidence": right["confidence"], "right": 0.0}
    assert compared(1.0, 1.0) == {"margin": 0.0, "confidence": 0.5}, "a draw is neither"
    assert compared(0.0, 2000.0)["confidence"] == 1.0
