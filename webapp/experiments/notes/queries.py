"""Notes on tokens, and whether the tokens that they were written on are still there."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Q
from django.db.models.fields.json import KeyTransform

from webapp.core.database.paging import Page, page

from ..models import Rollout, Run, TokenNote

PLACE = ("step", "phase", "group", "index")


@dataclass(frozen=True)
class ReadNote:
    """`holds`: the tokens of its place still make up its quote. `example_key`: of the prompt; empty if the response is not there."""

    note: TokenNote
    holds: bool
    example_key: str


def notes(
    run: Run, step: int | None = None, phase: str | None = None, cursor: str | None = None, limit: int = 50
) -> tuple[list[ReadNote], str | None]:
    """Notes of a run, the newest first, of one step or phase if these are named."""
    rows = TokenNote.objects.filter(run=run).select_related("created_by")
    if step is not None:
        rows = rows.filter(step=step)
    if phase is not None:
        rows = rows.filter(phase=phase)
    found: Page[TokenNote] = page(rows, cursor, limit)
    return read(run, found.items), found.next


def read(run: Run, found: Sequence[TokenNote]) -> list[ReadNote]:
    places = {place_of(note) for note in found}
    wanted = Q(pk__in=[])
    for place in places:
        wanted |= Q(**dict(zip(PLACE, place, strict=True)))
    rows = Rollout.objects.filter(wanted, run=run).annotate(tokens=KeyTransform("tokens", "content"))
    there = {row[:4]: row[4:] for row in rows.values_list(*PLACE, "example_key", "tokens")}
    return [_read(note, there.get(place_of(note))) for note in found]


def place_of(note: TokenNote) -> tuple[Any, ...]:
    return tuple(getattr(note, name) for name in PLACE)


def _read(note: TokenNote, there: tuple[str, list[str] | None] | None) -> ReadNote:
    key, tokens = there or ("", None)
    return ReadNote(note, quoted(tokens or [], note.start, note.end) == note.quote, key)


def quoted(tokens: Sequence[str], start: int, end: int) -> str | None:
    """The text of the tokens `start <= t < end`; None if the response has fewer."""
    return "".join(tokens[start:end]) if start < end <= len(tokens) else None
