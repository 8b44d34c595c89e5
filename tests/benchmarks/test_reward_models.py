"""The data that each seed trains on and holds out, and the numbers of the table."""

import gzip
import json

import pytest

from benchmarks import preference_sets, reward_models
from benchmarks.preference_sets import FOLDS, PreferenceSet, take
from trainer.contracts import Message


def preference_examples(groups: int, each: int):
    asked = [Message(role="user", content="Why?")]
    return [
        preference_sets._example(f"{g}-{n}", f"group {g}", asked, (f"long {n}", f"{g}"), [-2, -2, 2])
        for g in range(groups)
        for n in range(each)
    ]


@pytest.fixture
def ten_groups(monkeypatch, tmp_path):
    monkeypatch.setitem(
        preference_sets.SETS,
        "made",
        PreferenceSet("Made", "groups", (), lambda folder: (preference_examples(10, 6), 4)),
    )
    return lambda seed, **sizes: take(
        "made", tmp_path, seed, **({"pairs": 99, "heldout": 99} | sizes), fits=lambda e: True
    )


class TestFolds:
    def test_no_group_stands_on_both_sides_and_every_one_is_held_out_once(self, ten_groups):
        held = []
        for seed in range(FOLDS):
            taken = ten_groups(seed)
            sides = [{example.group for example in taken.of(split)} for split in ("train", "heldout")]
            assert not sides[0] & sides[1]
            assert len(taken.examples) == 60
            held += sides[1]
        assert sorted(held) == sorted(f"group {g}" for g in range(10))

    def test_sizes_are_kept_and_a_seed_gives_the_same_again(self, ten_groups):
        taken = ten_groups(1, pairs=7, heldout=5)
        assert (len(taken.of("train")), len(taken.of("heldout")), taken.left_out) == (7, 5, 4)
        assert [e.key for e in taken.examples] == [e.key for e in ten_groups(1, pairs=7, heldout=5).examples]


def test_transcripts_become_conversations_and_the_chosen_answer_is_not_always_first(tmp_path):
    rows = [
        {"chosen": f"\n\nHuman: Hi {n}\n\nAssistant: Good", "rejected": f"\n\nHuman: Hi {n}\n\nAssistant: Bad"}
        for n in range(2)
    ]
    rows.append({"chosen": "\n\nHuman: Hi\n\nAssistant: ", "rejected": "\n\nHuman: Hi\n\nAssistant: Bad"})
    folder = tmp_path / "hh_rlhf"
    folder.mkdir()
    with gzip.open(folder / "harmless-base-test.jsonl.gz", "wt") as file:
        file.write("".join(json.dumps(row) + "\n" for row in rows))
    found, left_out = preference_sets.SETS["harmless"].read(tmp_path)
    assert left_out == 1  # without an answer
    assert [example.responses[0].text for example in found] == ["Good", "Bad"]
    assert [example.preferences[0].strength for example in found] == [-2, 2]
    assert found[0].prompt == (Message(role="user", content="Hi 0"),)


class TestNumbers:
    def test_pairs_of_one_group_are_drawn_together(self):
        alone = reward_models.over([[1.0, 1.0, 0.0, 0.0] * 10], [str(n) for n in range(40)])
        together = reward_models.over([[1.0, 1.0, 0.0, 0.0] * 10], [str(n % 4) for n in range(40)])
        assert alone.value == together.value == 0.5
        assert together.high - together.low > alone.high - alone.low

    def test_a_difference_is_taken_pair_by_pair(self):
        found = reward_models.over([[1.0, 0.0], [1.0]], ["a", "b", "c"], [[0.0, 0.0], [1.0]])
        assert found.value == pytest.approx(1 / 3)

    def test_length_is_used_in_the_direction_that_training_pairs_show(self):
        examples = preference_examples(2, 3)
        pairs = reward_models._pairs(examples)
        lengths = [tuple(float(len(side.response.text)) for side in pair.sides) for pair in pairs]
        assert reward_models._by_feature(lengths, lengths) == [1.0] * 6
        assert reward_models._by_feature([(1.0, 2.0)], lengths) == [0.0] * 6


def test_a_wrong_folder_is_told_in_a_sentence(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr("sys.argv", ["reward_models", "--shared", str(tmp_path), "--sets", "pandalm"])
    with pytest.raises(SystemExit) as ended:
        reward_models.main()
    told = capsys.readouterr()
    assert ended.value.code == 2 and told.out == ""
    assert told.err.strip().endswith("it has no pandalm/testset-v1.json") and "\n" not in told.err.strip()
