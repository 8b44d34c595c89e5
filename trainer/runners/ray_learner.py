"""A learner spread over several Ray actors, each with a share of the model (FSDP2): one per GPU, or per CPU process."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import ray
import torch
from ray.exceptions import GetTimeoutError, OutOfMemoryError, RayActorError, RayTaskError
from torch import Tensor

from trainer import node
from trainer.checkpoints import CheckpointPlace, Elsewhere, File, OutOfReach, Rows, StoredTensors, write_share
from trainer.config import OnPolicyConfig
from trainer.loops.learner.learner import Marked
from trainer.loops.policy.update import Learned, NotFinite, Updater, UpdateReport
from trainer.loops.session.errors import ProcessLost, StopRequested
from trainer.rollouts import Trajectory

from .placement import Places

_LAST_WORDS_S = 5.0
_LOOK_S = 0.2
_Failure = tuple[str, list[int], int]


@ray.remote(max_restarts=0, max_task_retries=0, concurrency_groups={"files": 1, "word": 1})  # type: ignore[call-overload]  # Ray declares no groups
class LearnerActor:
    """One of the processes that hold the model together. The driver calls the same methods on all of them, in the same order."""

    def __init__(self, config: OnPolicyConfig, rank: int, threads: int) -> None:
        self._config, self._rank, self._stop = config, rank, False
        self._held: dict[str, dict[str, Rows]] | None = None
        torch.set_num_threads(threads)

    def host(self) -> str:
        return str(ray.util.get_node_ip_address())

    def pid(self) -> int:
        return os.getpid()

    def open(self, host: str) -> int:
        """The port at which the processes find one another; called on the first process."""
        meeting: Any = torch.distributed  # torch documents TCPStore and does not export it
        self._store = meeting.TCPStore(host, 0, self._config.optim.processes, True, wait_for_workers=False)
        return int(self._store.port)

    def join(self, host: str, port: int, model_dir: str, teacher_dir: str | None) -> int:
        """Meet the others and make the learner; returns the number of trained parameters."""
        from torch.distributed.device_mesh import init_device_mesh

        from trainer.inference.models import best_device, load_model
        from trainer.loops.learner.learner import Learner, Teacher
        from trainer.loops.learner.sharding import ModelShare

        ranks, model = self._config.optim.processes, self._config.model
        if host == "127.0.0.1":
            os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
        device = best_device()
        if self._rank:
            meeting: Any = torch.distributed  # torch documents TCPStore and does not export it
            self._store = meeting.TCPStore(host, port, ranks, False)
        torch.distributed.init_process_group(
            "nccl" if device == "cuda" else "gloo",
            store=self._store,
            rank=self._rank,
            world_size=ranks,
            timeout=timedelta(seconds=self._config.runner.heartbeat_s),
        )
        mesh = init_device_mesh(device, (ranks,))
        # If all weights are trained in bfloat16, the shares are the float32 masters, and passes gather them rounded.
        dtype = model.dtype if model.lora else "float32"
        share = ModelShare(self._rank, ranks, mesh)
        self._learner = Learner(load_model(node.model(Path(model_dir), "base"), dtype), self._config, share)
        teacher_at = node.model(Path(teacher_dir), "teacher") if teacher_dir else None
        teacher = Teacher(load_model(teacher_at, model.dtype).to(device)) if teacher_at else None
        self._updater = Updater(self._learner, self._config, teacher)
        return self._learner.size

    def update(self, trajectories: list[Trajectory], advantages_B: Tensor) -> UpdateReport | _Failure | None:
        """The part of the report of this process; None if it was told to stop, as all were then. A _Failure if something was not
        finite: the others then wait in vain, and are ended.
        """
        try:
            return self._updater.run(trajectories, advantages_B, check=self._check)
        except NotFinite as error:
            return error.what, error.rows, error.updates
        except StopRequested:
            self._stop = False
            return None

    @ray.method(concurrency_group="word")
    def stop(self) -> None:
        """Give up the present update before its next micro-batch."""
        self._stop = True

    def _check(self) -> None:
        if self._learner.share.any(self._stop):
            raise StopRequested

    def do(self, name: str, *arguments: Any) -> Any:
        """Call a method of the learner; the first process alone returns the result, on the CPU."""
        result = getattr(self._learner, name)(*arguments)
        return _on_cpu(result) if self._rank == 0 else None

    def collect(self, name: str, *arguments: Any) -> dict[str, Tensor] | None:
        """All items of an iterator of the learner. The first process returns them; the others free each tensor and return None."""
        found = {}
        for key, tensor in getattr(self._learner, name)(*arguments):
            if self._rank == 0:
                found[key] = tensor.detach().cpu()
        return found if self._rank == 0 else None

    def share_bytes(self) -> int:
        """Bytes of this process's share of a checkpoint. A share held for an earlier checkpoint stays."""
        return sum(rows.tensor.nbytes for each in self._learner.shares().values() for rows in each.values())

    def hold(self, copy: bool) -> None:
        """Hold this process's share of a checkpoint; with `copy` as a copy that later training does not change."""
        shares = self._learner.shares()
        if copy:
            shares = {
                owner: {name: rows._replace(tensor=rows.tensor.to("cpu", copy=True)) for name, rows in each.items()}
                for owner, each in shares.items()
            }
        self._held = shares

    def reads(self, paths: list[str]) -> bool:
        return all(os.path.isfile(path) for path in paths)

    @ray.method(concurrency_group="files")
    def write(self, place: CheckpointPlace, step: int) -> list[File] | None:
        """Write the held share while training continues; None if this machine cannot reach the place."""
        ranks = self._config.optim.processes
        try:
            return [write_share(place, step, owner, each, self._rank, ranks) for owner, each in self._holding().items()]
        except OutOfReach:
            return None

    @ray.method(concurrency_group="files")
    def held(self) -> dict[str, dict[str, Rows]]:
        return {
            owner: {name: rows._replace(tensor=rows.tensor.detach().cpu()) for name, rows in each.items()}
            for owner, each in self._holding().items()
        }

    @ray.method(concurrency_group="files")
    def let_go(self) -> None:
        self._held = None

    def _holding(self) -> dict[str, dict[str, Rows]]:
        if self._held is None:
            raise RuntimeError(f"process {self._rank} holds nothing of a checkpoint")
        return self._held


