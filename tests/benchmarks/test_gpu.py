"""`make gpu-check` without a GPU: each part runs its code on the CPU, and each kind of mistake is reported."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
import torch

from benchmarks.gpu import __main__ as check
from benchmarks.gpu import attention, objectives, resume, sampling, steps
from benchmarks.gpu.rows import MeasureRow, MeasureSetting, TakenPart, left_out, table
from benchmarks.machine import AWAY
from trainer.devices import CHOICE


@pytest.fixture
def setting(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> MeasureSetting:
    monkeypatch.setenv(CHOICE, "cpu")
    return MeasureSetting("cpu", True, tmp_path)


@pytest.mark.parametrize("name", check.PARTS)
def test_each_part_goes_through_on_the_processor(name: str, setting: MeasureSetting) -> None:
    part = check.take(name, setting)
    assert part.ok, table([part])
    taken = [row for row in part.rows if row.value is not None]
    assert taken and any(row.ok for row in taken)
    assert all(row.why for row in part.rows if row.value is None), "what was not measured says why"
    assert TakenPart.of(name, json.loads(json.dumps(part.record()))) == TakenPart(
        name, part.rows, round(part.seconds, 1)
    )


def test_every_objective_and_both_heads_are_compared(setting: MeasureSetting) -> None:
    from trainer.objectives import REGISTRY

    names = {row.name for row in objectives.run(setting)}
    assert {f"objective {name}" for name in REGISTRY} <= names
    assert {f"head, {kind}, {dtype}" for kind in ("frozen", "trained") for dtype in ("float32", "bfloat16")} <= names


@pytest.mark.parametrize("wrong", ["value", "gradient", "infinite"])
def test_a_device_that_computes_something_else_is_told(wrong: str) -> None:
    calls = iter([False, True])  # on the CPU, then on the device

    def loss(own: Any) -> torch.Tensor:
        there = next(calls)
        value = (own[0] ** 2).sum()
        if not there:
            return value
        if wrong == "gradient":
            return value + (own[0] - own[0].detach()).sum() * 0.01
        return value * (float("inf") if wrong == "infinite" else 1.001)

    row = objectives._compared("x", loss, [torch.ones(3, requires_grad=True)], "cpu")
    assert row.verdict == "WRONG", row


def test_attention_that_sees_what_it_must_not_is_told(setting: MeasureSetting, monkeypatch: pytest.MonkeyPatch) -> None:
    from trainer.inference import attention as ours
    from trainer.inference.tree_attention import tree_attention

    def leaky(query: Any, key: Any, value: Any, tree: Any, scale: Any) -> torch.Tensor:
        return tree_attention(query, key, value.roll(1, 2), tree, scale)

    monkeypatch.setattr(ours, "tree_attention", leaky)
    verdicts = {row.name.partition(",")[0]: row.verdict for row in attention.run(setting)}
    assert verdicts["log-probabilities"] == "WRONG" and verdicts["gradient"] == "WRONG"


def test_a_fault_that_the_engine_check_lets_pass_is_told(
    setting: MeasureSetting, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sampling, "FAULTS", {"nothing at all": lambda model: None})
    monkeypatch.setattr(sampling, "OTHER_TEMPERATURE", 0.5)
    monkeypatch.setattr(sampling, "DTYPES", ("float32",))
    verdicts = {row.name.removeprefix("local sampler, float32: "): row.verdict for row in sampling.run(setting)}
    assert verdicts["nothing at all is caught"] == "WRONG" and verdicts["another temperature is caught"] == "ok"


def test_steps_without_a_gradient_are_told(setting: MeasureSetting, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps, "stepping", lambda *_: lambda number: float(number))  # the first step has no gradient
    assert [row.verdict for row in steps._steps(steps.SMALL[0], setting)][0] == "WRONG"


def test_a_resumed_run_that_comes_out_otherwise_is_told(
    setting: MeasureSetting, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resume, "_run", lambda *_, **options: not options.get("resume"))
    found = {"whole": {(1, "loss"): 0.5, (2, "loss"): 0.4}, "broken": {(1, "loss"): 0.5}}
    monkeypatch.setattr(resume, "metrics_of", lambda out: found[out.name])
    assert [row.verdict for row in resume.run(setting)] == ["WRONG", "WRONG", "ok"]
    found["broken"][2, "loss"] = 0.41
    assert [row.verdict for row in resume.run(setting)] == ["WRONG", "ok", "WRONG"]


def test_a_row_says_what_became_of_its_mark() -> None:
    assert MeasureRow("x", 1.0, mark=1.0).verdict == "ok" and MeasureRow("x", 1.1, mark=1.0).verdict == "WRONG"
    assert MeasureRow("x", 0.9, mark=1.0, kind="at least").verdict == "WRONG"
    assert MeasureRow("x", 0.9, mark=1.0, kind="at least", goal=True).verdict == "below the goal"
    assert MeasureRow("x", float("nan"), mark=1.0).verdict == "WRONG"
    assert MeasureRow("x", 3.0).verdict == "measured" and left_out("x", "why not").verdict == "left out"
    assert (
        TakenPart("a", [MeasureRow("x", 2.0, mark=1.0, goal=True)]).ok
        and not TakenPart("a", [MeasureRow("x", 2.0, mark=1.0)]).ok
    )
    assert not TakenPart("a", failed="broke").ok
    text = table([TakenPart("a", [MeasureRow("speed", 12345.0, "tokens/s"), left_out("vLLM", "not installed")], 3.2)])
    assert "12,345 tokens/s" in text and text.splitlines()[-1].endswith("left out: not installed")


def test_without_a_card_it_says_so_in_a_sentence(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for found, said in (([], "has no NVIDIA GPU"), (["NVIDIA H100"], "has NVIDIA H100, but torch")):
        monkeypatch.setattr(check, "cards", lambda found=found: found)
        with pytest.raises(SystemExit) as ended:
            check.main([])
        assert ended.value.code == AWAY
        (line,) = capsys.readouterr().out.splitlines()
        assert said in line


class Children:
    """Replaces the processes of the parts. Says what each process prints, or how it ends."""

    def __init__(self, **ends: Any) -> None:
        self._ends = ends

    def __call__(self, command: list[str], **options: Any) -> Any:
        end = self._ends[command[3]]
        if end == "hangs":
            raise subprocess.TimeoutExpired(command, options["timeout"])
        if isinstance(end, int):
            return subprocess.CompletedProcess(command, end, "Traceback")
        return subprocess.CompletedProcess(command, 0, f"chatter\n{check._MARK}{json.dumps(end.record())}\n")


def test_one_table_and_one_object_whatever_becomes_of_a_part(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(CHOICE, "cpu")
    good = TakenPart("a", [MeasureRow("loss", 0.0, mark=1.0)], 1.0)
    monkeypatch.setattr(subprocess, "run", Children(a=good, b=139, c="hangs"))
    assert check.main(["--device", "cpu", "--small", "a", "b", "c"]) == 1
    lines = capsys.readouterr().out.splitlines()
    record = json.loads(lines[-1])
    assert list(record["parts"]) == ["a", "b", "c"] and record["vllm"] == check._version("vllm")
    assert record["parts"]["b"]["failed"].startswith("exit status 139")
    assert "the time for all parts was over" in record["parts"]["c"]["failed"]
    assert lines[-2] == "Something is wrong in (b), (c)" and "SMALL: these numbers say nothing" in lines[-3]
    assert check.main(["--device", "cpu", "a"]) == 0
    assert check.main(["--device", "cpu", "--limit-s", "0", "a"]) == 1  # no part begins after the time is over


def test_what_was_taken_on_a_card_is_written_under_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(check, "RESULTS", tmp_path)
    monkeypatch.setattr(check, "_card_or_away", lambda: None)
    monkeypatch.setattr(
        subprocess, "run", Children(**dict.fromkeys(check.PARTS, TakenPart("x", [MeasureRow("y", 1.0)])))
    )
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda number: "NVIDIA H100 80GB HBM3")
    assert check.main(["a"]) == 0 and not list(tmp_path.iterdir()), "only all parts together are a result"
    assert check.main([]) == 0
    written = json.loads((tmp_path / "gpu-nvidia-h100-80gb-hbm3.json").read_text())
    assert written["parts"].keys() == check.PARTS.keys() and written["card"] == "NVIDIA H100 80GB HBM3"
    assert json.loads(capsys.readouterr().out.splitlines()[-1]) == written


def test_a_part_that_there_is_not_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        check.main(["z"])
    assert "there is no part 'z'; there are a, b, c, d, e, f" in capsys.readouterr().err
