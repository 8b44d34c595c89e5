"""Files of recorded verdicts, of any program, as the lines that `manage.py audit` reads; and files of scores."""

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

from webapp.core.background import sandbox
from webapp.core.problems import Invalid
from webapp.files.bundle import Bundle
from webapp.judging.lines.audits import parse_case, repeated
from webapp.judging.lines.fields import LineProblem
from webapp.judging.lines.sides import SIDE_NAMES
from webapp.judging.recorded.formats.base import Record, RecordedPair, RowProblem
from webapp.judging.recorded.formats.registry import UnknownFormat, detect, read

from . import scores

AUDIT = "audit"
SHOWN_PROBLEMS = 20
MAX_ROWS = 200_000
LIMITS = sandbox.ProcessLimits(memory=1_000_000_000, seconds=60.0)


def as_lines(name: str, content: bytes) -> bytes:
    """The content itself if it has such lines already, or an unknown format: then its reader reports the errors.

    Raises Invalid at `file`, naming files and lines, and for verdicts that are not about pairs.
    """
    if scores.holds_scores(content):
        return content
    with TemporaryDirectory() as folder:
        path = Path(folder) / (Path(name).name or "verdicts")
        path.write_bytes(content)
        try:
            lines = sandbox.call(f"{__name__}:_read", LIMITS, path=str(path))
        except sandbox.Exceeded as error:
            raise Invalid("The file is too large to read.", {"file": f"{error}; send a smaller one"}) from error
    return content if lines is None else str(lines).encode()


def _read(path: str) -> str | None:
    """Runs in a confined child: returns the lines of a file of verdicts, None for one that holds such lines already or nothing known."""
    try:
        form = detect(Bundle(Path(path)))
        if form.name == AUDIT:
            return None
        records = _good(read(Path(path), form))
    except UnknownFormat:
        return None
    except OSError as error:
        raise Invalid("The file cannot be read.", {"file": error.strerror or str(error)}) from error
    pairs = [record for record in records if isinstance(record, RecordedPair)]
    if len(pairs) < len(records):
        raise Invalid("The file holds no verdicts on pairs.", {"file": f"is of format {form.label}: graded rubrics"})
    several = len({pair.collection for pair in pairs}) > 1
    return "\n".join(json.dumps(_line(pair, several), ensure_ascii=False) for pair in pairs)


def refuse(problems: list[str]) -> None:
    """Raises Invalid at `file` with the first problems, if there are any."""
    if problems:
        more = len(problems) - SHOWN_PROBLEMS
        told = "; ".join(problems[:SHOWN_PROBLEMS]) + (f"; and {more:,} more" if more > 0 else "")
        raise Invalid("Some lines cannot be used.", {"file": told})


def _good(given: Iterator[tuple[str, int, Record | RowProblem]]) -> list[Record]:
    records: list[Record] = []
    problems = []
    for file, line, record in given:
        if isinstance(record, RowProblem):
            problems.append(f"{file}, line {line}: {f'{record.field}: ' if record.field else ''}{record.reason}")
        else:
            records.append(record)
    refuse(problems)
    return records


def _line(pair: RecordedPair, several: bool) -> dict[str, str | None]:
    """The line of a pair. In a file of several collections the group tells pairs apart; the name stays the key that datasets know."""
    line = {
        "judge": pair.judge,
        "pair": pair.pair,
        "group": f"{pair.collection} {pair.group}".strip() if several else pair.group,
        "label": _side(pair.label),
        "given": _side(pair.given),
    }
    return line | ({"swapped": _side(pair.swapped)} if pair.orders == "both" else {})


def _side(value: int | None) -> str | None:
    return None if value is None else SIDE_NAMES[value]


@dataclass(frozen=True)
class Facts:
    """Facts about the lines of a recording; the names are those of the row."""

    kind: str
    rows: int
    judges: int
    pairs_digest: str


def facts(content: bytes) -> Facts:
    """The facts. Raises Invalid at `file` with the first lines that cannot be used."""
    try:
        lines = content.decode("utf-8-sig").split("\n")
    except UnicodeDecodeError as error:
        raise Invalid("The file is not text.", {"file": f"is not UTF-8: {error.reason}"}) from error
    return _scores(lines) if scores.holds_scores(content) else _verdicts(lines)


def _verdicts(lines: list[str]) -> Facts:
    cases, problems = _parsed(lines, parse_case, lambda case: (case.judge, case.pair, case.group))
    refuse(_told([*problems, *repeated(cases)]))
    pairs = sorted({(case.pair, case.group, case.label) for _, case in cases})
    digest = hashlib.sha256(json.dumps(pairs).encode()).hexdigest()
    return Facts("verdicts", len(cases), len({case.judge for _, case in cases}), digest)


def _scores(lines: list[str]) -> Facts:
    given, problems = _parsed(lines, scores.parse, lambda score: score[:3])
    refuse(_told([*problems, *scores.repeated(given)]))
    digest = scores.digest(score for _, score in given)
    return Facts("scores", len(given), len({score.model for _, score in given}), digest)


Parsed = TypeVar("Parsed")


def _parsed(
    lines: list[str], parse: Callable[[Any], Parsed], names: Callable[[Parsed], Iterable[str]]
) -> tuple[list[tuple[int, Parsed]], list[tuple[int, str]]]:
    """(line, record) of every good line, and (line, problem) of the others."""
    found: list[tuple[int, Parsed]] = []
    problems: list[tuple[int, str]] = []
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            found.append((number, parse(json.loads(line))))
            if not _storable("".join(names(found[-1][1]))):
                problems.append((number, "holds a character that cannot be stored"))
        except (ValueError, RecursionError) as error:
            problems.append((number, str(error) if isinstance(error, LineProblem) else f"not JSON: {error}"))
    rows = len(lines) if problems else len(found)
    if rows == 0 or rows > MAX_ROWS:
        raise Invalid(
            "The file holds no verdicts." if not rows else "The file is too long.", {"file": f"has {rows:,} lines"}
        )
    return found, problems


def _told(problems: Iterable[tuple[int, str]]) -> list[str]:
    return [f"line {number}: {why}" for number, why in sorted(problems)]


def _storable(words: str) -> bool:
    return "\0" not in words and not any("\ud800" <= letter <= "\udfff" for letter in words)
