"""Files of recorded verdicts, whatever program wrote them, as the lines that `manage.py audit` reads."""

import json
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory

from webapp.core.problems import Invalid
from webapp.datasets.importers.bundle import Bundle
from webapp.judging.recorded import Pairwise, Record, RowProblem, UnknownFormat, detect, read
from webapp.judging.recorded.report import SIDES

AUDIT = "audit"
SHOWN_PROBLEMS = 20


def as_lines(name: str, content: bytes) -> bytes:
    """The content itself where it holds such lines already, or nothing that is known: who reads it says what is wrong.

    Raises Invalid at `file`, naming files and lines, and for verdicts that are not about pairs.
    """
    with TemporaryDirectory() as folder:
        path = Path(folder) / (Path(name).name or "verdicts")
        path.write_bytes(content)
        try:
            form = detect(Bundle(path))
            if form.name == AUDIT:
                return content
            records = _good(read(path, form))
        except UnknownFormat:
            return content
        except OSError as error:
            raise Invalid("The file cannot be read.", {"file": error.strerror or str(error)}) from error
    pairs = [record for record in records if isinstance(record, Pairwise)]
    if len(pairs) < len(records):
        raise Invalid("The file holds no verdicts on pairs.", {"file": f"is of format {form.label}: graded rubrics"})
    several = len({pair.collection for pair in pairs}) > 1
    return "\n".join(json.dumps(_line(pair, several), ensure_ascii=False) for pair in pairs).encode()


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


def _line(pair: Pairwise, several: bool) -> dict[str, str | None]:
    """Pairs of several collections are told apart by their group; their name stays the key that datasets know."""
    line = {
        "judge": pair.judge,
        "pair": pair.pair,
        "group": f"{pair.collection} {pair.group}".strip() if several else pair.group,
        "label": _side(pair.label),
        "given": _side(pair.given),
    }
    return line | ({"swapped": _side(pair.swapped)} if pair.orders == "both" else {})


def _side(value: int | None) -> str | None:
    return None if value is None else SIDES[value]
