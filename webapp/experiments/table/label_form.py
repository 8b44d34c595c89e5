"""The form of a run's labels. It sends each field also as the person saw it (`seen-notes`), so that only what they changed is stored: somebody
else may have changed the rest since the page was drawn."""

from collections.abc import Callable, Mapping, MutableMapping
from typing import Any

from webapp.accounts.models import Membership

from ..models import Run
from . import services
from .api import split

UNSAVED = "unsaved_notes"  # in the session


def is_changed(given: Mapping[str, str], field: str) -> bool:
    """Whether the person has changed this field. A request without the field changes nothing."""
    if field not in given:
        return False
    return services.plain_notes(given[field]) != services.plain_notes(given.get(f"seen-{field}", ""))


def _save_notes(membership: Membership, run: Run, given: Mapping[str, str]) -> None:
    services.write_notes(membership, run, given["notes"], seen=given.get("seen-notes", ""))


def _save_tags(membership: Membership, run: Run, given: Mapping[str, str]) -> None:
    services.set_tags(membership, run, split(given["tags"]), seen=split(given.get("seen-tags", "")))


def _save_group(membership: Membership, run: Run, given: Mapping[str, str]) -> None:
    services.group(membership, [run.pk], given["group"])


FIELDS: dict[str, Callable[[Membership, Run, Mapping[str, str]], None]] = {
    "tags": _save_tags,
    "group": _save_group,
    "notes": _save_notes,
}


def keep(session: MutableMapping[str, Any], run: Run, field: str, given: Mapping[str, str]) -> None:
    """Keeps notes that could not be stored, for the next page of the run. Tags and groups are short, and typed again."""
    if field == "notes":
        session[UNSAVED] = {"run": run.pk, "text": given["notes"][: 2 * services.MAX_NOTES]}


def take_unsaved(session: MutableMapping[str, Any], run_id: int) -> str | None:
    """The notes that were kept for this run, once."""
    kept = session.get(UNSAVED)
    if kept is None or kept["run"] != run_id:
        return None
    del session[UNSAVED]
    return str(kept["text"])
