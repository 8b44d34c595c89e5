"""Writes checkpoints to the disk while training continues."""

from concurrent.futures import Future, ThreadPoolExecutor

from trainer import checkpoints
from trainer.checkpoints import Checkpoint, CheckpointPlace, Saved
from trainer.contracts import ArtifactData
from trainer.monitors import RunMonitor
from trainer.monitors.spool import disk_is_full

FOLDER = "checkpoints"
"""The folder of a run that holds its checkpoints."""
AT_ONCE_BYTES = 64 << 20
"""Below this size a checkpoint is written at once, because copying it first would take longer."""


class Saver:
    """Writes one checkpoint at a time: a second one waits until the first is complete. Only the thread that trains calls it."""

    def __init__(self, place: CheckpointPlace, keep: int, monitor: RunMonitor) -> None:
        self._place, self._keep, self._monitor = place, keep, monitor
        self._thread = ThreadPoolExecutor(1, "checkpoint")
        self._under_way: tuple[Checkpoint, Future[Saved]] | None = None
        self.saved: int | None = None
        """The step of the last checkpoint that was written or resumed from, and that the server knows of."""

    def save(self, checkpoint: Checkpoint, wait: bool) -> None:
        """Returns when training may change everything again; with `wait`, when all is on the disk. Raises OSError."""
        self.settle()
        if wait or checkpoint.bytes < AT_ONCE_BYTES:
            self._patiently(checkpoint)
            return
        copy = checkpoint.kept()
        self._under_way = copy, self._thread.submit(self._write, copy)

    def has(self, checkpoint: Checkpoint) -> bool:
        """Whether this checkpoint was the last to be written, so that writing it again is useless."""
        return self.saved == checkpoint.step and checkpoints.is_saved(self._place, checkpoint)

    def look(self) -> None:
        """Raises the error of a checkpoint, once it is known. A run that is told to end gets the error after its last checkpoint."""
        if self._monitor.command == "continue" and self._under_way is not None and self._under_way[1].done():
            self.settle()

    def settle(self) -> None:
        """Wait until the checkpoint under way is on the disk; if the disk is full, wait for room. Raises OSError."""
        if self._under_way is None:
            return
        (checkpoint, writing), self._under_way = self._under_way, None
        error = writing.exception()
        if error is None:
            return
        if not disk_is_full(error):
            raise error
        self._patiently(checkpoint)

    def close(self) -> None:
        """End the checkpoint under way, with or without success: the run has already failed, or has called `settle`."""
        self._thread.shutdown(wait=True)

    def _patiently(self, checkpoint: Checkpoint) -> None:
        self._monitor.patiently(lambda: self._write(checkpoint), checkpoint.step)

    def _write(self, checkpoint: Checkpoint) -> Saved:
        # A run that resumes does not make the records of these steps again.
        self._monitor.flush()
        saved = checkpoints.save(self._place, checkpoint, self._keep)
        path = f"{FOLDER}/{saved.name}"
        artifact = ArtifactData(role="checkpoint", path=path, bytes=saved.bytes, digest=saved.digest)
        self._monitor.artifact(artifact, checkpoint.step)
        self.saved = checkpoint.step
        return saved
