"""The number of backups that are kept. Removing one does not damage the others."""

from datetime import UTC, datetime, timedelta

import pytest

from webapp.backups import manifest, retention
from webapp.backups.creation import NAME
from webapp.backups.manifest import KeptFile, Manifest
from webapp.backups.store import open_store


def names(days: int, a_day: int = 2) -> list[str]:
    first = datetime(2026, 11, 2, 3, tzinfo=UTC)  # a Monday
    return [
        (first + timedelta(days=day, hours=6 * turn)).strftime(NAME) for day in range(days) for turn in range(a_day)
    ]


def test_the_last_of_each_day_and_week_stays():
    listed = names(21)
    kept = sorted(retention.kept(listed, daily=3, weekly=2))
    assert [name[:13] for name in kept] == ["2026-11-15T09", "2026-11-20T09", "2026-11-21T09", "2026-11-22T09"]


def test_days_without_a_backup_do_not_count():
    listed = ["2026-01-01T030000Z", "2026-03-01T030000Z", "2026-11-22T030000Z"]
    assert retention.kept(listed, daily=2, weekly=0) == set(listed[1:])


def test_the_newest_always_stays():
    assert retention.kept(["2026-01-01T030000Z", "2026-01-01T030000Z-2"], 0, 0) == {"2026-01-01T030000Z-2"}
    assert retention.kept([], 7, 4) == set()


@pytest.mark.parametrize("passphrase", [None, b"a long enough passphrase"])
def test_contents_that_a_kept_backup_names_stay(tmp_path, passphrase):
    store = open_store(tmp_path / "backups", passphrase, create=True)
    shared, old, new = (store.add(iter([word])).digest for word in (b"shared", b"old", b"new"))
    store.add(iter([b"of a killed backup"]))
    for name, digests in (("2026-01-01T030000Z", (shared, old)), ("2026-01-02T030000Z", (shared, new))):
        listed = tuple(KeptFile(path=each, bytes=1, modified=1, digest=each) for each in digests)
        made = Manifest(
            **{
                "made_at": datetime.now(UTC),
                "seconds": 1,
                "version": "1",
                "server": "18",
                "var": "/v",
                "migrations": (),
            },
            **{"tables": (), "sequences": {}, "files": listed, "key_mark": "m", "added": 1},
        )
        store.write_manifest(name, made.model_dump_json().encode())
    assert retention.prune(store, daily=1, weekly=0) == ["2026-01-01T030000Z"]
    assert [store.has(each) for each in (shared, old, new)] == [True, False, True]
    assert len(list(store.contents())) == 2
    assert [file.digest for file in manifest.read(store, manifest.newest(store)).files] == [shared, new]
