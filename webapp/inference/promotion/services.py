"""Writes of aliases and stages."""

import re

from django.db import IntegrityError, transaction
from django.utils import timezone

from webapp.accounts.models import Membership
from webapp.core.auditing import audit
from webapp.core.problems import Conflict, Invalid
from webapp.webhooks.services import announce

from ..models import MARK, STAGES, ModelAlias, ModelPromotion, RegisteredModel

MAX_REASON = 500
_NAME = re.compile(r"[a-z][a-z0-9_-]{0,59}")


def move(
    membership: Membership, name: str, model: RegisteredModel, *, reason: str = "", expected: str | None = None
) -> ModelAlias:
    """Lets the alias point at `model`, and notes who moved it, from where and why. If it points there already, nothing happens.

    `expected` is the name of the model that the alias pointed at when the caller looked, or empty if it did not exist; with None it is
    not compared. Raises Invalid at `name`, `model` or `reason`, and Conflict if somebody else has moved the alias since.
    """
    name, reason = alias_name(name), _reason(reason)
    try:
        with transaction.atomic():
            return _move(membership, name, model, reason, expected)
    except IntegrityError:  # somebody made it at the same moment; it can be locked now
        with transaction.atomic():
            return _move(membership, name, model, reason, expected)


def _move(membership: Membership, name: str, model: RegisteredModel, reason: str, expected: str | None) -> ModelAlias:
    _locked(model)
    # not joined with the model: Postgres would not see a row whose model changes while its lock is waited for
    alias = ModelAlias.objects.select_for_update().filter(workspace=membership.workspace, name=name).first()
    before = alias.model.name if alias else ""
    if alias and alias.model_id == model.pk:
        return alias
    if expected is not None and expected != before:
        stands = f"points at {before}" if before else "was removed"
        raise Conflict(f"{MARK}{name} {stands} now. Load the page again before you move it.", code="moved")
    if alias is None:
        alias = ModelAlias(workspace=membership.workspace, name=name)
    alias.model, alias.moved_at = model, timezone.now()
    alias.save()
    _note(membership, model, kind=ModelPromotion.Kind.MOVED, name=name, before=before, reason=reason)
    facts = {"model": model.pk, "name": model.name, "alias": name, "before": before, "reason": reason}
    announce(membership.workspace_id, "model.alias_moved", facts, by=membership.user_id)
    audit.record(membership, membership.user, "model.alias_moved", model, name=model.name, alias=name, before=before)
    return alias


@transaction.atomic
def remove(membership: Membership, alias: ModelAlias, *, reason: str = "") -> None:
    """Takes the alias away; the model stays. If the alias is gone already, nothing happens. Raises Invalid at `reason`."""
    reason = _reason(reason)
    row = ModelAlias.objects.select_for_update().filter(pk=alias.pk).first()
    if row is None:
        return
    row.delete()
    _note(membership, row.model, kind=ModelPromotion.Kind.REMOVED, name=row.name, before=row.model.name, reason=reason)
    facts = {"model": row.model.pk, "name": row.model.name, "alias": row.name, "reason": reason}
    announce(membership.workspace_id, "model.alias_removed", facts, by=membership.user_id)
    audit.record(membership, membership.user, "model.alias_removed", row.model, name=row.model.name, alias=row.name)


@transaction.atomic
def set_stage(membership: Membership, model: RegisteredModel, stage: str, *, reason: str = "") -> None:
    """Gives the model a stage. If it has the stage already, nothing happens. Raises Invalid at `stage` or `reason`."""
    if stage and stage not in STAGES:
        known = ", ".join(STAGES)
        raise Invalid("The stage is not known.", {"stage": f"must be empty or one of {known}"})
    reason = _reason(reason)
    row = RegisteredModel.objects.select_for_update().get(pk=model.pk)
    before, model.stage = row.stage, stage
    if before == stage:
        return
    RegisteredModel.objects.filter(pk=model.pk).update(stage=stage)
    _note(membership, model, kind=ModelPromotion.Kind.STAGE, to=stage, before=before, reason=reason)
    facts = {"model": model.pk, "name": model.name, "stage": stage, "before": before, "reason": reason}
    announce(membership.workspace_id, "model.stage_changed", facts, by=membership.user_id)
    audit.record(membership, membership.user, "model.stage_changed", model, name=model.name, stage=stage, before=before)


def alias_name(name: str) -> str:
    """The alias without its @. Raises Invalid at `name`."""
    name = name.strip().removeprefix(MARK)
    if not _NAME.fullmatch(name):
        reason = "must begin with a small letter and have at most 60 small letters, digits, - and _"
        raise Invalid("This is not an alias.", {"name": reason})
    return name


def _locked(model: RegisteredModel) -> None:
    """Locks the model, so that nobody archives it before the transaction ends. Raises Invalid at `model` if it is archived."""
    row = RegisteredModel.objects.select_for_update().get(pk=model.pk)
    if row.archived_at:
        raise Invalid("An archived model has no alias.", {"model": f"{row.name} is archived; restore it first"})


def _reason(reason: str) -> str:
    reason = reason.strip()
    if len(reason) > MAX_REASON:
        raise Invalid("The reason is too long.", {"reason": f"must have at most {MAX_REASON} characters"})
    return reason


def _note(membership: Membership, model: RegisteredModel, **fields: str) -> None:
    ModelPromotion.objects.create(
        workspace=membership.workspace, model=model, model_name=model.name, created_by=membership.user, **fields
    )
