"""Ray allows 30 s for its own node to start. A run must not fail because a busy machine needs longer."""

from pathlib import Path
from typing import Any

import pytest

from trainer.config import PolicyConfig
from trainer.rollouts import RewardSetup
from trainer.runners import ray_fleet
from trainer.runners.feed import SampleJob

BUSY = "The current node timed out during startup. This could happen because some of the raylet failed to startup."


class Ray:
    """Fails as often as it has messages left, and then works."""

    def __init__(self, *words: str) -> None:
        self.words, self.shut, self.up = list(words), 0, False

    def is_initialized(self) -> bool:
        return self.up

    def init(self, **_: Any) -> None:
        if self.words:
            raise Exception(self.words.pop(0))
        self.up = True

    def shutdown(self) -> None:
        self.shut += 1


@pytest.fixture
def connect(monkeypatch: pytest.MonkeyPatch) -> Any:
    def with_words(*words: str) -> Ray:
        fake = Ray(*words)
        monkeypatch.setattr(ray_fleet, "ray", fake)
        monkeypatch.setattr(ray_fleet, "_CONNECT_PAUSE_S", 0.0)
        ray_fleet.connect()
        return fake

    return with_words


def test_a_node_that_is_late_is_started_again(connect: Any) -> None:
    fake = connect(BUSY, BUSY)
    assert fake.up and fake.shut == 2


def test_what_is_late_every_time_is_told(connect: Any) -> None:
    with pytest.raises(Exception, match="timed out during startup"):
        connect(*[BUSY] * 9)


def test_any_other_mistake_is_told_at_once(connect: Any) -> None:
    with pytest.raises(Exception, match="no such address"):
        connect("no such address", BUSY)


def test_a_worker_that_was_found_dead_gets_no_work_that_older_news_brings_about() -> None:
    config = PolicyConfig()
    fleet = ray_fleet.RayFleet(config, Path("model"), RewardSetup(config))
    fleet.sample("rollout-0", SampleJob((), (), 0))
    fleet.withdraw("rollout-0", [])
    fleet.replace("rollout-0")
    assert not fleet._calls and not fleet._members
