"""Pass rates: which prompts of a version a model solves always, sometimes or never.

A probe belongs to the examples that it asked about. Another version of the dataset has the pass rates of the examples that it shares with
the probe's version: an example with changed content is another one, without a pass rate.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import partial

import numpy as np
from django.db.models import QuerySet
from numpy.typing import NDArray

from trainer.metrics.estimate import Estimate, proportion
from webapp.core.problems import Invalid

from ..columns import packed
from ..columns.arrays import Array
from ..columns.filters import REACH, Filters
from ..columns.packed import Columns, Mask
from ..models import DatasetVersion, Example, Probe, VersionMember

MOST_SHOWN = 50
MOST_DOMAINS = 20
COUNTS = ("passed", "tried")
UNSCORED = "no answer has a score"


@dataclass(frozen=True, eq=False)
class Passed:
    """Arrays by position: `rate`, NaN if it is not known, and of how many answers; without those if a file gives the rates."""

    rate: NDArray[np.float32]
    tried: Array | None = None

    def reach(self, name: str) -> Mask:
        """The positions that are solved, learnable, out of reach or unknown."""
        known = ~np.isnan(self.rate)
        masks: dict[str, Mask] = {
            "solved": self.rate == 1,
            "learnable": known & (self.rate > 0) & (self.rate < 1),
            "out": self.rate == 0,
            "unknown": ~known,
        }
        return masks[name]

    def counts(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Arrays by position: answers that passed, answers with a score."""
        tried = np.zeros(len(self.rate), np.int64) if self.tried is None else self.tried.astype(np.int64)
        return np.rint(np.nan_to_num(self.rate) * tried).astype(np.int64), tried

    def share(self, position: int) -> Estimate:
        """The rate of one example with its 95% interval (Wilson)."""
        tried = 0 if self.tried is None else int(self.tried[position])
        return proportion(round(float(self.rate[position]) * tried) if tried else 0, tried, empty=UNSCORED)


def all_of(dataset_id: int) -> QuerySet[Probe]:
    """The probes of the dataset, of any version, without their columns."""
    return Probe.objects.filter(version__dataset=dataset_id).select_related("version").defer(*COUNTS)


def of_dataset(dataset_id: int) -> list[Probe]:
    """The newest probes of the dataset."""
    return list(all_of(dataset_id).order_by("-id")[:MOST_SHOWN])


def passed(version: DatasetVersion, filters: Filters) -> Passed:
    """The pass rates to which the filters refer. Raises Invalid at `probe`, if the dataset has none of this number."""
    held = packed.columns(version)
    if filters.probe is None:
        return Passed(held["pass_rate"])
    # read each time, because another process may have deleted it
    probe = Probe.objects.filter(pk=filters.probe, version__dataset=version.dataset_id).defer(*COUNTS).first()
    if probe is None:
        raise Invalid("The filters cannot be read.", {"probe": f"this dataset has no probe {filters.probe}"})
    return of_probe(version, probe)


def of_probe(version: DatasetVersion, probe: Probe) -> Passed:
    held = packed.columns(version)
    return held.once(f"probe {probe.pk}", partial(_read, held, probe))


def _read(held: Columns, probe: Probe) -> Passed:
    same = probe.version_id == held.version_id
    ids = held[packed.ID] if same else packed.columns(probe.version)[packed.ID]
    counts = [_counts(probe, name, len(ids)) for name in COUNTS]
    if not same:
        places = _places(held[packed.ID], ids)
        counts = [np.append(each, np.uint8(0))[places] for each in counts]
    passed, tried = counts
    rate = np.full(len(tried), np.nan, np.float32)
    np.divide(passed, tried, out=rate, where=tried > 0)
    return Passed(rate, tried)


def _counts(probe: Probe, name: str, examples: int) -> NDArray[np.uint8]:
    """The counts by position in the version that was asked. A probe with fewer values has none for the other examples."""
    held = np.frombuffer(getattr(probe, name), np.uint8)[:examples]
    return np.append(held, np.zeros(examples - len(held), np.uint8))


