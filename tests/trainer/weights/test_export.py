"""Any kept checkpoint becomes the model that its run had at that step. A failure loses nothing."""

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from tests.trainer.running import run
from trainer.config import resolve
from trainer.contracts import Example, ModelSource, jsonlines
from trainer.weights import export
from trainer.weights.command import explain

OFTEN: dict[str, Any] = {"steps": 2, "checkpoint": {"every": 1, "keep": 9}, "evaluation": {"every": 0}, "batch_size": 2}
CONFIGS: dict[str, tuple[str, dict[str, Any]]] = {
    "adapter": ("sft", {**OFTEN, "data": {"source": "references"}}),
    "whole": ("sft", {**OFTEN, "data": {"source": "references"}, "model": {"lora": None}}),
}


class Client:
    """The parts of its server that `work` needs."""

    def __init__(self, folder: Path, base: Path, name: str, config: dict[str, Any], step: int) -> None:
        params = {"step": step, "recipe": name, "config": resolve(name, config).model_dump(mode="json")}
        models = {"base": ModelSource(path=str(base))}
        self.assignment = SimpleNamespace(job_id=7, params=params, models=models, folder=str(folder))
        self.objects = None  # the process and the server share a disk
        self.phase, self.lines = "", jsonlines.lines((folder.parent / "examples.jsonl").read_text())

    def check(self) -> None: ...

    def items(self) -> Any:
        return ({"canonical": line} for line in self.lines)


@pytest.fixture
def trained(examples: list[Example], tmp_path: Path, tiny_dir: Path) -> Any:
    """`trained(kind)`: the client of a run of two steps, each with a checkpoint."""

    def _trained(kind: str, step: int = 1, **changes: Any) -> Client:
        name, config = CONFIGS[kind]
        data = tmp_path / "examples.jsonl"
        data.write_text("".join(row.model_copy(update={"reference": "yes"}).canonical() + "\n" for row in examples))
        if not (tmp_path / "run").exists():
            assert run(resolve(name, config), data, tiny_dir, tmp_path / "run")
        return Client(tmp_path / "run", tiny_dir, name, {**config, **changes}, step)

    return _trained


def weights(folder: Path) -> dict[str, Any]:
    from safetensors.torch import load_file

    return {name: tensor for file in sorted(folder.glob("*.safetensors")) for name, tensor in load_file(file).items()}


@pytest.mark.parametrize("kind", CONFIGS)
def test_the_last_checkpoint_is_the_model_that_the_run_left_and_an_earlier_one_is_not(trained, kind, tmp_path) -> None:
    for step in (1, 2):
        (artifact,) = export.work(trained(kind, step))["artifacts"]
        assert artifact["path"] == f"outputs/policy-step-{step}"
        assert artifact["model"]["format"] == ("peft" if kind == "adapter" else "hf")
    left, last, first = (weights(tmp_path / "run/outputs" / n) for n in ("policy", "policy-step-2", "policy-step-1"))
    assert left.keys() == last.keys() == first.keys()
    assert all(left[name].equal(last[name]) for name in left)
    assert not all(left[name].equal(first[name]) for name in left)
    assert list((tmp_path / "run").glob("export-*")) == [], "nothing is left lying about"


def test_a_checkpoint_of_another_run_is_refused_with_what_differs(trained, tmp_path) -> None:
    client = trained("adapter", seed=9)
    with pytest.raises(ValueError, match="is another run's: seed is 0 there and 9 here"):
        export.work(client)
    client = trained("adapter")
    client.lines[0] = json.dumps({**json.loads(client.lines[0]), "reference": "no"})
    with pytest.raises(ValueError, match="the examples differ"):
        export.work(client)
    assert [path.name for path in (tmp_path / "run/outputs").iterdir()] == ["policy"]


def test_a_disk_that_fills_says_so_and_loses_nothing(trained, tmp_path, monkeypatch) -> None:
    from safetensors import SafetensorError

    from trainer.loops.learner import export as exporting

    client = trained("adapter")
    export.work(client)
    before = weights(tmp_path / "run/outputs/policy-step-1")

    def full(tensors: Any, path: Path, **options: Any) -> None:
        path.write_bytes(b"half")
        # the message of a file system of 64 kB
        raise SafetensorError("Error while serializing: I/O error: No space left on device (os error 28)")

    monkeypatch.setattr(exporting, "save_file", full)
    with pytest.raises(SafetensorError) as caught:
        export.work(client)
    assert "The disk is full" in explain(caught.value) and "retry" in explain(caught.value)
    after = weights(tmp_path / "run/outputs/policy-step-1")
    assert before.keys() == after.keys() and all(before[name].equal(after[name]) for name in before)
    assert sorted(path.name for path in (tmp_path / "run/outputs").iterdir()) == ["policy", "policy-step-1"]
    assert sorted(path.name for path in (tmp_path / "run/checkpoints").iterdir()) == ["step-000001", "step-000002"]
