"""Self-verification by hand: which responses are judged, how a judgement is read, and what reward it earns."""

import pytest

from trainer.curriculum.verification import Candidate, hardest, question, read_score, worth

GROUPS = [
    Candidate(group, index, score)
    for group, scores in enumerate([(1, 1), (0, 1), (0, 0)])
    for index, score in enumerate(scores)
]


def test_the_hardest_groups_come_first_and_each_gives_one_before_any_gives_two() -> None:
    assert [each.group for each in hardest(GROUPS, 6, 0, 1)] == [2, 1, 0, 2, 1, 0]
    assert [each.group for each in hardest(GROUPS, 2, 0, 1)] == [2, 1]
    assert hardest([], 4, 0, 1) == []
    assert hardest(GROUPS, 6, 0, 1) == hardest(list(GROUPS), 6, 0, 1)


def test_chance_decides_which_response_of_a_group_is_judged() -> None:
    judged = {hardest(GROUPS, 2, 0, step)[1].score for step in range(1, 30)}
    assert judged == {0, 1}


@pytest.mark.parametrize(
    ("text", "score"),
    [
        ("Score: 7", 0.7),
        ("It is short.\nscore = 10", 1.0),
        ("Score: 3, no: **Score: 8**", 0.8),
        ("Score:**2.5**", 0.25),
        ("Score: 11", None),
        ("Seven of ten", None),
        ("", None),
    ],
)
def test_the_last_score_counts_and_one_beyond_the_bounds_is_none(text: str, score: float | None) -> None:
    assert read_score(text) == score


def test_a_judgement_earns_what_it_agrees_tied_to_the_quality() -> None:
    assert worth(0.5, 1.0, 0.0) == 0.5
    assert worth(0.0, 0.0, 0.0) == 1.0
    assert worth(0.0, 0.0, 1.0) == 0.0
    assert worth(1.0, 1.0, 1.0) == 1.0
    assert worth(0.25, 0.5, 0.5) == pytest.approx(0.75 * 0.75)
    assert worth(None, 1.0, 0.0) == 0.0


def test_the_question_has_task_and_answer() -> None:
    assert "Task:\nName it.\n\nAnswer:\n(nothing)\n" in question("Name it.", "")
