"""Asynchronous loops on the tiny model, with workers inside the test."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.trainer.loops.conftest import make_loop, small_config
from trainer.config import PolicyConfig
from trainer.contracts import Example
from trainer.loops.session.session import Session
from trainer.runners.collecting import AsyncCollector

from . import ray_worker
from .fake import FakeFleet

__all__ = ["make_loop"]

STEPS = {"steps": 5, "scaffold": None}


def from_fleet(fleet: Any, job: Any) -> Any:
    """A collector that gets its responses from the workers of `fleet`."""
    return lambda parts, planner, reward: AsyncCollector(parts, planner, reward, fleet, job.monitor.log)


def async_config(runner: dict[str, Any] | None = None, **changes: Any) -> PolicyConfig:
    return small_config(**(STEPS | changes | {"runner": {"kind": "async", **(runner or {})}}))


@pytest.fixture
def make_async(
    make_loop: Callable[..., Any], tiny_dir: Path, examples: list[Example], tmp_path: Path
) -> Callable[..., Session]:
    def make(config: PolicyConfig, run_dir: Path = tmp_path / "async", **faults: Any) -> Session:
        return make_loop(config, run_dir, lambda job: from_fleet(FakeFleet(config, tiny_dir, **faults), job))

    return make


@pytest.fixture(scope="package")
def ray_for_all() -> Iterator[None]:
    """One Ray cluster for these tests, because a start takes longer than most of them. Its workers are forked, because each actor would
    load torch again (`test_a_run_from_a_shell_starts_its_own_workers` has workers that Ray starts). Workers have one thread each. With
    more threads here, the reference would be summed in another order."""
    import ray

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_prestart_worker_first_driver", "0")  # these would not be forked, and no actor would use them
        patch.setattr(ray, "init", partial(ray.init, runtime_env=ray_worker.forked_runtime_env()))
        yield
    torch.set_num_threads(before)
    ray.shutdown()
