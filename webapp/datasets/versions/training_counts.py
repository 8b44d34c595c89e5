"""The counts of a version that recipes need: `trainer.contracts.training_counts` over its examples, by split.

They are counted when somebody first asks, and kept, because a version never changes. A worker counts a large version. The tags and domains
of the training examples are counted too, so that a config can name them without reading the examples.
"""

from collections import Counter
from typing import Any

from django.core.cache import cache

from trainer.contracts import Example, training_counts
from trainer.contracts.labels import Labels
from webapp.core.tasks import enqueue

from .. import queries
from ..models import DatasetVersion

FORM = 6  # raise it if the counts change: every version is then counted again
AT_ONCE = 5_000  # examples that a page may wait for
ASKED_S = 600  # a worker that does not answer in this time is asked again
HELDOUT = "heldout"
Counts = dict[str, dict[str, int]]
LABELS = ("tags", "domains")


def stored_counts(version: DatasetVersion) -> Counts | None:
    """The counts, if they are known already."""
    found = version.training
    return {split: found[split] for split in ("train", HELDOUT)} if found and found.get("form") == FORM else None


def known(version: DatasetVersion) -> Counts | None:
    """`{"train": {count: n}, "heldout": {...}}`; None while a worker counts a large version. It writes only the first time. Every example
    that is not held out is trained on."""
    if (found := stored_counts(version)) is not None:
        return found
    if version.counts.get("examples", 0) <= AT_ONCE:
        return count_now(version)
    if cache.add(f"datasets:counting:{version.pk}", 1, ASKED_S):
        enqueue("workers.imports.count_training", version.pk)
    return None


def count_now(version: DatasetVersion) -> Counts:
    """The counts of a version; if necessary, it counts now, for any size."""
    if (found := stored_counts(version)) is not None:
        return found
    sides: dict[str, Counter[str]] = {"train": Counter(), HELDOUT: Counter()}
    labels: dict[str, Counter[str]] = {kind: Counter() for kind in LABELS}
    for _, line in queries.stream_canonical(version):
        example = Example.model_validate_json(line)
        side = HELDOUT if example.split == HELDOUT else "train"
        sides[side].update(training_counts(example))
        if side == "train":
            labels["tags"].update(set(example.tags))
            labels["domains"][example.domain] += 1
    counts = {split: dict(sorted(each.items())) for split, each in sides.items()}
    version.training = {"form": FORM, **counts, "labels": {kind: _stored(each) for kind, each in labels.items()}}
    DatasetVersion.every.filter(pk=version.pk).update(training=version.training)
    return counts


def _stored(counts: Counter[str]) -> dict[str, Any]:
    """The counts as pairs, because jsonb does not keep the order of keys."""
    found = Labels.of(counts)
    return {"counts": list(found.counts.items()), "others": found.others}


def labels(version: DatasetVersion) -> dict[str, Labels]:
    """The tags and the domains of the training examples; nothing for a version that is not counted."""
    found = version.training if stored_counts(version) is not None else None
    stored = found["labels"] if found else {}
    return {kind: Labels(dict(each["counts"]), each["others"]) for kind, each in stored.items()}


def count(version_id: int) -> None:
    """Counts a version; a worker calls it. It does nothing if the version is gone."""
    version = DatasetVersion.objects.filter(pk=version_id).first()
    if version is not None:
        count_now(version)
