"""Asynchronous loops on the tiny model, with workers inside the test."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.trainer.loops.conftest import make_loop, small_config
from trainer.config import PolicyConfig
from trainer.contracts import Example
from trainer.loops.session.session import Session
from trainer.runners.collecting import AsyncCollector

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
