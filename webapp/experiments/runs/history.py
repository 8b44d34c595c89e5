"""The history of a run, with the people: its entries of the audit log, in words."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db.models import QuerySet
from django.utils import timezone

from webapp.core.auditing import audit
from webapp.core.database.paging import Page, page
from webapp.core.models import AuditEntry

from ..lifecycle import time_limit, utc_times
from ..lifecycle.early_stop import EarlyStop
from ..lifecycle.limits import RunLimits
from ..models import OVER, Run

ON_A_PAGE = 100
BEGINS = {"run.launch": Run.State.QUEUED.value, "run.logged": Run.State.RUNNING.value}
STATES = BEGINS | {f"run.{state}": state for state in Run.State.values}
"""{action: the state that the run comes to with it}"""
WORDS = {
    "run.launch": "Launched",
    "run.draft": "Saved as a draft",
    "run.draft_changed": "Draft changed",
    "run.draft_restored": "Draft restored",
    "run.delete": "Discarded",
    "run.logged": "Logged by another program",
    "run.stopping": "Asked to stop",
    "run.pausing": "Asked to pause",
    "run.rename": "Renamed",
    "run.time_limit": "Time limit changed",
    "run.token_limit": "Token limit changed",
    "run.spending": "Spending limit changed",
    "run.stop_early": "Early stop changed",
    "run.not_before": "Time to start changed",
    "run.stop_now": "Asked to stop at once",
    "run.priority": "Priority in the line changed",
    "run.then": "A step was added after it",
    "run.then_cancelled": "A step after it was cancelled",
    "run.then_refused": "A step after it could not be launched",
    "run.repeat": "Repeated by the clock",
    "run.repeat_paused": "Its repeats paused",
    "run.repeat_resumed": "Its repeats resumed",
    "run.repeat_removed": "Its repeats ended",
    "run.repeat_refused": "A repeat of it could not be launched",
    "run.keep_checkpoints": "Mark that keeps its checkpoints changed",
    "run.tags": "Tagged",
    "run.notes": "Notes written",
    "run.note_written": "A note on tokens written",
    "run.note_changed": "A note on tokens changed",
    "run.note_deleted": "A note on tokens deleted",
    "run.budget": "Budget of a judge changed",
    "run.alert": "The program alerted",
    "run.alarm_asked": "Responses of an alarm sent to people",
    "run.reconciled": "Compared with Ray, and mended",
    "run.reasons_matched": "Reasons matched",
    "run.hidden": "Deleted by the program that logs it",
    "run.restored": "Restored",
}


@dataclass(frozen=True)
class Event:
    """`state` is empty if it did not change. `lasted_s` is how long the run then stayed in that state; None for the last state of a run
    that is over. `who` is empty if the server did it by itself, or if the account was `erased`."""

    at: datetime
    action: str
    what: str
    state: str
    attempt: int | None
    who: str
    erased: bool
    why: str
    lasted_s: float | None

    def json(self) -> dict[str, Any]:
        return {**self.__dict__, "at": self.at.isoformat()}


def events(run: Run, cursor: str | None = None, limit: int = ON_A_PAGE) -> tuple[list[Event], str | None]:
    """The events, newest first, and the cursor of those before them, None if there are none."""
    found: Page[AuditEntry] = page(_entries(run).select_related("actor", "seal"), cursor, limit)
    until = _after(run, found.items[0]) if found.items else None
    return list(_in_words(run, found.items, until)), found.next


def _entries(run: Run) -> QuerySet[AuditEntry]:
    # an id is never given twice, so these belong to this run; the workspace is named for safety
    return AuditEntry.objects.filter(object_type="run", object_id=run.pk, workspace_id=run.experiment.workspace_id)


def _after(run: Run, newest: AuditEntry) -> datetime | None:
    """The end of the state with which a page begins; None for a run that is over."""
    later = _entries(run).filter(id__gt=newest.pk, action__in=STATES).order_by("id").first()
    if later is not None:
        return later.created_at
    return None if run.state in OVER else timezone.now()


def _in_words(run: Run, entries: Iterable[AuditEntry], until: datetime | None) -> Iterable[Event]:
    for entry in entries:
        state = _state(entry)
        attempt = entry.detail.get("attempt", 1 if state else None)
        lasted = (until - entry.created_at).total_seconds() if state and until is not None else None
        yield Event(
            at=entry.created_at,
            action=entry.action,
            what=WORDS.get(entry.action, "") or _named(state, attempt) or entry.action.removeprefix("run."),
            state=state,
            attempt=attempt,
            who=str(entry.actor) if entry.actor else "",
            erased=entry.actor is None and audit.had_actor(entry),
            why=_why(run, entry),
            lasted_s=None if lasted is None else max(0.0, lasted),
        )
        if state:
            until = entry.created_at


def _state(entry: AuditEntry) -> str:
    """The state to which the run came; empty if it did not change."""
    state = STATES.get(entry.action, "")
    # until people could pause runs, one was called so whose process waited for something
    return Run.State.BLOCKED if state == Run.State.PAUSED and "step" not in entry.detail else state


def _named(state: str, attempt: int | None) -> str:
    if state == Run.State.QUEUED and attempt and attempt > 1:
        return f"In the line again, as attempt {attempt}"
    return Run.State(state).label if state else ""


def _why(run: Run, entry: AuditEntry) -> str:
    """The other content of the entry: a reason, the new name, the tags."""
    detail = entry.detail
    if "tags" in detail:
        return ", ".join(detail["tags"]) or "no tags"
    if entry.action in ("run.budget", "run.spending"):
        limits = {"budget_tokens": "tokens", "budget_money": "money"}
        told = [f"{word} {detail[key] or 'without limit'}" for key, word in limits.items() if key in detail]
        return ": ".join(part for part in (detail.get("judge", ""), ", ".join(told)) if part)
    if entry.action == "run.time_limit":
        return (
            "lifted"
            if detail["seconds"] is None
            else f"to {time_limit.limit_text(timedelta(seconds=detail['seconds']))}"
        )
    if entry.action == "run.token_limit":
        return "lifted" if detail["tokens"] is None else f"to {detail['tokens']:,}"
    if entry.action == "run.stop_early":
        rule = EarlyStop.of(detail["stop_early"])
        return f"if {rule.words(run.recipe)}" if rule else "lifted"
    if detail.get("limits"):
        limited = f"limited to {RunLimits.of(detail['limits']).words(run.recipe)}"
        return ", ".join(part for part in (detail.get("reason", ""), limited) if part)
    if detail.get("not_before"):
        return f"not before {utc_times.utc_text(datetime.fromisoformat(detail['not_before']), entry.created_at)}"
    if entry.action == "run.repeat":
        return str(detail["rhythm"])
    if entry.action == "run.not_before":
        return "lifted"
    if entry.action == "run.priority":
        return f"to {detail.get('priority')}"
    if entry.action == "run.alert":
        return f"{detail['level']}: {detail['title']}" + (f" · {detail['text']}" if detail["text"] else "")
    if entry.action == "run.rename":
        return str(detail.get("name") or "no name")
    if "then" in detail:
        return ": ".join(str(detail[key]) for key in ("then", "reason") if detail.get(key))
    return str(detail.get("done") or detail.get("reason", ""))
