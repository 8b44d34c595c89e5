"""Writes pass rates into a version's examples (`meta.pass_rate`), where runs read them: hints, stages, orders."""

from collections.abc import Iterator, Sequence

import numpy as np

from trainer.contracts import Example
from webapp.accounts.models import Membership
from webapp.core.problems import Invalid

from . import queries
from .exploration import probes
from .models import DatasetVersion, Probe
from .versions import services

MOST = 50_000
"""The most examples that a request may write."""


def write(membership: Membership, version: DatasetVersion, found: Sequence[Probe]) -> DatasetVersion:
    """Makes the next version, whose examples have the pass rate of these probes together: all answers that passed, divided by all answers
    with a score. An example that no probe knows keeps its value. Raises Invalid."""
    total = version.counts.get("examples", 0)
    if not found:
        raise Invalid("There is nothing to write.", {"probes": "name at least one"})
    if total > MOST:
        raise Invalid(
            "The version is too large.", {"probes": f"{total:,} examples; derive a version of at most {MOST:,} first"}
        )
    rates = _together(version, found)
    if not rates:
        raise Invalid("There is nothing to write.", {"probes": "no example of this version has a pass rate by them"})
    lineage = {"from": "probe", "probes": [probe.pk for probe in found], "words": [str(probe) for probe in found]}
    return services.new_version(
        membership, version.dataset, _records(version, rates), version, {**lineage, "written": len(rates)}
    )


def _together(version: DatasetVersion, found: Sequence[Probe]) -> dict[int, float]:
    """The pass rates by position."""
    counts = [probes.of_probe(version, probe).counts() for probe in found]
    passed, tried = (np.sum([each[which] for each in counts], axis=0) for which in (0, 1))
    return {int(place): float(passed[place] / tried[place]) for place in np.flatnonzero(tried)}


def _records(version: DatasetVersion, rates: dict[int, float]) -> Iterator[Example]:
    for position, line in queries.stream_canonical(version):
        if position in rates:
            example = Example.model_validate_json(line)
            yield example.model_copy(update={"meta": {**example.meta, "pass_rate": round(rates[position], 6)}})
