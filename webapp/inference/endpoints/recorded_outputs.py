"""Recorded outputs come as JSON Lines. The file is read line by line; all of it is added, or none."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import IO

from django.db import transaction

from webapp.accounts.models import Membership
from webapp.core.auditing import audit
from webapp.core.problems import Conflict, Invalid

from ..models import Endpoint, RecordedOutput

LONGEST_FILE, LONGEST_LINE = 200_000_000, 2_000_000  # bytes
LONGEST_KEY, LONGEST_TEXT = 300, 1_000_000  # characters
MOST_LINES = 500_000
MOST_NAMED = 20  # bad lines that are told one by one
BATCH = 1000


@dataclass
class Added:
    """`unchanged` outputs were there already, with the same text."""

    added: int = 0
    unchanged: int = 0


@dataclass
class _Bad:
    """Each line number with what is wrong with the line. `count` counts the lines too that are not named."""

    named: dict[int, str] = field(default_factory=dict)
    count: int = 0

    def note(self, line: int, reason: str) -> None:
        self.count += 1
        if len(self.named) < MOST_NAMED:
            self.named[line] = reason


def add_recorded(membership: Membership, endpoint: Endpoint, file: IO[bytes]) -> Added:
    """Adds lines `{"key": .., "text": ..}` to what a recorded endpoint replays.

    A key keeps its text for good, because audits rest on it. Raises Invalid at `file`, or at `file.N` for each bad line N; nothing is
    added then. Raises Conflict for an endpoint of another kind.
    """
    if endpoint.kind != Endpoint.Kind.RECORDED:
        raise Conflict(f"{endpoint.name} does not replay recorded outputs.", "not_recorded")
    found, bad = Added(), _Bad()
    with transaction.atomic():
        # one upload at a time: else two uploads could both find a key free and give it different texts
        Endpoint.objects.select_for_update(no_key=True).get(pk=endpoint.pk)
        batch: dict[str, tuple[int, str]] = {}
        for line, key, text in _lines(file, bad):
            if key in batch and batch[key][1] != text:
                bad.note(line, f"the key {_short(key)} has another text in line {batch[key][0]}")
            elif key in batch:
                found.unchanged += 1
            else:
                batch[key] = (line, text)
            if len(batch) == BATCH:
                _store(endpoint, batch, found, bad)
                batch = {}
        _store(endpoint, batch, found, bad)
        if bad.count:
            raise Invalid(_summary(bad), {f"file.{n}": f"line {n}: {why}" for n, why in bad.named.items()})
        if not found.added + found.unchanged:
            raise Invalid("The file holds no lines.", {"file": "is empty"})
        audit.record(membership, membership.user, "endpoint.recorded", endpoint, added=found.added)
    return found


def _summary(bad: _Bad) -> str:
    lines = f"{bad.count:,} line{'s' if bad.count > 1 else ''}"
    return f"Nothing was added: {lines} of the file cannot be used."


def _store(endpoint: Endpoint, batch: dict[str, tuple[int, str]], found: Added, bad: _Bad) -> None:
    known = dict(RecordedOutput.objects.filter(endpoint=endpoint, key__in=batch).values_list("key", "text"))
    for key, text in known.items():
        line, new = batch[key]
        if new == text:
            found.unchanged += 1
        else:
            bad.note(line, f"the key {_short(key)} is recorded with another text")
    rows = [RecordedOutput(endpoint=endpoint, key=k, text=t) for k, (_, t) in batch.items() if k not in known]
    found.added += len(rows)
    if not bad.count:
        RecordedOutput.objects.bulk_create(rows)


def _lines(file: IO[bytes], bad: _Bad) -> Iterator[tuple[int, str, str]]:
    """(line number, key, text) of every good line."""
    size = number = 0
    while raw := file.readline(LONGEST_LINE + 1):
        number += 1
        size += len(raw)
        if size > LONGEST_FILE or number > MOST_LINES:
            most = f"{LONGEST_FILE // 1_000_000} MB and {MOST_LINES:,} lines"
            raise Invalid("The file is too large.", {"file": f"may have at most {most}; split it"})
        if len(raw) > LONGEST_LINE:
            raise Invalid("A line is too long.", {"file": f"line {number}: has more than {LONGEST_LINE:,} bytes"})
        if not raw.strip():
            continue
        try:
            yield number, *_parsed(raw.decode("utf-8-sig" if number == 1 else "utf-8"))
        except UnicodeDecodeError:
            bad.note(number, "is not UTF-8 text")
        except (ValueError, RecursionError) as error:
            bad.note(number, str(error))


def _parsed(line: str) -> tuple[str, str]:
    try:
        row = json.loads(line)
    except ValueError as error:
        raise ValueError(f"not JSON: {error}") from error
    if not isinstance(row, dict) or set(row) != {"key", "text"}:
        raise ValueError('must be {"key": .., "text": ..} and nothing else')
    for name, most in (("key", LONGEST_KEY), ("text", LONGEST_TEXT)):
        value = row[name]
        if not isinstance(value, str) or len(value) > most or (name == "key" and not value):
            raise ValueError(f"{name} must be a text of {'1' if name == 'key' else '0'} to {most:,} characters")
        if "\0" in value or not _storable(value):
            raise ValueError(f"{name} holds a character that cannot be stored")
    return row["key"], row["text"]


def _storable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:  # a lone surrogate, which JSON can write and UTF-8 cannot
        return False
    return True


def _short(key: str) -> str:
    return repr(key if len(key) <= 60 else key[:57] + "...")
