"""Decides which backups are kept, and removes the others with the contents that only they have."""

from collections.abc import Iterable
from datetime import date, datetime

from . import manifest
from .creation import NAME
from .store import ContentStore


def kept(names: Iterable[str], daily: int, weekly: int) -> set[str]:
    """The backups to keep: the newest one, the newest of each of the last `daily` days with one, and of the last `weekly` weeks with
    one."""
    ordered = sorted(names, reverse=True)
    chosen = set(ordered[:1])
    for count, period in ((daily, _day), (weekly, _week)):
        seen: list[object] = []
        for name in ordered:
            if period(name) not in seen:
                seen.append(period(name))
                if len(seen) <= count:
                    chosen.add(name)
    return chosen


def _day(name: str) -> date:
    return datetime.strptime(name[:18], NAME).date()  # noqa: DTZ007  names are in UTC, and only days are compared


def _week(name: str) -> tuple[int, int]:
    return _day(name).isocalendar()[:2]


def prune(store: ContentStore, daily: int, weekly: int) -> list[str]:
    """Removes the backups that the rule does not keep; returns their names. Raises BackupProblem and then removes no content.

    Manifests are removed first: a killed removal leaves contents that nobody names, and never a backup without its contents.
    """
    with store.removing():
        names = store.names()
        staying = kept(names, daily, weekly)
        needed = {content for name in staying for content in _contents(store, name)}
        gone = [name for name in names if name not in staying]
        store.forget(gone)
        store.place.remove([content for content in store.contents() if content not in needed])
    return gone


def _contents(store: ContentStore, name: str) -> set[str]:
    found = manifest.read(store, name)
    return {store.content_name(table.digest, packed=True) for table in found.tables} | {
        store.content_name(file.digest) for file in found.files
    }
