"""Rounds of stored responses: which steps belong to which round, and the file that holds a frozen round."""

import hashlib
import json
import os
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from trainer.config import OnPolicyConfig
from trainer.rollouts import PromptPlan, Trajectory
from trainer.rollouts.stored import read, stored_trajectory
from trainer.seeding import derive_seed


@dataclass(frozen=True)
class StoredRounds:
    """Rounds of `length` steps each; round 1 has steps 1 to `length`. `epochs` are those of the first round and of the later ones."""

    seed: int
    steps: int
    length: int
    prompts_per_step: int
    epochs: tuple[int, int]
    shuffle: bool

    @classmethod
    def of(cls, config: OnPolicyConfig) -> "StoredRounds":
        runner, prompts = config.runner, config.rollout.prompts_per_step
        epochs = (runner.round_epochs, runner.later_round_epochs or runner.round_epochs)
        return cls(config.seed, config.steps, runner.push_every, prompts, epochs, config.data.shuffle)

    @property
    def count(self) -> int:
        return self.steps // self.length

    def epochs_of(self, number: int) -> int:
        """The number of passes of round `number` over its prompts."""
        return self.epochs[number > 1]

    def prompts(self, number: int) -> int:
        """The number of prompts that round `number` asks: all its passes together visit as many as its steps hold."""
        return self.length * self.prompts_per_step // self.epochs_of(number)

    def prompts_before(self, number: int) -> int:
        """The number of prompts that the rounds before `number` ask."""
        return sum(self.prompts(each) for each in range(1, number))

    def number(self, step: int) -> int:
        """The number, from 1, of the round that `step` trains in."""
        return (step - 1) // self.length + 1

    def begins(self, step: int) -> bool:
        return (step - 1) % self.length == 0

    def first_step(self, number: int) -> int:
        return (number - 1) * self.length + 1

    def version_at(self, step: int) -> int:
        """The step whose weights sample after step `step`."""
        return step // self.length * self.length

    def dealt(self, step: int, kept: Sequence[int]) -> list[int]:
        """The groups that step `step` trains on, among those that a round has `kept`.

        All passes, each in its own order, form one sequence that is dealt out evenly. So a round makes exactly its passes
        over the groups it kept, even if many were left out, and no step has more than `prompts_per_step`.
        """
        number, place = self.number(step), (step - 1) % self.length
        total = len(kept) * self.epochs_of(number)
        start, end = place * total // self.length, (place + 1) * total // self.length
        return [self._pass(number, at // len(kept), kept)[at % len(kept)] for at in range(start, end)]

    def _pass(self, number: int, epoch: int, kept: Sequence[int]) -> list[int]:
        order = list(kept)
        if self.shuffle:
            random.Random(derive_seed(self.seed, "offline", number, epoch)).shuffle(order)  # noqa: S311 - an order
        return order


class RoundFile:
    """The responses of one round, one line for each lot, written as the lots come and never changed.

    The first line says what the responses answer (`about`); each line carries the digest of its content. If a killed process left a file
    about the same, its lines are taken over up to the first that is not complete.
    """

    def __init__(self, path: Path, about: dict[str, Any]) -> None:
        self._path, self._about = path, about

    def lots(self, plans: Sequence[Sequence[PromptPlan]]) -> Iterator[list[Trajectory]]:
        """The stored lots, in order, for these plans. Cuts off what follows them."""
        lines = self._lines()
        about, whole = next(lines, (None, 0))
        if about != self._about:
            self._begin()
            return
        for lot, (rows, length) in zip(plans, lines, strict=False):
            yield [read(row, plan) for row, plan in zip(rows, lot, strict=True)]
            whole += length
        with self._path.open("r+b") as file:
            file.truncate(whole)

    def add(self, lot: Sequence[Trajectory]) -> None:
        """Raises OSError; earlier lots stay readable."""
        self._write("ab", _line([stored_trajectory(trajectory) for trajectory in lot]))

    def _begin(self) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._write("wb", _line(self._about))

    def _write(self, mode: str, line: bytes) -> None:
        with self._path.open(mode) as file:
            file.write(line)
            file.flush()
            os.fsync(file.fileno())

    def _lines(self) -> Iterator[tuple[Any, int]]:
        """Content and length of each line, up to the first that is not as it was written."""
        if not self._path.is_file():
            return
        with self._path.open("rb") as file:
            for line in file:
                digest, _, content = line.removesuffix(b"\n").partition(b" ")
                if not line.endswith(b"\n") or hashlib.sha256(content).hexdigest().encode() != digest:
                    return
                yield json.loads(content), len(line)


def _line(content: Any) -> bytes:
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":")).encode()
    return hashlib.sha256(text).hexdigest().encode() + b" " + text + b"\n"
