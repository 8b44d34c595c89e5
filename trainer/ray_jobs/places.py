"""The folder of a run: one that its server sees too, or this node's own for as long as an attempt lasts."""

import shutil
import time
from pathlib import Path

from trainer.contracts import RunAssignment
from trainer.storing import ObjectStore, StoreRefused, scratch

from . import folder

LEFT_S = 3600.0
"""Seconds after which files that a dead process has left on a node are removed."""


def run_dir(assignment: RunAssignment) -> Path:
    """The folder of the run. If the node shares no disk, it is that of this attempt alone: files of an earlier attempt may be older
    than what another node has reported since. Raises OSError.
    """
    if not assignment.store_url:
        return Path(assignment.run_dir)
    runs = scratch(assignment.store_url) / "runs"
    clear_left(runs)
    return runs / f"{assignment.run_id}-{assignment.attempt}"


def newest_checkpoint(assignment: RunAssignment, store: ObjectStore, run_dir: Path) -> None:
    """Fetch the newest checkpoint into the run's folder. A checkpoint that is not as it was written is skipped for the one before it.

    Raises StoreAway and OSError, and StoreRefused if there are checkpoints and none is complete.
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
    """Remove folders of attempts that were killed. No process uses them, because each attempt has its own."""
    for left in runs.glob("*-*"):
        try:
            is_old = time.time() - left.stat().st_mtime > LEFT_S
            if is_old:
                with folder.lock_folder(left, 0.0):
                    shutil.rmtree(left, ignore_errors=True)
        except (OSError, folder.FolderTaken):
            continue
