"""Changes of probes: evaluations store them, people delete them."""

from collections.abc import Mapping
from dataclasses import dataclass

from django.db import transaction

from webapp.accounts.models import Membership, User
from webapp.core.auditing import audit

from . import queries
from .models import DatasetVersion, Probe


@dataclass(frozen=True)
class MeasuredProbe:
    """The results of a probe. `counts`: key of an example -> (answers that passed, answers with a score)."""

    evaluation: int
    place: int
    model: str
    samples: int
    threshold: float
    counts: Mapping[str, tuple[int, int]]


@transaction.atomic
def store(version: DatasetVersion, who: User | None, measured: MeasuredProbe) -> Probe:
    """The probe of this evaluation and place, which is stored only once. Examples about which nobody asked have no pass rate."""
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
    """Deletes the probe. From then on, filters that name it are refused."""
    audit.record(membership, membership.user, "probe.deleted", probe, model=probe.model, evaluation=probe.evaluation)
    probe.delete()