def _places(ids: Array, theirs: Array) -> NDArray[np.int64]:
    """The position of each example in the version that was asked; -1 for one that is not in it."""
    if not len(theirs):
        return np.full(len(ids), -1)
    order = np.argsort(theirs)
    found = order[np.minimum(np.searchsorted(theirs, ids, sorter=order), len(order) - 1)]
    return np.where(theirs[found] == ids, found, -1)


@dataclass(frozen=True)
class VersionPart:
    """Some examples of a version: `name` and `query` are the filters that lead to them, `share` of those with a pass rate."""

    name: str
    count: int
    query: Mapping[str, str]
    share: Estimate | None = None


@dataclass(frozen=True)
class Map:
    """The examples of a version by their pass rates. `parts` are those of REACH; `bars` run from no answer to every answer; `domains` has
    the counts of `parts` for the most frequent domains."""

    parts: list[VersionPart]
    bars: list[VersionPart]
    domains: list[tuple[str, list[VersionPart]]]

    @property
    def known(self) -> int:
        return sum(part.count for part in self.parts if part.name != "unknown")


def map_of(version: DatasetVersion, probe: Probe) -> Map:
    found, about = of_probe(version, probe), {"probe": str(probe.pk)}
    reach = {name: found.reach(name) for name in REACH}
    known = int(len(found.rate) - reach["unknown"].sum())
    parts = []
    for name, mask in reach.items():
        count = int(mask.sum())
        share = None if name == "unknown" else proportion(count, known, empty="no example has a pass rate")
        parts.append(VersionPart(name, count, {**about, "reach": name}, share))
    return Map(parts, list(_bars(found, about)), _domains(version, reach, about))


def _bars(found: Passed, about: Mapping[str, str]) -> Iterator[VersionPart]:
    """The bars: none, tenths in between, all."""
    between = found.reach("learnable")
    yield VersionPart("0", int(found.reach("out").sum()), {**about, "reach": "out"})
    for tenth in range(10):
        low, high = tenth / 10, (tenth + 1) / 10
        count = int((between & packed.within(found.rate, (low, high), False)).sum())
        words = f"{low:g} to {high:g}"
        yield VersionPart(words, count, {**about, "reach": "learnable", "pass_rate": f"{low:g}..{high:g}"})
    yield VersionPart("1", int(found.reach("solved").sum()), {**about, "reach": "solved"})


def _domains(
    version: DatasetVersion, reach: Mapping[str, Mask], about: Mapping[str, str]
) -> list[tuple[str, list[VersionPart]]]:
    held = packed.columns(version)
    codes, values = held["domain"], held.values("domain")
    counts = np.bincount(codes, minlength=len(values))
    rows = []
    for code in np.argsort(-counts, kind="stable")[:MOST_DOMAINS]:
        if domain := values[code]:
            here = codes == code
            query = {**about, "domain": domain}
            parts = [
                VersionPart(name, int((mask & here).sum()), {**query, "reach": name}) for name, mask in reach.items()
            ]
            rows.append((domain, parts))
    return rows


@dataclass(frozen=True)
class Rate:
    """The pass rate of one example by one probe; `share` has the 95% interval."""

    probe: Probe
    share: Estimate


def of_example(row: Example) -> list[Rate]:
    """The pass rates of the example in the newest probes, if they asked about it."""
    probes = of_dataset(row.dataset_id)
    asked = {probe.version_id for probe in probes}
    members = VersionMember.objects.filter(example=row, version__in=asked)
    places = dict(members.values_list("version_id", "position"))
    wanted = [probe.pk for probe in probes if probe.version_id in places]
    columns = {each.pk: each for each in Probe.objects.filter(pk__in=wanted).only(*COUNTS)}
    found = []
    for probe in probes:
        if probe.pk in columns:
            at = places[probe.version_id]
            passed, tried = (int(_counts(columns[probe.pk], name, at + 1)[at]) for name in COUNTS)
            found.append(Rate(probe, proportion(passed, tried, empty=UNSCORED)))
    return found
