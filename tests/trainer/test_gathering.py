"""A run's rollouts as a dataset, tuning on the best of them, and a policy that goes on from there (the tiny model)."""

import json
from pathlib import Path
from typing import Any

import pytest

from trainer.config import resolve
from trainer.contracts import Example, RunEvent
from trainer.gathering import rollouts

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
    return [Example.model_validate_json(line) for line in told.out.splitlines()], told.err


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
    events = [RunEvent.model_validate_json(line) for line in (tuned / "events.jsonl").read_text().splitlines()]
    learnt = {row.response for e in events if e.data.kind == "rollouts" for row in e.data.rollouts}
    best = {max(x.responses, key=lambda r, x=x: x.meta["rewards"][r.id]).text for x in found if len(x.responses) > 1}
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
