"""A run's rollouts as a dataset, tuning on the best of them, and a policy that begins with the result (on the tiny model)."""

import json
from pathlib import Path
from typing import Any

import pytest

from trainer.config import resolve
from trainer.contracts import Example, Message, RunEvent, jsonlines
from trainer.rollout_export import rollouts

from .running import run


@pytest.fixture
def sampled(tiny_dir: Path, examples_file: Path, tmp_path: Path) -> Path:
    """A finished policy run."""
    out = tmp_path / "first"
    config = {
        "steps": 2,
        "rollout": {"prompts_per_step": 2, "group_size": 4, "max_new_tokens": 8},
        "evaluation": {"every": 0, "max_examples": 2},
    }
    assert run(resolve("policy", config), examples_file, tiny_dir, out)
    return out


def written(capsys: pytest.CaptureFixture[str], *arguments: Any) -> tuple[list[Example], str]:
    assert rollouts([str(argument) for argument in arguments]) == 0
    told = capsys.readouterr()
    return [Example.model_validate_json(line) for line in jsonlines.lines(told.out)], told.err


def test_sft_on_the_best_of_the_rollouts_then_rl_from_that_model(
    sampled: Path, examples_file: Path, tiny_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    found, told = written(capsys, sampled, "--data", examples_file)
    assert "prompts with" in told
    assert found and all(len(example.meta["rewards"]) == len(example.responses) for example in found)
    data = tmp_path / "best.jsonl"
    data.write_text("".join(f"{example.canonical()}\n" for example in found))

    tuned = tmp_path / "tuned"
    config = {
        "steps": 2,
        "batch_size": 2,
        "model": {"name": "tiny", "lora": None},
        "data": {"source": "best"},
        "evaluation": {"every": 0, "max_examples": 0},
    }
    assert run(resolve("sft", config), data, tiny_dir, tuned)
    events = [RunEvent.model_validate_json(line) for line in jsonlines.lines((tuned / "events.jsonl").read_text())]
    learnt = {row.response for e in events if e.data.kind == "rollouts" for row in e.data.rollouts}
    best = {max(x.responses, key=lambda r, x=x: x.meta["rewards"][r.id]).text for x in found if len(x.responses) > 1}  # type: ignore[misc]
    assert not learnt or learnt <= best

    config = {
        "steps": 1,
        "rollout": {"prompts_per_step": 2, "group_size": 2, "max_new_tokens": 8},
        "evaluation": {"every": 0, "max_examples": 0},
    }
    (model,) = (tuned / "outputs").iterdir()
    assert run(resolve("policy", config), examples_file, model, tmp_path / "again")


def test_what_narrows_what_is_written_what_leaves_nothing_and_what_cannot_be_read(
    sampled: Path, examples_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    capsys.readouterr()
    found, _ = written(capsys, sampled, "--data", examples_file, "--last", 1, "--best", 1)
    assert {step for example in found for step in example.meta["steps"].values()} == {1}
    assert all(len(example.responses) == 1 for example in found)
    held, _ = written(capsys, sampled, "--data", examples_file, "--phase", "eval")
    assert {example.split for example in held} == {"heldout"}
    assert rollouts([str(tmp_path), "--data", str(examples_file)]) == 2
    assert rollouts([str(sampled), "--data", str(examples_file), "--least", "99"]) == 1
    assert "worth less than the least reward" in capsys.readouterr().err
    bad = tmp_path / "bad.jsonl"
    bad.write_text(json.dumps({"key": "x"}) + "\n")
    assert rollouts([str(sampled), "--data", str(bad)]) == 2


@pytest.fixture
def recorded(tmp_path: Path) -> tuple[Path, Path]:
    """A run that has sampled five responses to one prompt, and the data of the run."""
    run_dir, data = tmp_path / "run", tmp_path / "data.jsonl"
    run_dir.mkdir()
    data.write_text(Example(key="a", prompt=(Message(role="user", content="say a"),)).canonical() + "\n")
    rows = [
        {"response": "{}", "reward": 1.0},
        {"response": "no object at all", "reward": 1.0},
        {"response": '{"a": 1}', "reward": 0.2},
        {"response": '{"a": 2}', "reward": 0.9, "finish_reason": "length"},
        {"response": '{"a": 3}', "reward": 0.8},
    ]
    same = {"example_key": "a", "group": 0, "prompt": "say a", "finish_reason": "stop"}
    rollouts = [{**same, "index": index, **row} for index, row in enumerate(rows)]
    event = {"seq": 1, "time": "2026-01-01T00:00:00Z", "step": 1, "data": {"kind": "rollouts", "rollouts": rollouts}}
    (run_dir / "events.jsonl").write_text(RunEvent.model_validate(event).model_dump_json() + "\n")
    return run_dir, data


def test_filters_are_counted_in_their_order_and_a_preview_shows_the_cases(
    recorded: tuple[Path, Path], capsys: pytest.CaptureFixture[str]
) -> None:
    run_dir, data = map(str, recorded)
    asked = [run_dir, "--data", data, "--shortest", "3", "--whole", "--form", "json", "--least", "0.5"]
    assert rollouts([*asked, "--preview", "1"]) == 0
    told = capsys.readouterr().out
    places = [told.index(f"[{key}]") for key in ("no_reward", "repeated", "short", "cut", "format", "low")]
    assert places == sorted(places) and "a s1-0-2: reward 0.2" in told and "a s1-0-0: 2 characters" in told
    (example,), said = written(capsys, *asked)
    assert [response.text for response in example.responses] == [
        '{"a": 3}'
    ] and "1  after leaving out 1 worth less" in said
    (example,), _ = written(capsys, *asked, "--without", "short", "--without", "low")
    assert [response.text for response in example.responses] == ["{}", '{"a": 1}', '{"a": 3}']
    for wrong, path in (
        (["--form", "tags"], "--form-of"),
        (["--without", "all"], "--without"),
        (["--correct", "2"], "--correct"),
    ):
        with pytest.raises(SystemExit, match=path):
            rollouts([run_dir, "--data", data, *wrong])
