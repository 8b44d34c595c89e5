"""Two processes that share a model over gloo give the same as one process: reports, gradients, weights, checkpoints."""

import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
import torch

from tests import fork_server

from .two_processes import CASES

Found = tuple[dict[str, Any], dict[str, list[dict[str, Any]]]]


@pytest.fixture(scope="module")
def results(tiny_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Found:
    out = tmp_path_factory.mktemp("two")
    command = [*fork_server.command("tests.trainer.loops.learner.two_processes"), str(tiny_dir), str(out)]
    done = subprocess.run(
        command, capture_output=True, text=True, env=os.environ | {"OMP_NUM_THREADS": "1"}, timeout=900
    )
    assert done.returncode == 0, done.stderr[-3000:]
    loaded: Found = torch.load(out / "found.pt", weights_only=False)
    return loaded


@pytest.mark.parametrize("case", CASES)
def test_the_parts_of_a_report_add_up_to_that_of_one_process(case: str, results: Found) -> None:
    alone, (mine, other) = results[0][case]["report"], [part["report"] for part in results[1][case]]
    assert set(mine.ratio).isdisjoint(other.ratio) and mine.ratio and other.ratio
    assert mine.grad_norms == other.grad_norms
    mine.take_in(other)
    limit = 5e-2 if "bfloat16" in case else 1e-3
    assert mine.losses == pytest.approx(alone.losses, abs=limit)
    assert mine.grad_norms == pytest.approx(alone.grad_norms, rel=limit)
    assert (mine.tokens, mine.nodes, mine.passes) == (alone.tokens, alone.nodes, alone.passes)
    for name in ("ratio", "weight", "entropy", "kl_old", "kl"):
        ours, theirs = getattr(mine, name), getattr(alone, name)
        assert ours.keys() == theirs.keys()
        for b, expected in theirs.items():
            torch.testing.assert_close(ours[b], expected, atol=limit, rtol=limit)


@pytest.mark.parametrize("case", CASES)
def test_gradients_and_weights_are_those_of_one_process(case: str, results: Found) -> None:
    """Moments are sums of gradients and have the same size. They are compared as one long vector."""
    alone, shared = results[0][case], results[1][case][0]
    assert alone["saved"]["optimizer"].keys() == shared["saved"]["optimizer"].keys()
    names = [n for n in alone["saved"]["optimizer"] if n.startswith(("exp_avg:", "momentum_buffer:"))]
    expected = torch.cat([alone["saved"]["optimizer"][name].flatten() for name in names])
    ours = torch.cat([shared["saved"]["optimizer"][name].flatten() for name in names])
    assert float((ours - expected).norm() / expected.norm()) < (2e-2 if "bfloat16" in case else 1e-3)
    for name, weight in alone["merged"].items():
        assert shared["merged"][name].dtype == weight.dtype
        torch.testing.assert_close(shared["merged"][name], weight, atol=1e-5, rtol=1e-2 if "bfloat16" in case else 1e-5)


@pytest.mark.parametrize("case", CASES)
def test_saved_tensors_are_whole_and_come_back(case: str, results: Found) -> None:
    alone, (mine, other) = results[0][case], results[1][case]
    for owner in ("policy", "optimizer"):
        for name, value in mine["saved"][owner].items():
            assert value.shape == alone["saved"][owner][name].shape
            assert torch.equal(value, other["saved"][owner][name]) and torch.equal(value, mine["again"][owner][name])


@pytest.mark.parametrize("case", CASES)
def test_weights_held_for_a_while_are_given_back(case: str, results: Found) -> None:
    mine = results[1][case][0]
    assert any(not torch.equal(mine["doubled"][name], weight) for name, weight in mine["merged"].items())
