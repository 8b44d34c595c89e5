"""The rule that gives an example its side of the split, train or held out, so that no prompt is on both."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from typing import NamedTuple, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from trainer.contracts import Example
from trainer.contracts.example import Split
from webapp.files.records import RowProblem

from ..columns.prompt_hashes import Hashes
from .digests import side

GROUP_FIELDS = ("domain", "source")  # besides `meta.NAME`
META = "meta."
LONGEST = 80  # characters of a field's name
NEVER = "an example never changes side"
ONE_SIDE = "a prompt stands on one side"
NO_SIDE: frozenset[Split] = frozenset()
TRAIN: frozenset[Split] = frozenset({"train"})
HELDOUT: frozenset[Split] = frozenset({"heldout"})
BOTH = TRAIN | HELDOUT


class Ground(IntEnum):
    """The reason why an example is on its side. If two grounds contradict each other, the smaller one wins.

    MIXED: earlier versions have its prompt on both sides already, which no decision here can mend.
    """

    MIXED = 0
    EARLIER = 1
    GIVEN = 2
    DRAWN = 3


class Splittable(Protocol):
    """An example, or those of its fields that decide its side."""

    @property
    def key(self) -> str: ...

    @property
    def split(self) -> Split | None: ...


class Decision(NamedTuple):
    split: Split | None
    ground: Ground


class Settled(NamedTuple):
    """The side of a prompt or group that rows of one file claim for both sides, and the place of the row that decides."""

    split: Split
    where: str

    def __str__(self) -> str:
        return f"{self.split} by {self.where}"


@dataclass(frozen=True, eq=False)
class EarlierSides:
    """The sides of prompts and groups in the earlier versions of a dataset. `hashes` is sorted and without repeats."""

    hashes: NDArray[np.int64]
    train: NDArray[np.bool_]
    heldout: NDArray[np.bool_]

    @classmethod
    def none(cls) -> "EarlierSides":
        return cls(np.zeros(0, np.int64), np.zeros(0, bool), np.zeros(0, bool))

    @classmethod
    def of(cls, train: NDArray[np.int64], heldout: NDArray[np.int64]) -> "EarlierSides":
        """Made from hashes in any order, with repeats; 0 is not a hash."""
        hashes = np.union1d(train, heldout)
        hashes = hashes[hashes != 0]
        return cls(hashes, np.isin(hashes, train), np.isin(hashes, heldout))

    def at(self, unit: int) -> frozenset[Split]:
        """The sides of the prompt or group: none, one or both."""
        if not unit or not len(self.hashes):
            return NO_SIDE
        place = int(np.searchsorted(self.hashes, unit))
        if place == len(self.hashes) or self.hashes[place] != unit:
            return NO_SIDE
        return BOTH if self.train[place] and self.heldout[place] else TRAIN if self.train[place] else HELDOUT


@dataclass(frozen=True, eq=False)
class Rule:
    """Decides a side, in this order: the key's side in an earlier version (`before`), the side of its prompt or group there, the
    example's
    own split, and a draw for its group or prompt with `share` as the held-out part. If `share` is None, nothing is drawn.

    `settled` holds prompts and groups that one file put on both sides: see `ingest.split_conflicts`.
    """

    share: float | None
    group_by: str = ""
    earlier: EarlierSides = field(default_factory=EarlierSides.none)
    settled: Mapping[int, Settled] = field(default_factory=dict)

    def group_of(self, example: Example) -> str:
        """The example's own group or, without one, the value of the field by which the rule groups."""
        if example.group or not self.group_by:
            return example.group
        if self.group_by.startswith(META):
            value = example.meta.get(self.group_by.removeprefix(META))
            return "" if value is None else str(value)
        return str(getattr(example, self.group_by))

    def decide(
        self, line: int, example: Splittable, hashes: Hashes, before: Mapping[str, str]
    ) -> Decision | RowProblem:
        """The side of an example with these hashes, or why its own split is impossible."""
        had = cast(Split | None, before.get(example.key))
        if had and example.split and example.split != had:
            return RowProblem(line, "split", f"{example.key!r} is {had} in an earlier version; {NEVER}")
        sides = [self.earlier.at(unit) for unit in hashes]
        clear: set[Split] = {side for each in sides if len(each) == 1 for side in each}
        if len(clear) > 1:
            return RowProblem(
                line, "split", f"its prompt and its group are on different sides in earlier versions; {ONE_SIDE}"
            )
        asked = next(iter(clear), None)
        mixed = BOTH in sides and not asked
        named = had or example.split
        if asked and named and named != asked:
            return RowProblem(line, "split", f"its prompt or group is {asked} in an earlier version; {ONE_SIDE}")
        earlier = had or asked
        settled = self.settled.get(hashes.group) or self.settled.get(hashes.prompt)
        split = earlier or example.split or self._drawn(hashes, settled, mixed)
        if settled and not mixed and split != settled.split:
            return RowProblem(line, "split", f"is {split}, but its prompt or group is {settled}; {ONE_SIDE}")
        ground = Ground.EARLIER if earlier else Ground.GIVEN if example.split else Ground.DRAWN
        return Decision(split, Ground.MIXED if mixed else ground)

    def _drawn(self, hashes: Hashes, settled: Settled | None, mixed: bool) -> Split | None:
        if mixed:
            return "train"  # the model may know the held-out part from training already, so it must not grow
        if settled:
            return settled.split
        return None if self.share is None else side(f"{hashes.unit % 2**64:016x}", self.share)


def group_field(name: str) -> str:
    """The field to group by, as `Rule` wants it; empty for the prompt. Raises ValueError if it is not such a field."""
    name = name.strip()
    if name in ("", "prompt"):
        return ""
    if name in GROUP_FIELDS or (name.startswith(META) and len(META) < len(name) <= LONGEST and "\0" not in name):
        return name
    raise ValueError(f"must be prompt, {', '.join(GROUP_FIELDS)} or {META}NAME")
