"""Places for actors, on a cluster that is told to have four GPUs. Ray schedules by this number, not by the real GPUs."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.trainer.loops.conftest import events_of, small_config
from trainer.loops.session.errors import RunFailed, StopRequested
from trainer.monitors import RunMonitor, Spool
from trainer.runners import placement, ray_fleet
from trainer.runners.placement import PlacementPart, Places, parts
from trainer.runners.policy import waiting_reporter

pytestmark = pytest.mark.stack

WORKER = PlacementPart("rollout", 1, {"GPU": 1.0}, "runner.workers")
TOGETHER = PlacementPart("learner", 2, {"GPU": 1.0}, "optim.processes")


@pytest.fixture(scope="module")
def ray() -> Iterator[Any]:
    import ray

    ray.shutdown()
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("RAY_ADDRESS", raising=False)
        plain = ray.init
        patch.setattr(ray, "init", lambda **given: plain(**given, num_cpus=2, num_gpus=4))
        ray_fleet.connect()
    yield ray
    ray.shutdown()


def test_each_actor_has_a_gpu_of_its_own_and_whoever_replaces_it_takes_its_place(ray: Any) -> None:
    @ray.remote
    class Actor:
        def gpus(self) -> list[str]:
            return ray.get_runtime_context().get_accelerator_ids()["GPU"]

    places = Places([TOGETHER, WORKER])
    places.wait()
    taken = [places.take(role) for role in ("learner", "learner", "rollout")]
    actors = [Actor.options(**place.options).remote() for place in taken if place]  # type: ignore[attr-defined]
    cards = [card for found in ray.get([actor.gpus.remote() for actor in actors]) for card in found]
    assert len(set(cards)) == 3 and places.take("reward") is None
    *_, last = taken
    ray.kill(actors[2])
    places.give_back(last)
    again = places.take("rollout")
    assert (again.role, again.index) == (last.role, last.index)
    assert ray.get(Actor.options(**again.options).remote().gpus.remote()) == [cards[2]]  # type: ignore[attr-defined]
    places.close()


def test_of_two_runs_the_second_holds_nothing_until_it_has_all_that_it_needs(ray: Any) -> None:
    first = Places([TOGETHER, WORKER])
    first.wait()  # before the second asks, because Ray may serve either of two that wait first
    second, small = Places([TOGETHER, WORKER]), Places([WORKER])
    small.wait()  # the one GPU that the first has left: if the second had taken it, both would wait for ever
    small.close()
    first.leave("learner")
    with pytest.raises(RunFailed, match="optim.processes, runner.workers: waited 1 s for 3 GPUs at once; the cluster"):
        Places([TOGETHER, WORKER]).wait(seconds=1.0)
    first.leave("rollout", "reward")
    second.wait()
    second.close()
    everything = Places([TOGETHER._replace(count=4)])
    everything.wait()  # an actor that stopped waiting has left nothing behind
    everything.close()


def test_a_run_that_waits_says_so_and_stops_when_it_is_told_to(
    ray: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(placement, "SAY_S", 0.0)
    monitor, first = RunMonitor(Spool(tmp_path / "events.jsonl")), Places([TOGETHER, TOGETHER._replace(role="rollout")])
    first.wait()
    look, heard = waiting_reporter(monitor), []

    def end_it(reason: str) -> None:
        heard.append(reason)
        if len(heard) == 2:
            first.close()
        look(reason)

    Places([WORKER]).wait(end_it)
    paused, running = [event.data for event in events_of(tmp_path)]
    assert (paused.state, running.state) == ("paused", "running")
    assert re.fullmatch(r"Waits for 1 GPU at once; the cluster has \d of 4 GPUs free", paused.reason)
    monitor.request_stop()
    with pytest.raises(StopRequested):
        Places([TOGETHER._replace(count=4)]).wait(look)
    monitor.close()


def test_more_than_the_cluster_has_is_refused_at_its_fields(ray: Any) -> None:
    said = "optim.processes, runner.workers: 5 GPUs are needed at once, and the cluster has 4 GPUs. Ask for fewer."
    with pytest.raises(RunFailed, match=said):
        Places([TOGETHER._replace(count=4), WORKER, PlacementPart("reward", 9, {"CPU": 1.0}, "runner.reward_workers")])


def test_cpus_that_the_cluster_can_never_give_are_refused_at_once(ray: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    workers = PlacementPart("rollout", 3, {"CPU": 1.0}, "runner.workers")
    said = "runner.workers: 3 CPUs are needed at once, and the cluster has 2 CPUs. Ask for fewer."
    with pytest.raises(RunFailed, match=said):
        Places([workers])
    halves = [{"Alive": alive, "Resources": {"CPU": cpus}} for alive, cpus in ((True, 1.0), (True, 1.0), (False, 2.0))]
    monkeypatch.setattr(ray, "nodes", lambda: halves)
    said = "runner.cpus_per_worker: 2 CPUs are needed on one machine, and no machine of the cluster has so many. Ask for fewer."
    with pytest.raises(RunFailed, match=said):
        Places([workers._replace(count=1, each={"CPU": 2.0})])


ASYNC = {"kind": "async", "workers": 3, "reward_workers": 2}


@pytest.mark.parametrize(
    ("runner", "processes", "gpus", "asked"),
    [
        ({}, 1, 8, []),
        ({}, 2, 0, []),
        ({}, 2, 8, [("learner", 2, {"GPU": 1.0})]),
        (ASYNC, 1, 0, []),
        (ASYNC, 2, 8, [("learner", 2, {"GPU": 1.0}), ("rollout", 3, {"GPU": 1.0})]),
        (ASYNC | {"cpus_per_worker": 4}, 2, 0, [("rollout", 3, {"CPU": 4.0}), ("reward", 2, {"CPU": 4.0})]),
        (
            ASYNC | {"cpus_per_worker": 1, "gpus_per_worker": 0},
            2,
            8,
            [("learner", 2, {"GPU": 1.0}), ("rollout", 3, {"CPU": 1.0}), ("reward", 2, {"CPU": 1.0})],
        ),
    ],
)
def test_a_run_asks_for_the_places_of_its_processes_and_its_workers_in_one(
    runner: dict[str, Any], processes: int, gpus: int, asked: list[Any]
) -> None:
    config = small_config(runner=runner, optim={"processes": processes}, scaffold=None)
    assert [(part.role, part.count, part.each) for part in parts(config, gpus)] == asked
