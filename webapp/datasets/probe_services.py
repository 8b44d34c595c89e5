"""Changes to probes: stored by who measured the pass rates, deleted by people."""

from collections.abc import Mapping
from dataclasses import dataclass

from django.db import transaction

from webapp.accounts.models import Membership, User
from webapp.core import audit

from . import queries
from .models import DatasetVersion, Probe


@dataclass(frozen=True)
class MeasuredProbe:
    """A probe as it was measured. `counts`: key of an example -> (answers that passed, answers with a score)."""

    evaluation: int
    place: int
    model: str
    samples: int
    threshold: float
    counts: Mapping[str, tuple[int, int]]


@transaction.atomic
def store(version: DatasetVersion, who: User | None, measured: MeasuredProbe) -> Probe:
    """The probe of this evaluation and place, which is stored once. Examples that nobody asked about have no pass rate."""
    passed, tried = bytearray(version.counts.get("examples", 0)), bytearray(version.counts.get("examples", 0))
    for position, key in queries.keys(version):
        if counts := measured.counts.get(key):
            passed[position], tried[position] = counts
    row, made = Probe.objects.get_or_create(
        evaluation=measured.evaluation,
        place=measured.place,
        defaults={
            "version": version,
            "model": measured.model[:200],
            "samples": measured.samples,
            "threshold": measured.threshold,
            "passed": bytes(passed),
            "tried": bytes(tried),
        },
    )
    if made:
        audit.record(
            version.dataset.workspace, who, "probe.stored", row, model=row.model, evaluation=measured.evaluation
        )
    return row


@transaction.atomic
def delete(membership: Membership, probe: Probe) -> None:
    """Filters that name it are refused from then on."""
    audit.record(membership, membership.user, "probe.deleted", probe, model=probe.model, evaluation=probe.evaluation)
    probe.delete()
