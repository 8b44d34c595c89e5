"""The folder of a run: one that its server sees too, or this node's own for as long as an attempt lasts."""

import shutil
import time
from pathlib import Path

from trainer.contracts import RunAssignment
from trainer.storing import ObjectStore, StoreRefused, scratch

from . import folder

LEFT_S = 3600.0
"""After which what a process that is gone has left on a node is removed."""


def run_dir(assignment: RunAssignment) -> Path:
    """Of this attempt alone where the node shares no disk: what an earlier attempt left on it may be older than what another
    node has told since. Raises OSError."""
    if not assignment.store_url:
        return Path(assignment.run_dir)
    runs = scratch(assignment.store_url) / "runs"
    clear_left(runs)
    return runs / f"{assignment.run_id}-{assignment.attempt}"


def newest_checkpoint(assignment: RunAssignment, store: ObjectStore, run_dir: Path) -> None:
    """Fetched into the run's folder. One that is not what was written is passed over for the one before it.

    Raises StoreAway and OSError, and StoreRefused where there are some and none is whole.
    """
    problems = []
    for name in assignment.checkpoints:
        target = run_dir / name
        if target.is_dir():
            return
        try:
            store.fetch(name, target)
            return
        except StoreRefused as error:
            problems.append(f"{name}: {error}")
    if problems:
        raise StoreRefused("; ".join(problems))


def clear(run_dir: Path) -> None:
    shutil.rmtree(run_dir, ignore_errors=True)


def clear_left(runs: Path) -> None:
    """Folders of attempts that were killed. Nobody is in them, and nobody will be: each attempt has its own."""
    for left in runs.glob("*-*"):
        try:
            is_old = time.time() - left.stat().st_mtime > LEFT_S
            if is_old:
                with folder.alone(left, 0.0):
                    shutil.rmtree(left, ignore_errors=True)
        except (OSError, folder.FolderTaken):
            continue
