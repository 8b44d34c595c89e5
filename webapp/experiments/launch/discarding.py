"""Discarded drafts: for a day they can be restored, with their address, tags and history.

A draft is deleted at once, so that no list, count or query has to leave it out. What its row held lies in the cache. If the cache is lost, such a
draft cannot be restored, as after the day.
"""

from typing import Any, cast

from django.core import serializers
from django.core.cache import cache
from django.db import transaction
from django.http import Http404

from webapp.accounts.models import Membership, User
from webapp.core.problems import Conflict

from ..lifecycle import services as lifecycle
from ..models import Run, RunTag
from . import drafts, services

KEPT_S = 24 * 60 * 60


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
            "name": str(held),
        }
        cache.set(_key(membership, run.pk), kept, KEPT_S)
        lifecycle.delete(membership, run)


def found(membership: Membership, run_id: int) -> str | None:
    """The name of a draft of this workspace that can be restored; None if there is none of this number."""
    kept = cache.get(_key(membership, run_id))
    return kept and str(kept["name"])


def restore(membership: Membership, run_id: int) -> None:
    """Makes a discarded draft again, under its number. Does nothing if that was done already. Raises Http404 if it cannot be restored."""
    kept = cache.get(_key(membership, run_id))
    if kept is None:
        if Run.objects.filter(pk=run_id, experiment__workspace_id=membership.workspace_id).exists():
            return
        raise Http404("no such draft")
    with transaction.atomic():
        transaction.on_commit(lambda: cache.delete(_key(membership, run_id)))  # the run may be deleted later on
        place = services.numbered(membership, kept["experiment"])
        if not Run.objects.filter(pk=run_id).exists():
            drafts.keep(membership, _made(kept, place), "run.draft_restored")


def _made(kept: dict[str, Any], place: dict[str, Any]) -> Run:
    """The row. The experiment may have been made again, its number taken, and what it points to deleted."""
    (told,) = serializers.deserialize("python", kept["row"])
    run = cast(Run, told.object)
    taken = Run.objects.filter(experiment=place["experiment"], number=run.number).exists()
    run.experiment, run.number = place["experiment"], place["number"] if taken else run.number
    run.launch_key, run.launch_digest = None, ""
    if run.forked_from_id and not Run.objects.filter(pk=run.forked_from_id).exists():
        run.forked_from = None
    if run.created_by_id and not User.objects.filter(pk=run.created_by_id).exists():
        run.created_by = None
    told.save()
    RunTag.objects.bulk_create(RunTag(run=run, name=name) for name in kept["tags"])
    return run


def _key(membership: Membership, run_id: int) -> str:
    return f"discarded-draft:{membership.workspace_id}:{run_id}"
