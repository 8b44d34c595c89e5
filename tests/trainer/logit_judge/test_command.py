"""The process that answers calls: it resumes, answers over a pipe, and reports errors."""

import json
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TextIO

import pytest

from trainer.__main__ import main
from trainer.contracts import jsonlines
from trainer.logit_judge.answering import Answering
from trainer.logit_judge.calibration import ThresholdCalibration

Lines = list[dict[str, Any]]


def criterion(key: str, text: str = "Is polite", response: str = "No.") -> dict[str, Any]:
    return {
        "key": key,
        "conversation": [{"role": "user", "content": "Say no"}],
        "response": response,
        "criterion": text,
    }


def write(path: Path, lines: Lines) -> Path:
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def read(path: Path) -> Lines:
    return jsonlines.rows(path.read_text())


def judge(tiny_dir: Path, calls: Path, out: Path, *more: str) -> int:
    return main(["judge-local", "--model", str(tiny_dir), "--in", str(calls), "--out", str(out), *more])


def test_every_call_gets_its_verdict(tiny_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = [
        criterion("a"),
        criterion("b", "Is short"),
        criterion("a", "the same key again"),
        criterion("c", response=""),
    ]
    text = {"key": "t", "messages": [{"role": "user", "content": "Hi"}], "reply": "text", "max_tokens": 4}
    out = tmp_path / "out.jsonl"
    assert judge(tiny_dir, write(tmp_path / "in.jsonl", [*asked, text]), out) == 0
    *verdicts, said = read(out)
    assert [verdict["key"] for verdict in verdicts] == ["a", "b", "c"]
    for verdict in verdicts:
        assert verdict["state"] == "done" and not verdict["calibrated"]
        assert verdict["met"] is (verdict["probability"] > 0.5)
    assert verdicts[1]["cached_tokens"] > 0
    assert said["completion_tokens"] <= 4 and said["finish_reason"] in ("stop", "length")
    head, *progress = jsonlines.rows(capsys.readouterr().out)
    assert head["model"] == "tiny" and head["threshold"] is None
    assert progress[-1]["answered"] == progress[-1]["of"] == 4


def test_a_second_run_answers_what_is_missing(tiny_dir: Path, tmp_path: Path) -> None:
    calls = write(tmp_path / "in.jsonl", [criterion("a"), criterion("b"), criterion("c")])
    out = tmp_path / "out.jsonl"
    assert judge(tiny_dir, calls, out) == 0
    whole = out.read_text()
    first, second, _ = whole.splitlines(keepends=True)
    out.write_text(first + second[:25])  # the process was killed while it wrote this
    assert judge(tiny_dir, calls, out) == 0
    assert [verdict["key"] for verdict in read(out)] == ["a", "b", "c"]
    before = out.read_text()
    assert judge(tiny_dir, calls, out) == 0
    assert out.read_text() == before


def test_a_call_longer_than_the_model_is_a_counted_failure(tiny_dir: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    calls = write(tmp_path / "in.jsonl", [criterion("long", response="no " * 2000), criterion("short")])
    assert judge(tiny_dir, calls, out) == 0
    long, short = read(out)
    assert (long["state"], long["problem"]) == ("failed", "context_overflow")
    assert "tiny sees 2,048" in long["message"]
    assert short["state"] == "done"


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("{", "Invalid JSON"),
        (json.dumps({"key": "a"}), "give either messages, or"),
        (json.dumps(criterion("a", " ")), "give either messages, or"),
        (json.dumps(criterion("a") | {"reply": "text"}), "answered by yes or no"),
        (json.dumps(criterion("a") | {"colour": 1}), "colour: Extra inputs"),
    ],
)
def test_an_unreadable_line_is_named(tiny_dir: Path, tmp_path: Path, capsys: Any, line: str, reason: str) -> None:
    (tmp_path / "in.jsonl").write_text(json.dumps(criterion("x")) + "\n\n" + line + "\n")
    assert judge(tiny_dir, tmp_path / "in.jsonl", tmp_path / "out.jsonl") == 2
    said = capsys.readouterr().err
    assert "line 3" in said and reason in said


