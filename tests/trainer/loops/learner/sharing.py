"""`python -m tests.trainer.loops.learner.sharing MODEL OUT`: checkpoints of one, two and three gloo processes, read by as many other
processes.

All processes are forks, so that libraries are imported once. The parent must not have computed anything before.
"""

import json
import os
import signal
import sys
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.distributed.fsdp
import torch.distributed.tensor
import transformers.models.llama.modeling_llama  # noqa: F401 - once, not in every fork
from torch.utils._python_dispatch import TorchDispatchMode

from trainer import checkpoints
from trainer.checkpoints import Checkpoint, CheckpointPlace, File, Folder, write_share
from trainer.config import resolve
from trainer.inference.models import load_model
from trainer.loops.learner.learner import Learner
from trainer.loops.learner.sharding import ModelShare

from .gloo_group import run_group

COUNTS = (1, 2, 3)
SETTINGS = {"model": {"lora": None}, "optim": {"optimizer": "muon", "minibatch_size": None}}


class Held(TorchDispatchMode):
    """Counts the bytes of living tensors that are made while it is switched on."""

    def __init__(self) -> None:
        super().__init__()
        self.now = self.most = 0
        self._seen: set[int] = set()

    def __torch_dispatch__(self, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        for tensor in args:  # earlier tensors, and views of them, do not count
            if isinstance(tensor, torch.Tensor) and not hasattr(tensor, "full_tensor"):
                self._seen.add(tensor.untyped_storage().data_ptr())
        found = function(*args, **(kwargs or {}))
        for tensor in found if isinstance(found, tuple | list) else [found]:
            if isinstance(tensor, torch.Tensor) and not hasattr(tensor, "full_tensor"):
                self._count(tensor.untyped_storage())
        return found

    def _count(self, storage: Any) -> None:
        place = storage.data_ptr()
        if place and place not in self._seen:
            self._seen.add(place)
            self.now += storage.nbytes()
            self.most = max(self.most, self.now)
            weakref.finalize(storage, self._gone, place, storage.nbytes())

    def _gone(self, place: int, size: int) -> None:
        self._seen.discard(place)
        self.now -= size


def learner_of(model: Path, share: ModelShare) -> Learner:
    return Learner(load_model(model, "float32"), resolve("policy", SETTINGS), share, reference=False)


def saved(learner: Learner, share: ModelShare, place: CheckpointPlace, number: int) -> list[File]:
    """The files that this process puts. It copies tensors first, like a run."""
    copies = {
        owner: {name: rows._replace(tensor=rows.tensor.clone()) for name, rows in each.items()}
        for owner, each in learner.shares().items()
    }
    return [write_share(place, number, owner, each, share.rank, share.ranks) for owner, each in copies.items()]


class Others:
    """The files of all processes, as the first process receives them."""

    bytes = 0

    def __init__(self, files: list[File]) -> None:
        self._files = files

    def keep(self) -> None:
        pass

    def let_go(self) -> None: ...

    def write(self, place: CheckpointPlace, step: int) -> list[File]:
        return self._files


class Begun(Folder):
    """A place that every process has already begun."""

    def begin(self, step: int) -> None:
        pass


def writes(model: Path, out: Path, share: ModelShare) -> None:
    learner = learner_of(model, share)
    draw = torch.Generator().manual_seed(share.rank)
    for parameter in learner.parameters.values():
        own = parameter.to_local() if share.mesh else parameter  # type: ignore[attr-defined]
        parameter.grad = torch.zeros_like(parameter)
        filled = parameter.grad.to_local() if share.mesh else parameter.grad  # type: ignore[attr-defined]
        filled.copy_(torch.randn(own.shape, generator=draw))
    learner.end_update()  # now the moments of every parameter have different numbers
    place = Begun(out / f"of-{share.ranks}")
    if share.rank == 0:
        Folder(place.root).begin(1)
    meet()
    whole = learner.state_tensors()  # the content of a gathered checkpoint
    with Held() as held:
        files = saved(learner, share, place, 1)
    told = {
        "most": held.most,
        "share": sum(rows.tensor.nbytes for each in learner.shares().values() for rows in each.values()),
        "largest": max(tensor.nbytes for each in whole.values() for tensor in each.values()),
        "whole": sum(tensor.nbytes for each in whole.values() for tensor in each.values()),
    }
    (out / f"held-{share.ranks}-{share.rank}.json").write_text(json.dumps(told))
    every = gathered(files, share)
    if share.rank == 0:
        checkpoints.save(place, Checkpoint(1, {"by": share.ranks}, {}, (Others(every),)), keep=2)
        torch.save(whole, out / f"whole-{share.ranks}.pt")
    meet()
    if share.ranks == 2:
        is_killed_in_the_middle(learner, share, place)


def is_killed_in_the_middle(learner: Learner, share: ModelShare, place: Begun) -> None:
    """The second process ends when one of its files is half written; the first process has put its own files by then."""
    if share.rank == 0:
        Folder(place.root).begin(2)
    meet()
    if share.rank == 0:
        saved(learner, share, place, 2)
        return

    def dies(path: Path) -> None:
        path.write_bytes(b"half")
        os.kill(os.getpid(), signal.SIGKILL)

    place.put(2, "policy-00002-of-00002.safetensors", dies)


def reads(model: Path, out: Path, share: ModelShare) -> None:
    """Each process reads its share, also if another process wrote it. Then all of it equals the original."""
    learner = learner_of(model, share)
    for count in COUNTS:
        loaded = checkpoints.load_newest(out / f"of-{count}")
        assert loaded is not None and loaded.step == 1 and loaded.state == {"by": count}
        learner.load_state_tensors(loaded.tensors)
        expected = torch.load(out / f"whole-{count}.pt", weights_only=True)
        for owner, tensors in learner.state_tensors().items():
            assert tensors.keys() == expected[owner].keys()
            assert all(torch.equal(tensor, expected[owner][name]) for name, tensor in tensors.items())
    (out / f"read-{share.ranks}-{share.rank}").touch()


def meet() -> None:
    if torch.distributed.is_initialized():
        torch.distributed.barrier()


def gathered(files: list[File], share: ModelShare) -> list[File]:
    if share.ranks == 1:
        return files
    every: list[Any] = [None] * share.ranks
    torch.distributed.all_gather_object(every, files)
    return [file for each in every for file in each]


def together(work: Callable[[Path, Path, ModelShare], None], model: Path, out: Path, count: int) -> list[int]:
    """How each of `count` processes ended."""
    return run_group(lambda share: work(model, out, share), out / f"{work.__name__}-{count}", count)


if __name__ == "__main__":
    torch.set_num_threads(1)
    directory, folder = Path(sys.argv[1]), Path(sys.argv[2])
    ends = {
        f"{work.__name__} {count}": together(work, directory, folder, count)
        for work in (writes, reads)
        for count in COUNTS
    }
    (folder / "ends.json").write_text(json.dumps(ends))
