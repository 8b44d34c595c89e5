"""Discarded drafts: for a day they can be restored, with their address, tags and history.

A draft is deleted at once, so that no list, count or query has to leave it out. `DiscardedDraft` keeps what its row held.
"""

import json
from datetime import timedelta
from typing import Any, cast

from django.core import serializers
from django.db import transaction
from django.db.models import Model, QuerySet
from django.http import Http404
from django.utils import timezone

from webapp.accounts.models import Membership
from webapp.core.problems import Conflict

from ..lifecycle import services as lifecycle
from ..models import DiscardedDraft, Run, RunTag
from . import drafts, services

KEPT = timedelta(days=1)


def discard(membership: Membership, run: Run) -> None:
    """Deletes a draft. Raises Conflict if it was launched or discarded meanwhile."""
    with transaction.atomic():
        held = drafts.locked(run)
        if held is None:
            raise Conflict("This draft was launched or discarded already.", "not_a_draft")
        kept = {
            "row": serializers.serialize("python", [held]),
            "experiment": held.experiment.name,
            "tags": list(RunTag.objects.filter(run=held).values_list("name", flat=True)),
        }
        # `str` keeps every digit of a time; Django's encoder cuts it to milliseconds
        text = json.dumps(kept, default=str, ensure_ascii=False)
        DiscardedDraft.objects.create(workspace=membership.workspace, run=run.pk, name=str(held), held=text)
        lifecycle.delete(membership, run)


def restorable_name(membership: Membership, run_id: int) -> str | None:
    """The name of a draft of this workspace that can be restored; None if there is none of this number."""
    return _kept(membership, run_id).values_list("name", flat=True).first()


def restore(membership: Membership, run_id: int) -> None:
    """Makes a discarded draft again, under its number. Does nothing if that was done already. Raises Http404 if it cannot be restored."""
    with transaction.atomic():
        kept = _kept(membership, run_id).select_for_update().first()
        if kept is None:
            if Run.objects.filter(pk=run_id, experiment__workspace_id=membership.workspace_id).exists():
                return
            raise Http404("no such draft")
        held = json.loads(kept.held)
        place = services.numbered(membership, held["experiment"])
        drafts.keep(membership, _made(held, place), "run.draft_restored")
        kept.delete()  # the run may be deleted later on


def erase_expired() -> None:
    """Erases the drafts that cannot be restored any more."""
    DiscardedDraft.objects.filter(discarded_at__lte=timezone.now() - KEPT).delete()


def _kept(membership: Membership, run_id: int) -> QuerySet[DiscardedDraft]:
    since = timezone.now() - KEPT
    return DiscardedDraft.objects.filter(workspace_id=membership.workspace_id, run=run_id, discarded_at__gt=since)


def _made(kept: dict[str, Any], place: dict[str, Any]) -> Run:
    """The row. The experiment may have been made again, its number taken, and what it points to deleted."""
    (told,) = serializers.deserialize("python", kept["row"])
    run = cast(Run, told.object)
    taken = Run.objects.filter(experiment=place["experiment"], number=run.number).exists()
    run.experiment, run.number = place["experiment"], place["number"] if taken else run.number
    run.launch_key, run.launch_digest = None, ""
    for link in (field for field in Run._meta.concrete_fields if field.many_to_one and field.null):
        linked = cast(type[Model], link.related_model)._base_manager.filter(pk=getattr(run, link.attname))
        if not linked.exists():
            setattr(run, link.attname, None)
    told.save()
    RunTag.objects.bulk_create(RunTag(run=run, name=name) for name in kept["tags"])
    return run
