"""A record that is too large for one request. Its turns are sent before it, and nothing of them is lost."""

import json
from itertools import groupby

from trainer.contracts import MAX_POST_BYTES, PartResult, RolloutRecord, RolloutTurn
from trainer.monitors import RunMonitor, Spool, large_records


def record(**fields) -> RolloutRecord:
    plain = {"example_key": "e0", "group": 2, "index": 1, "prompt": "p", "response": "last", "finish_reason": "env"}
    return RolloutRecord.model_validate(plain | fields)


def turn(text: str, **fields) -> RolloutTurn:
    return RolloutTurn(author="policy", text=text, tokens=len(text), **fields)


def joined(events) -> list[str]:
    pieces = [piece for event in events for piece in event.turns]
    return ["".join(piece.text for piece in turns) for _, turns in groupby(pieces, key=lambda piece: piece.number)]


def test_every_turn_is_whole_again_and_every_event_fits_a_post():
    texts = ["a" * 450_000, "", "ü\n\x01" * 300_000, *("short" for _ in range(50))]
    given = record(turns=tuple(turn(text, tool="t", seconds=1.0) for text in texts))
    events, lighter = large_records.split(given, 1_000_000)
    assert joined(events) == texts
    assert [(piece.number, piece.part) for piece in events[0].turns][:2] == [(0, 0), (0, 1)]
    assert all(len(event.model_dump_json().encode()) < MAX_POST_BYTES for event in events)
    assert {(event.group, event.index, event.phase) for event in events} == {(2, 1, "train")}
    assert (lighter.turns, lighter.turns_apart, lighter.response) == ((), 53, "last")
    assert all(piece.tool == "t" and piece.seconds == 1.0 for event in events for piece in event.turns)


def test_tokens_go_only_if_they_must():
    few = record(turns=(turn("x" * 5000),), tokens=("t",) * 10, logprobs=(0.0,) * 10)
    assert large_records.split(few, 4000)[1].tokens == few.tokens
    many = record(tokens=("token",) * 5000, logprobs=(-0.5,) * 5000)
    events, lighter = large_records.split(many, 4000)
    assert (events, lighter.tokens, lighter.facts["tokens_not_sent"]) == ([], (), 5000)
    assert lighter.finish_reason == "env"


def test_a_text_that_is_cut_counts_as_cut(monkeypatch):
    monkeypatch.setattr(large_records, "SHORT", 100)
    _, lighter = large_records.split(record(response="r" * 9000, prompt="p" * 9000), 4000)
    assert (len(lighter.response), len(lighter.prompt), lighter.finish_reason) == (100, 100, "length")
    told = PartResult(name="judge", kind="judge", shown="s" * 9000, why="w" * 9000, value=0.5)
    _, lighter = large_records.split(record(parts=(told,)), 4000)
    assert (lighter.parts[0].shown, len(lighter.parts[0].why), lighter.response) == (None, 1000, "last")


def test_the_monitor_writes_the_turns_before_their_record_and_leaves_others_as_they_are(tmp_path):
    monitor = RunMonitor(Spool(tmp_path / "events.jsonl"))
    large = record(turns=tuple(turn("x" * 100_000) for _ in range(45)))
    monitor.rollouts(3, [record(index=0), large, record(index=2)])
    monitor.close()
    with (tmp_path / "events.jsonl").open() as written:
        lines = [json.loads(line) for line in written]
    assert [line["data"]["kind"] for line in lines] == ["rollouts", "turns", "turns", "turns", "rollouts"]
    assert [each["index"] for each in lines[-1]["data"]["rollouts"]] == [1, 2]
    assert lines[-1]["data"]["rollouts"][0]["turns_apart"] == 45
    assert all(len(json.dumps(line)) < MAX_POST_BYTES and line["step"] == 3 for line in lines)
