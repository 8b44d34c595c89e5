"""Processes of a gloo group that share a model. They are forks of this process, which has imported the libraries and must not have computed
anything.
"""

import os
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import torch

from trainer.loops.learner.sharding import ModelShare


def run_group(work: Callable[[ModelShare], None], store: Path, count: int) -> list[int]:
    """Runs `work` in each of `count` processes, with the share of each. Returns how each ended, as `os.waitpid` tells it."""
    children = []
    for rank in range(count):
        child = os.fork()
        if child == 0:
            _run(work, store, rank, count)
        children.append(child)
    return [os.waitpid(child, 0)[1] for child in children]


def _run(work: Callable[[ModelShare], None], store: Path, rank: int, count: int) -> NoReturn:
    ended = 1
    try:
        work(_share(store, rank, count))
        ended = 0
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(ended)  # a fork must not run the exit handlers of its parent


def _share(store: Path, rank: int, count: int) -> ModelShare:
    if count == 1:
        return ModelShare()
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    files = torch.distributed.FileStore(str(store), count)  # type: ignore[attr-defined]
    torch.distributed.init_process_group("gloo", store=files, rank=rank, world_size=count)
    return ModelShare(rank, count, torch.distributed.init_device_mesh("cpu", (count,)))  # type: ignore[attr-defined]