def test_what_is_not_there_is_said_without_a_traceback(tiny_dir: Path, tmp_path: Path, capsys: Any) -> None:
    calls = write(tmp_path / "in.jsonl", [criterion("x")])
    assert judge(tmp_path / "nowhere", calls, tmp_path / "out.jsonl") == 1
    assert "no config.json here" in capsys.readouterr().err
    assert judge(tiny_dir, tmp_path / "missing.jsonl", tmp_path / "out.jsonl") == 1
    assert "missing.jsonl" in capsys.readouterr().err
    write(tmp_path / "other.jsonl", [{"no": "key"}])
    assert judge(tiny_dir, calls, tmp_path / "other.jsonl") == 2
    assert "give another file" in capsys.readouterr().err


def human_verdicts(tmp_path: Path) -> Path:
    rows = [
        criterion("", response=f"{'yes' if n % 2 else 'no'} {n}") | {"item": n, "met": n % 2 > 0} for n in range(40)
    ]
    for row in rows:
        del row["key"]
    return write(tmp_path / "human.jsonl", rows)


def test_a_calibration_moves_the_border_and_holds_for_its_model_only(
    tiny_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from trainer.inference.models import make_tiny

    file = tmp_path / "calibration.json"
    arguments = ["--verdicts", str(human_verdicts(tmp_path)), "--out", str(file)]
    assert main(["judge-calibrate", "--model", str(tiny_dir), *arguments]) == 0
    found = ThresholdCalibration.load(file)
    assert found.calibrated_on + found.accuracy.n == 40

    out, calls = tmp_path / "out.jsonl", write(tmp_path / "in.jsonl", [criterion("a", response="yes 3")])
    assert judge(tiny_dir, calls, out, "--calibration", str(file)) == 0
    [verdict] = read(out)
    assert verdict["calibrated"] and verdict["met"] is (verdict["margin"] > found.threshold)

    make_tiny(tmp_path / "other", seed=1)
    capsys.readouterr()
    assert judge(tmp_path / "other", calls, tmp_path / "out2.jsonl", "--calibration", str(file)) == 2
    assert "measured on tiny with other weights" in capsys.readouterr().err


def test_a_threshold_says_nothing_of_another_wording(tiny_dir: Path, tmp_path: Path) -> None:
    file = tmp_path / "c.json"
    main(["judge-calibrate", "--model", str(tiny_dir), "--verdicts", str(human_verdicts(tmp_path)), "--out", str(file)])
    from trainer.logit_judge.calls import LocalCall

    call = LocalCall.model_validate({"key": "m", "messages": [{"role": "user", "content": "Is it so?"}]})
    assert Answering(tiny_dir, ThresholdCalibration.load(file)).answer([call])[0]["calibrated"] is False


def pipe() -> tuple[TextIO, TextIO]:
    """Two ends of pipes: one to read, and one to write that sends each line."""
    read, write = os.pipe()
    return open(read), open(write, "w", buffering=1)


def test_a_pipe_is_answered_as_it_goes(tiny_dir: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (calls, ask), (heard, verdicts) = pipe(), pipe()
    monkeypatch.setattr(sys, "stdin", calls)
    monkeypatch.setattr(sys, "stdout", verdicts)

    def serve() -> int:
        with verdicts:
            return main(["judge-local", "--model", str(tiny_dir), "--in", "-", "--out", "-"])

    with calls, heard, ThreadPoolExecutor(1) as pool, ask:
        ended = pool.submit(serve)
        assert json.loads(heard.readline())["judge"] == "yes-no"
        for key in "ab":  # the second question is sent after the first answer
            ask.write(json.dumps(criterion(key)) + "\n")
            assert json.loads(heard.readline())["key"] == key
        ask.close()
        assert ended.result(60) == 0
