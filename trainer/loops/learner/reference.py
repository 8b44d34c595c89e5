"""Stores the log-probabilities of stored answers under the untrained model: they are measured once and kept in the run's folder under a
digest."""

import hashlib
import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from trainer.inference.common import is_common, once

from ..session.fingerprint import sampled_digest
from .learner import Learner, Sequence_

Progress = Callable[[int, int], None]


class Reference:
    """Log-probabilities of sequences under the model in `base`, also when the learner has been trained meanwhile.

    With adapters these are switched off. Without adapters no second copy of the model is kept: if the file is lost in the
    middle of a run, the learner holds the base's weights again while it measures.
    """

    def __init__(self, learner: Learner, base: Path, run_dir: Path, dtype: str, sequences: Sequence[Sequence_]) -> None:
        self._learner, self._base, self._sequences = learner, base, list(dict.fromkeys(sequences))
        self._place = {sequence: place for place, sequence in enumerate(self._sequences)}
        whole = hashlib.sha256(f"{sampled_digest(base)} {dtype}".encode())
        for prompt, response in self._sequences:
            whole.update(f"{list(prompt)}{list(response)}\n".encode())
        self._file = run_dir / f"reference-{whole.hexdigest()[:16]}.safetensors"
        self._known: list[Tensor] | None = None

    def of(self, sequence: Sequence_) -> Tensor:
        """Log-probabilities [T] of a sequence, once `ready` has been called."""
        assert self._known is not None  # noqa: S101 - the stage calls `ready` first
        return self._known[self._place[sequence]]

    def ready(self, started: bool, packs: Sequence[Sequence[Sequence_]], progress: Progress) -> None:
        """Read or measure. `packs` divides the sequences into passes; `started`: the learner has been trained already.

        If `progress` raises, nothing is left behind.
        """
        if not self.known:
            self._known = self._read() or self._measured(started, packs, progress)

    @property
    def known(self) -> bool:
        return self._known is not None

    def _read(self) -> list[Tensor] | None:
        try:
            flat = load_file(self._file)["logp"]
        except (OSError, SafetensorError, KeyError):
            return None
        lengths = [len(response) for _, response in self._sequences]
        return list(flat.split(lengths)) if len(flat) == sum(lengths) else None

    @torch.no_grad()
    def _measured(self, started: bool, packs: Sequence[Sequence[Sequence_]], progress: Progress) -> list[Tensor]:
        def measure() -> dict[Sequence_, Tensor]:
            with untrained(self._learner, self._base) if started else nullcontext():
                return log_probs(self._learner, packs, progress, untrained=True)

        # Runs that train together have one base; sums over other passes would round differently.
        found = once(("reference", self._file.name, _grouping(packs)), measure)
        known = [found[sequence] for sequence in self._sequences]
        partial = self._file.with_suffix(".partial")
        save_file({"logp": torch.cat(known)}, partial)
        os.replace(partial, self._file)
        return known


def _grouping(packs: Sequence[Sequence[Sequence_]]) -> tuple[int, ...]:
    """A hash of each pass: which sequences go through the model together. Empty if the run trains alone."""
    return tuple(hash(tuple(pack)) for pack in packs) if is_common() else ()


@contextmanager
def untrained(learner: Learner, base: Path) -> Iterator[None]:
    """While the block runs, `learner` can be scored as it was before training: if it has neither adapters to switch off nor a frozen copy,
    it holds the weights of `base`.
    """
    if learner.refers:
        yield
        return
    from trainer.inference.models import load_model

    with learner.holding(dict(load_model(base).named_parameters())):
        yield


@torch.no_grad()
def log_probs(
    learner: Learner, packs: Sequence[Sequence[Sequence_]], progress: Progress, untrained: bool = False
) -> dict[Sequence_, Tensor]:
    """Log-probabilities [T] of each answer's tokens, pass by pass."""
    found: dict[Sequence_, Tensor] = {}
    for done, pack in enumerate(packs):
        progress(done, len(packs))
        new = [sequence for sequence in dict.fromkeys(pack) if sequence not in found]
        if new:
            scored = learner.score(new, 1.0, untrained=untrained)
            found |= {sequence: part.logp_T for sequence, part in zip(new, scored, strict=True)}
    return found
