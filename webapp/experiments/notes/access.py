"""Permissions of notes on tokens."""

from django.http import Http404

from webapp.accounts.models import Membership, Role
from webapp.core.problems import Problem

from ..access import WRITER, run_read, run_write
from ..models import Run, TokenNote


def may_change(membership: Membership, note: TokenNote) -> bool:
    """Whether the person wrote the note and may write on runs. Nobody else changes a note."""
    return note.created_by_id == membership.user_id and membership.may(WRITER)


def may_delete(membership: Membership, note: TokenNote) -> bool:
    """Whether the person wrote the note, or is an owner: a note may outlast the account of its author."""
    return may_change(membership, note) or membership.may(Role.OWNER)


def note_read(membership: Membership, run_id: int, note_id: int) -> TokenNote:
    return _note(run_read(membership, run_id), note_id)


def note_change(membership: Membership, run_id: int, note_id: int) -> TokenNote:
    note = _note(run_write(membership, run_id), note_id)
    if not may_change(membership, note):
        raise Problem("Only its author can change a note.", code="not_yours", status=403)
    return note


def note_delete(membership: Membership, run_id: int, note_id: int) -> TokenNote:
    note = _note(run_write(membership, run_id), note_id)
    if not may_delete(membership, note):
        raise Problem("Only its author and owners of the workspace can delete a note.", code="not_yours", status=403)
    return note


def _note(run: Run, note_id: int) -> TokenNote:
    note = TokenNote.objects.select_related("created_by").filter(run=run, pk=note_id).first()
    if note is None:
        raise Http404("no such note")
    note.run = run
    return note
