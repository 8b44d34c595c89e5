"""The base of exporters: a named way to write examples as rows of a layout that other programs read.

Other layouts have no place for all fields of an example. If our importer can read the layout, each row has a column `touchstone`: the
missing parts, as changes to the importer's result for the row. So texts that were edited in the file stay edited, and an untouched file
comes back as the identical version. Trainers ignore columns that they do not know; `extras=false` leaves it out.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

import pyarrow as pa

from trainer.contracts import Example

from .patches import COLUMN

Row = dict[str, Any]
Kind = Literal["jsonl", "parquet"]
EXTRAS = COLUMN
PAIR = "a pair with a better side"
ANSWER = "an answer to imitate"
MESSAGES = pa.list_(pa.struct([("role", pa.string()), ("content", pa.string())]))


@dataclass(frozen=True)
class Exporter:
    """`rows` writes one example as no, one or several rows. `holds` names the fields of an example that the layout has
    a place for by itself; `importer` reads it back. `schema` is of the Parquet file, None if there is none."""

    name: str
    label: str
    help: str
    rows: Callable[[Example], Iterator[Row]]
    holds: frozenset[str]
    schema: pa.Schema | None = None
    importer: str | None = None
    needs: str = ""  # what an example must have to be in the file at all, in words
    kinds: tuple[Kind, ...] = field(default=("jsonl", "parquet"))
    otherwise: tuple[tuple[str, str], ...] = ()  # a kind of criterion of which the layout says something else, and what


def messages(example: Example) -> list[dict[str, str]]:
    return [{"role": message.role, "content": message.content} for message in example.prompt]


def asked(example: Example) -> str:
    """The prompt as one text; the turns of a conversation are named and separated."""
    if len(example.prompt) == 1:
        return example.prompt[0].content
    return "\n\n".join(f"{message.role}: {message.content}" for message in example.prompt)


def compact(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def facts(example: Example, labelled_by: list[str]) -> Row:
    """The columns that all our layouts have besides their own. `labelled_by`: the origins of the row's labels, see `label_origin`."""
    told = {"split": example.split, "group": example.group, "domain": example.domain, "source": example.source}
    return {"key": example.key, **told, LABELLED_BY: labelled_by}


LABELLED_BY = "labelled_by"
FACTS = [
    *((name, pa.string()) for name in ("key", "split", "group", "domain", "source")),
    (LABELLED_BY, pa.list_(pa.string())),
]


def schema(*columns: tuple[str, pa.DataType], extras: bool = False) -> pa.Schema:
    return pa.schema([*columns, *FACTS, *([(EXTRAS, pa.string())] if extras else [])])


def rubric(example: Example) -> str | None:
    """The rubric as JSON text: a column of one type for any arguments of its verifiers."""
    return compact(example.rubric.model_dump(mode="json", exclude_defaults=True)) if example.rubric else None
