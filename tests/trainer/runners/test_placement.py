"""Places for actors, on a cluster that is told to have two GPUs: Ray schedules by count, whatever the machine has."""

from collections.abc import Iterator
from typing import Any

import pytest

from trainer.loops.errors import RunFailed
from trainer.runners import ray_fleet
from trainer.runners.placement import Places, cluster_gpus

pytestmark = pytest.mark.stack


@pytest.fixture(scope="module")
def ray() -> Iterator[Any]:
    import ray

    ray.shutdown()
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("RAY_ADDRESS", raising=False)
        plain = ray.init
        patch.setattr(ray, "init", lambda **given: plain(**given, num_cpus=2, num_gpus=2))
        ray_fleet.connect()
    yield ray
    ray.shutdown()


def test_each_actor_has_a_gpu_of_its_own_and_whoever_comes_second_is_told_what_it_waits_for(ray: Any) -> None:
    @ray.remote
    class Worker:
        def gpus(self) -> list[str]:
            return ray.get_runtime_context().get_accelerator_ids()["GPU"]

    assert cluster_gpus() == 2
    first = Places(2, {"GPU": 1.0}, "PACK", "optim.processes")
    first.wait()
    workers = [Worker.options(**first.options()).remote() for _ in range(2)]
    cards = ray.get([worker.gpus.remote() for worker in workers])
    assert sorted(cards) == [["0"], ["1"]]

    with pytest.raises(RunFailed, match="runner.workers: waited 1 s for 1 GPU; the cluster has 2, of which 0 are free"):
        Places(1, {"GPU": 1.0}, "SPREAD", "runner.workers").wait(1.0)

    first.close()
    second = Places(1, {"GPU": 1.0}, "SPREAD", "runner.workers")
    second.wait()
    worker = Worker.options(**second.options()).remote()
    (card,) = ray.get(worker.gpus.remote())
    assert card in ("0", "1")
    ray.kill(worker)
    again = Worker.options(**second.options()).remote()  # who replaces a lost worker takes its place
    assert len(ray.get(again.gpus.remote())) == 1
    second.close()


def test_more_than_the_cluster_has_is_refused_at_its_field(ray: Any) -> None:
    with pytest.raises(RunFailed, match="optim.processes: 3 GPUs are needed, and the cluster has 2 GPUs; lower it"):
        Places(3, {"GPU": 1.0}, "PACK", "optim.processes")
