"""Best-worst scaling: its tasks, its pairs, and scores that were worked out by hand."""

from itertools import combinations
from math import log

import pytest

from webapp.annotation.kinds.best_worst import KIND, ordered, scores


def example(responses: int) -> dict:
    return {"responses": [{"id": f"r{n}", "text": f"text {n}"} for n in range(responses)]}


def chosen(best: str, worst: str) -> dict:
    return {"verdict": "chosen", "best": best, "worst": worst, "note": ""}


CANNOT = {"verdict": "cannot_assess", "best": None, "worst": None, "note": ""}


@pytest.mark.parametrize("responses, tasks", [(0, 0), (1, 0), (2, 1), (5, 1), (6, 6), (26, 26)])
def test_few_responses_are_one_task_and_many_a_ring_of_fours(responses, tasks):
    made = [subject["responses"] for subject in KIND.subjects(example(responses))]
    assert len(made) == tasks
    assert all(len(set(sides)) == len(sides) for sides in made)
    if tasks > 1:
        assert {side: sum(side in sides for sides in made) for side in made[0]} == dict.fromkeys(made[0], 4)


def test_among_seven_responses_every_two_meet_in_two_tasks():
    made = [subject["responses"] for subject in KIND.subjects(example(7))]
    met = [frozenset(pair) for sides in made for pair in combinations(sides, 2)]
    assert {met.count(pair) for pair in set(met)} == {2} and len(set(met)) == 21


def test_an_answer_orders_all_pairs_but_those_in_the_middle():
    assert ordered(chosen("a", "d"), "abcd") == [("a", "d"), ("a", "b"), ("a", "c"), ("b", "d"), ("c", "d")]
    assert ordered(CANNOT, "abcd") == []
    assert KIND.preferences(chosen("a", "b"), {"responses": ["a", "b"]}, {}, "x") == [
        {"a": "a", "b": "b", "strength": -2, "rater": "x"}
    ]


def test_counting_by_hand_and_no_strength_where_somebody_never_loses():
    subject = {"responses": ["a", "b", "c"]}
    found = scores([(subject, chosen("a", "c")), (subject, chosen("a", "b")), (subject, CANNOT)])
    assert {side: (row["shown"], row["counted"]) for side, row in found.items()} == {
        "a": (2, 1.0),
        "b": (2, -0.5),
        "c": (2, -0.5),
    }
    assert {row["strength"] for row in found.values()} == {None}
    assert found["a"]["why"] == "no finite strengths: a won or lost every comparison"
    assert scores([]) == scores([(subject, CANNOT)]) == {}


def test_the_strength_of_two_that_meet_is_the_log_odds():
    """a beats b in three of four: their scores differ by log 3, with mean 0."""
    subject = {"responses": ["a", "b"]}
    found = scores([(subject, chosen("a", "b"))] * 3 + [(subject, chosen("b", "a"))])
    assert found["a"]["strength"] == pytest.approx(log(3) / 2, abs=1e-4)
    assert found["b"]["strength"] == pytest.approx(-log(3) / 2, abs=1e-4)
    assert found["a"]["counted"] == 0.5


def test_two_more_steps_apart_are_further_apart():
    assert KIND.distance(chosen("a", "b"), chosen("a", "b")) == 0
    assert KIND.distance(chosen("a", "b"), chosen("a", "c")) == 0.5
    assert KIND.distance(chosen("a", "b"), chosen("b", "a")) == KIND.distance(CANNOT, chosen("a", "b")) == 1


def test_best_and_worst_each_need_more_than_half():
    three = [chosen("a", "b"), chosen("a", "c"), chosen("d", "c")]
    assert KIND.majority(three, ()) == {"verdict": "chosen", "best": "a", "worst": "c", "note": ""}
    assert KIND.majority(three[1:] + [chosen("b", "c")], ()) is None
    assert KIND.majority([CANNOT, CANNOT, three[0]], ()) == CANNOT