class ShardedLearner:
    """A `Learner` for the loop: every call goes to all processes, and if one is lost, the call ends for all."""

    def __init__(self, config: OnPolicyConfig, model_dir: Path, teacher_dir: Path | None, places: Places) -> None:
        self._config, self._places, ranks = config, places, config.optim.processes
        threads = max(1, (os.cpu_count() or 1) // ranks)
        actor: Any = LearnerActor  # ray.remote adds `options`, which its types lack
        self._actors = [actor.options(**self._options()).remote(config, rank, threads) for rank in range(ranks)]
        hosts = self._together([actor.host.remote() for actor in self._actors])
        host = "127.0.0.1" if len(set(hosts)) == 1 else hosts[0]
        (port,) = self._together([self._actors[0].open.remote(host)])
        teacher = str(teacher_dir.absolute()) if teacher_dir else None
        where = (host, port, str(model_dir.absolute()), teacher)
        self.size: int = self._together([actor.join.remote(*where) for actor in self._actors])[0]

    def update(
        self, trajectories: Sequence[Trajectory], advantages_B: Tensor, check: Callable[[], None] | None = None
    ) -> UpdateReport:
        """Raises NotFinite if one process's update does; the processes are then useless. Raises StopRequested if `check`
        has raised it before the last micro-batch.
        """
        shared = ray.put(list(trajectories)), ray.put(advantages_B)
        refs = [actor.update.remote(*shared) for actor in self._actors]
        self._watched(refs, check)
        parts = self._together(refs, _enough)
        if None in parts:
            raise StopRequested
        for part in parts:
            if isinstance(part, tuple):
                self.close()
                raise NotFinite(*part)
        report: UpdateReport = parts[0]
        for part in parts[1:]:
            report.take_in(part)
        return report

    def sampled_log_probs(
        self, rows: Sequence[Marked], temperature: float, top_p: float, untrained: bool = False
    ) -> list[Tensor]:
        found: list[Tensor] = self._all("sampled_log_probs", list(rows), temperature, top_p, untrained)
        return found

    def merged_weights(self) -> Iterator[tuple[str, Tensor]]:
        yield from self._collected("merged_weights").items()

    def adapter_weights(self, precision: str) -> Iterator[tuple[str, Tensor]]:
        yield from self._collected("adapter_weights", precision).items()

    def policy(self) -> dict[str, Tensor]:
        return self._collected("trained_weights")

    @contextmanager
    def holding(self, policy: Mapping[str, Tensor]) -> Iterator[None]:
        mine = self.policy()
        self._all("fill", policy)
        try:
            yield
        finally:
            self._all("fill", mine)

    def forget_moments(self) -> None:
        self._all("forget_moments")

    def set_lr(self, lr: float) -> None:
        self._all("set_lr", lr)

    def state_tensors(self) -> dict[str, dict[str, Tensor]]:
        """Nothing, because each process saves its own share."""
        return {}

    def elsewhere(self) -> Sequence[Elsewhere]:
        return (_Processes(self._actors, self._together),)

    def load_state_tensors(self, tensors: Mapping[str, Mapping[str, Tensor]]) -> None:
        mine = {owner: tensors[owner] for owner in ("policy", "optimizer")}
        paths = [str(path) for each in mine.values() if isinstance(each, StoredTensors) for path in each.paths]
        if not all(self._together([actor.reads.remote(paths) for actor in self._actors])):
            mine = {owner: dict(each) for owner, each in mine.items()}  # no common disk
        self._all("load_state_tensors", mine)

    def pids(self) -> list[int]:
        """The process id of every process, by rank."""
        return self._together([actor.pid.remote() for actor in self._actors])

    def close(self) -> None:
        for actor in self._actors:
            ray.kill(actor, no_restart=True)
        self._places.leave("learner")

    def _options(self) -> dict[str, Any]:
        place = self._places.take("learner")
        return place.options if place else {"num_cpus": 0, "scheduling_strategy": "DEFAULT"}

    def _watched(self, refs: list[Any], check: Callable[[], None] | None) -> None:
        """Wait until one of them has ended; all processes are told if `check` raises StopRequested."""
        while check is not None and not ray.wait(refs, timeout=_LOOK_S)[0]:
            try:
                check()
            except StopRequested:
                for actor in self._actors:
                    actor.stop.remote()
                return

    def _collected(self, name: str, *arguments: Any) -> dict[str, Tensor]:
        found: dict[str, Tensor] = self._together([actor.collect.remote(name, *arguments) for actor in self._actors])[0]
        return found

    def _all(self, name: str, *arguments: Any) -> Any:
        boxed = [ray.put(argument) for argument in arguments]
        return self._together([actor.do.remote(name, *boxed) for actor in self._actors])[0]

    def _together(self, refs: list[Any], enough: Callable[[Any], bool] = lambda result: False) -> list[Any]:
        """All results, or those so far once one is `enough`. Raises ProcessLost if one is lost or hangs."""
        results: dict[Any, Any] = {}
        waiting = list(refs)
        while waiting:
            ready, waiting = ray.wait(waiting, num_returns=1)
            try:
                results[ready[0]] = ray.get(ready[0])
            except (RayTaskError, RayActorError, OutOfMemoryError) as error:
                raise self._broken(refs, error) from error
            if enough(results[ready[0]]):
                break
        return [results[ref] for ref in refs if ref in results]

    def _broken(self, refs: list[Any], error: Exception) -> Exception:
        """End all processes. If one is lost, the others fail too, so a loss is looked for first."""
        ray.wait(refs, num_returns=len(refs), timeout=_LAST_WORDS_S)
        found = [self._end_of(ref) for ref in refs]
        self.close()
        for rank, reason in enumerate(found):
            who = f"process {rank} of the {len(refs)} that train the model together"
            if isinstance(reason, RayActorError | OutOfMemoryError):
                return ProcessLost(
                    f"{who} was lost, so the others were ended. If memory ran out, what helps is: {self._config.memory_knobs()}"
                )
            if isinstance(reason, GetTimeoutError) and "timed out" in str(error).lower():
                return ProcessLost(
                    f"{who} hangs: the others have waited for it for {self._config.runner.heartbeat_s:g} s "
                    "(runner.heartbeat_s), and all were ended"
                )
        cause = error.cause if isinstance(error, RayTaskError) else error
        return cause if isinstance(cause, Exception) else error

    def _end_of(self, ref: Any) -> Exception | None:
        try:
            ray.get(ref, timeout=0)
        except Exception as error:  # any end of the process answers the question
            return error
        return None


class _Processes:
    """The share of a checkpoint that each process holds (`Elsewhere`). A process holds one at a time: `keep` and `write` are
    called when the one before is published.
    """

    def __init__(self, actors: Sequence[Any], together: Callable[[list[Any]], list[Any]]) -> None:
        self._actors, self._together, self._kept = actors, together, False
        self.bytes: int = max(together([actor.share_bytes.remote() for actor in actors]))

    def keep(self) -> None:
        self._hold(copy=True)
        self._kept = True

    def write(self, place: CheckpointPlace, step: int) -> list[File]:
        """Write in a thread of each process. Raises OSError as one of them did, and ProcessLost if one is lost."""
        if not self._kept:
            self._hold(copy=False)
        found = self._got([actor.write.remote(place, step) for actor in self._actors])
        files = [file for each in found if each is not None for file in each]
        for rank, each in enumerate(found):
            if each is None:
                files += self._sent(rank, place, step)
        return files

    def let_go(self) -> None:
        self._got([actor.let_go.remote() for actor in self._actors])

    def _sent(self, rank: int, place: CheckpointPlace, step: int) -> list[File]:
        """The share of a machine without a common disk, written here."""
        (held,) = self._got([self._actors[rank].held.remote()])
        ranks = len(self._actors)
        return [write_share(place, step, owner, each, rank, ranks) for owner, each in held.items()]

    def _hold(self, copy: bool) -> None:
        self._together([actor.hold.remote(copy) for actor in self._actors])

    def _got(self, refs: list[Any]) -> list[Any]:
        try:
            found: list[Any] = ray.get(refs)
        except RayTaskError as error:
            raise error.cause if isinstance(error.cause, Exception) else error from error
        except (RayActorError, OutOfMemoryError) as error:
            raise ProcessLost(
                "one of the processes that train the model together was lost while a checkpoint was written"
            ) from error
        return found


class ShardedUpdater(Updater):
    """Computes advantages here and updates in the processes."""

    def __init__(self, learner: ShardedLearner, config: OnPolicyConfig) -> None:
        super().__init__(learner, config)  # type: ignore[arg-type]
        self._sharded = learner

    def run(
        self,
        trajectories: Sequence[Trajectory],
        advantages_B: Tensor,
        progress: Callable[[int, int], None] = lambda done, total: None,
        check: Callable[[], None] | None = None,
        learned_B: Sequence[Learned] | None = None,
    ) -> UpdateReport:
        """`learned_B` is None: configs with several processes do not weight responses by what is learned."""
        return self._sharded.update(trajectories, advantages_B, check)


def _enough(result: Any) -> bool:
    return isinstance(result, tuple)


def _on_cpu(value: Any) -> Any:
    if isinstance(value, Tensor):
        return value.detach().cpu()
    return {key: _on_cpu(part) for key, part in value.items()} if isinstance(value, dict) else value
