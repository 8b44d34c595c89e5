"""Notes on tokens: everything that writes them."""

from dataclasses import dataclass

from django.db import IntegrityError, transaction
from django.db.models import QuerySet
from django.db.models.fields.json import KeyTransform
from django.utils import timezone

from webapp.accounts.models import Membership
from webapp.core.auditing import audit
from webapp.core.problems import Conflict, Invalid
from webapp.core.requests import idempotency

from ..live import broadcasts
from ..models import Rollout, Run, TokenNote
from .queries import PLACE, place_of, quoted

MAX_TEXT = 4_000
MAX_OF_A_RUN = 5_000
MAX_QUOTE = 20_000


@dataclass(frozen=True)
class TokenSpan:
    """Tokens `start <= t < end` of the response at a place of a run. `quote` is their text as the writer sees it; None if they do not say."""

    step: int
    phase: str
    group: int
    index: int
    start: int
    end: int
    quote: str | None = None


def write(
    membership: Membership, run: Run, span: TokenSpan, text: str, key: idempotency.Key | None = None
) -> TokenNote:
    """A note; the one that is there already if the key comes again. Raises Invalid at the field, and Conflict if the tokens of the response
    are no longer the quoted ones."""
    if earlier := idempotency.row_of_key(_mine(membership), key):
        return earlier
    text = _text(text)
    quote = _quote(run, span)
    if TokenNote.objects.filter(run=run).count() >= MAX_OF_A_RUN:
        raise Invalid("This run has too many notes.", {"text": f"a run has at most {MAX_OF_A_RUN:,} notes"})
    place = {name: getattr(span, name) for name in (*PLACE, "start", "end")}
    keyed = {"launch_key": key.text, "launch_digest": key.digest} if key else {}
    try:
        with transaction.atomic():
            note = TokenNote.objects.create(
                run=run, quote=quote, text=text, created_by=membership.user, **place, **keyed
            )
            audit.record(membership, membership.user, "run.note_written", run, note=note.pk, **place)
            broadcasts.notes(run.pk, note.step, note.phase)
    except IntegrityError:
        if earlier := idempotency.made_meanwhile(TokenNote, membership.user, _mine(membership), key):
            return earlier
        raise
    return note


def rewrite(membership: Membership, note: TokenNote, text: str, revision: int) -> TokenNote:
    """Raises Invalid at `text`, and Conflict if the note has changed since `revision`."""
    text = _text(text)
    with transaction.atomic():
        mine = TokenNote.objects.filter(pk=note.pk, revision=revision)
        if not mine.update(text=text, revision=revision + 1, changed_at=timezone.now()):
            raise _changed(note)
        audit.record(membership, membership.user, "run.note_changed", note.run, note=note.pk, characters=len(text))
        broadcasts.notes(note.run_id, note.step, note.phase)
    return TokenNote.objects.select_related("created_by").get(pk=note.pk)


def delete(membership: Membership, note: TokenNote) -> None:
    """Does nothing to a note that is gone already."""
    with transaction.atomic():
        gone, _ = TokenNote.objects.filter(pk=note.pk).delete()
        if gone:
            place = dict(zip(PLACE, place_of(note), strict=True))
            audit.record(membership, membership.user, "run.note_deleted", note.run, note=note.pk, **place)
            broadcasts.notes(note.run_id, note.step, note.phase)


def _mine(membership: Membership) -> QuerySet[TokenNote]:
    workspace = membership.workspace_id
    return TokenNote.objects.filter(created_by=membership.user, run__experiment__workspace_id=workspace)


def _text(text: str) -> str:
    text = text.replace("\0", "").replace("\r\n", "\n").strip()
    if not text:
        raise Invalid("A note needs words.", {"text": "must not be empty"})
    if len(text) > MAX_TEXT:
        raise Invalid("This note is too long.", {"text": f"at most {MAX_TEXT:,} characters"})
    return text


def _quote(run: Run, span: TokenSpan) -> str:
    place = {name: getattr(span, name) for name in PLACE}
    rows = Rollout.objects.filter(run=run, **place).annotate(tokens=KeyTransform("tokens", "content"))
    row = rows.values("tokens").first()
    if row is None:
        raise Invalid("There is no such response.", {"step": "the run has no response at this place"})
    tokens = row["tokens"] or []
    if not tokens:
        reason = "the tokens of this response were not recorded, so none can be named"
        raise Invalid("The tokens were not recorded.", {"start": reason})
    quote = quoted(tokens, span.start, span.end)
    if quote is None:
        reason = f"must be after start and at most {len(tokens)}, the number of tokens"
        raise Invalid("There are no such tokens.", {"end": reason})
    if len(quote) > MAX_QUOTE:
        raise Invalid("These are too many tokens for a note.", {"end": f"at most {MAX_QUOTE:,} characters"})
    if span.quote is not None and span.quote != quote:
        raise Conflict(
            "The response has changed since you opened it. Load the page again.", "tokens_changed", quote=quote
        )
    return quote


def _changed(note: TokenNote) -> Conflict:
    now = TokenNote.objects.filter(pk=note.pk).first()
    if now is None:
        return Conflict("This note was deleted meanwhile.", "note_deleted")
    words = "This note was changed meanwhile. Your words are not saved; look at the note as it is now."
    return Conflict(words, "note_changed", text=now.text, revision=now.revision)
