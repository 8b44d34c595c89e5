"""The two models of `alternating` on two GPUs: each has all its tensors on its own GPU, and the copies between them are known."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
import torch

from tests import fork_server
from trainer.devices import CHOICE
from trainer.inference import models

from .test_alternating import data, moved, tiny_dir, weights  # noqa: F401  fixtures among them

LEARNER, SAMPLER, MACHINE = "card:0", "card:1", "cpu"


def ran(data: Path, model: Path, out: Path) -> list[dict[str, Any]]:  # noqa: F811
    """Runs with the sampler on a separate GPU, and on that of the learner."""
    program = fork_server.command("tests.trainer.loops.recipes.alternating_on_cards")
    given = [*map(str, (data, model, out)), SAMPLER, LEARNER]
    done = subprocess.run([*program, *given], capture_output=True, text=True, check=True, cwd=Path(__file__).parents[4])  # noqa: S603
    told: list[dict[str, Any]] = json.loads(done.stdout.splitlines()[-1])
    for device, each in zip((SAMPLER, LEARNER), told, strict=True):
        assert each["done"], (out / device / "events.jsonl").read_text()[-3000:]
    return told


def test_each_model_is_on_its_card_and_only_weights_go_from_one_to_the_other(
    data: Path,  # noqa: F811
    tiny_dir: Path,  # noqa: F811
    tmp_path: Path,
) -> None:
    """An operation on tensors of two places ends the run, as on real GPUs."""
    two, one = ran(data, tiny_dir, tmp_path)
    assert two["trained"] == two["moments"] == two["reference"] == [LEARNER]
    assert two["gradients"] in ([], [LEARNER])
    assert two["speaks"] == [SAMPLER]
    assert two["waits"] == [MACHINE], "weights and moments of the role that is not trained take no place on a card"
    between = [move for move in two["moves"] if MACHINE not in move[:2] and "meta" not in move[:2]]
    assert {(source, target) for source, target, _, _ in between} == {(LEARNER, SAMPLER)}
    assert all(shape in two["shapes"] and not whole for _, _, shape, whole in between), "weights and nothing else"
    tokens = {target for source, target, _, whole in two["moves"] if whole and source == MACHINE}
    assert tokens == {LEARNER, SAMPLER}, "each is told the tokens by the machine"

    assert one["speaks"] == [LEARNER] and not [move for move in one["moves"] if SAMPLER in move[:2]]
    for step in (1, 3):
        by_two, by_one = weights(tmp_path / SAMPLER, step), weights(tmp_path / LEARNER, step)
        assert by_two.keys() == by_one.keys()
        assert not any(moved(by_one[owner], by_two[owner]) for owner in by_one), "to the last bit"


@pytest.mark.parametrize(
    ("count", "chosen", "place"), [(0, "", "cpu"), (1, "", "cuda"), (2, "", "cuda:1"), (2, "cpu", "cpu")]
)
def test_the_second_model_has_a_card_of_its_own_where_there_are_two(
    monkeypatch: pytest.MonkeyPatch, count: int, chosen: str, place: str
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: count > 0)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: count)
    monkeypatch.setenv(CHOICE, chosen)
    assert models.second_device() == place
