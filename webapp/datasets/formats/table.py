"""Any table with a mapping, which says which column is the prompt, the responses, the rubric, and so on."""

import json
from collections.abc import Collection, Iterator
from typing import Any

from webapp.files.records import BadRow, FileHead, Row

from .base_importer import Importer
from .compared_columns import FIRST, SECOND, WHICH, compared, may_say_which, numbered
from .convert import Mapping, with_ids
from .fields import content_key, messages, pair, remaining_fields, side_of

# our field -> column names from which it is guessed, the most likely first
SYNONYMS: dict[str, tuple[str, ...]] = {
    "key": ("key", "id", "uid", "prompt_id", "question_id", "example_id", "idx"),
    "prompt": (
        "prompt",
        "instruction",
        "question",
        "messages",
        "conversation",
        "conversations",
        "query",
        "input",
        "text",
    ),
    "system": ("system", "system_prompt"),
    "response": (
        "response",
        "completion",
        "answer",
        "output",
        "responses",
        "completions",
        "outputs",
        "generations",
    ),
    "chosen": ("chosen", "preferred", "winner"),
    "rejected": ("rejected", "dispreferred", "loser"),
    FIRST: (
        "response_a",
        "response_1",
        "response1",
        "answer_a",
        "answer_1",
        "answer1",
        "output_a",
        "output_1",
        "output1",
    ),
    SECOND: (
        "response_b",
        "response_2",
        "response2",
        "answer_b",
        "answer_2",
        "answer2",
        "output_b",
        "output_2",
        "output2",
    ),
    WHICH: ("preference", "winner", "preferred", "better", "choice", "chosen"),
    "rubric": ("rubric", "rubrics", "criteria"),
    "reference": ("reference", "reference_answer", "ground_truth", "target"),
    "split": ("split",),
    "group": ("group", "group_id"),
    "domain": ("domain", "category", "topic", "subject"),
    "source": ("source", "dataset"),
}

PAIRS = (("chosen", "rejected"), (FIRST, SECOND))
# A row that lacks one of these columns is refused: without it, the row would be another example than the others are
REQUIRED = ("key", "prompt", *PAIRS[0], *PAIRS[1])
NAMES = frozenset(name for names in SYNONYMS.values() for name in names)
REMEMBERED = 100  # kinds of rows, by their columns, whose mapping is kept
PARSED = {"prompt", "response", "rubric"}  # fields whose text may be JSON, with a list or an object
ANSWERS = {"task", "example", "rater", "subject", "content", "guidelines"}  # keys of a line that a project exports


class RowGuess:
    """The mapping of each row of a file for which nobody gave one, by the row's columns and those of the file's first rows."""

    def __init__(self, head: FileHead) -> None:
        self._head = head
        self._found: dict[frozenset[str], Mapping] = {}

    def __call__(self, row: Row) -> Mapping:
        kind = frozenset(name for name in row if name.lower() in NAMES)
        if kind not in self._found:
            if len(self._found) >= REMEMBERED:
                self._found.clear()
            self._found[kind] = guess(self._head, row)
        return self._found[kind]


def guess(head: FileHead, row: Row | None = None) -> Mapping:
    """The mapping that the column names suggest for the first rows of a file, or for another row of it.

    If the row lacks the column from which the first rows have a field, the field is guessed from the row's own columns, except those that
    stand beside that column in a first row.
    """
    of_head, of_row = _by_name(head.rows), _by_name((row or {},))
    columns = of_head | of_row
    unfit = _unfit(columns.keys())
    fits = {field: [name for name in SYNONYMS[field] if name in columns] for field in PAIRS[1]}
    responses = {field: _column(names, head, of_head, of_row) for field, names in fits.items()}
    told = [
        name
        for name in SYNONYMS[WHICH]
        if may_say_which([each.get(of_head.get(name, "")) for each in head.rows], numbered(responses))
    ]
    known = {**SYNONYMS, WHICH: tuple(told)}
    if WHICH not in unfit and "chosen" in columns and columns.keys().isdisjoint(told):
        # so that rows with a `chosen` that names no response are refused: otherwise nothing would read it
        unfit, known["chosen"] = unfit - {"chosen"}, ("chosen",)
    found: Mapping = {}
    for field, names in known.items():
        if field not in unfit:
            free = [name for name in names if name in columns and columns[name] not in found.values()]
            first = _column(free, head, of_head, of_row)
            found |= {field: columns[first]} if first else {}
    return found


def _column(names: list[str], head: FileHead, of_head: Collection[str], of_row: Collection[str]) -> str:
    """The one of these columns that gives a field of the row; empty if none does."""
    first = next((name for name in names if name in of_head), "")
    if first not in of_row:
        beside = set(_beside(head, first))
        first = next((name for name in names if name in of_row and name not in beside), first)
    return first


def _by_name(rows: Collection[Row]) -> dict[str, str]:
    """The columns of the rows by their names in small letters; of two spellings, the one in the first row counts."""
    return {name.lower(): name for row in reversed(tuple(rows)) for name in row}


def _beside(head: FileHead, name: str) -> Iterator[str]:
    """The columns of the first rows that have the column `name`; all in small letters."""
    for row in head.rows:
        if name in (names := _by_name((row,))):
            yield from names


def _unfit(names: Collection[str]) -> set[str]:
    """The fields that are not guessed beside these columns, because another pair of columns holds the responses."""
    one, two = (all(not set(names).isdisjoint(SYNONYMS[field]) for field in pair) for pair in PAIRS)
    return {"response", *PAIRS[0]} if two and not one else {*PAIRS[1], WHICH}


def knows(row: Row) -> float:
    return 0.3 if "prompt" in guess(FileHead("", (row,))) else 0.05


def convert(row: Row, mapping: Mapping) -> dict[str, Any]:
    columns = mapping or guess(FileHead("", (row,)))
    if "prompt" not in columns and row.keys() >= ANSWERS:
        raise BadRow(
            "prompt", "these are answers of a project, without prompts and responses: publish them on its tab Answers"
        )
    if "prompt" not in columns:
        raise BadRow("prompt", f"no column is mapped to it; the columns are {', '.join(map(str, row))}")
    _agree(columns)
    for field in REQUIRED:
        if field in columns and columns[field] not in row:
            raise BadRow(columns[field], "the row has no such column")
    cells = {field: _cell(row.get(column), field in PARSED) for field, column in columns.items()}
    for field in (*PAIRS[0], *PAIRS[1]):
        if field in columns:
            _no_messages(cells[field], columns[field], field)
    prompt = _prompt(cells, columns)
    used = {column for field, column in columns.items() if field != "response" or _is_whole(cells)}
    data: dict[str, Any] = {"prompt": prompt, "meta": remaining_fields(row, used)}
    data |= _answers(cells, columns)
    if cells.get("rubric") is not None:
        data["rubric"] = _rubric(cells["rubric"], columns["rubric"])
    for field in ("group", "domain", "source", "reference"):
        if cells.get(field) is not None:
            data[field] = _said(cells[field])
    if cells.get("split"):
        data["split"] = _split(cells["split"], columns["split"])
    data["key"] = _key(cells, columns, data)
    return data


def _agree(columns: Mapping) -> None:
    """Raises BadRow at a field that would not be read beside the others."""
    compares = FIRST in columns or SECOND in columns
    if WHICH in columns and not columns.keys() >= {FIRST, SECOND}:
        raise BadRow(WHICH, f"says which of two responses is better: map {FIRST} and {SECOND}, too")
    if "response" in columns and compares:
        raise BadRow("response", f"is not read beside {FIRST} and {SECOND}: map either it or these two")
    if compares and not columns.keys().isdisjoint(PAIRS[0]):
        raise BadRow(
            FIRST,
            f"is not read beside chosen or rejected: map one of the two pairs, and the name of the better one to {WHICH}",
        )


def _cell(value: Any, parsed: bool) -> Any:
    """The value of a cell: an empty cell is missing, and JSON in text is parsed if the field may be one."""
    if not isinstance(value, str):
        return value
    if parsed and value[:1] in ("[", "{"):
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return value
    return value or None


def _said(value: Any) -> str:
    """The value as text; a list or an object is written as JSON."""
    return json.dumps(value, ensure_ascii=False) if isinstance(value, list | dict) else str(value)


def _prompt(cells: dict[str, Any], columns: Mapping) -> list[dict[str, str]]:
    prompt = messages(cells["prompt"], columns["prompt"])
    if cells.get("system"):
        prompt = [{"role": "system", "content": _said(cells["system"])}, *prompt]
    return prompt


def _answers(cells: dict[str, Any], columns: Mapping) -> dict[str, Any]:
    chosen, rejected, response = cells.get("chosen"), cells.get("rejected"), cells.get("response")
    if (chosen is None) != (rejected is None):
        lacking = "chosen" if chosen is None else "rejected"
        raise BadRow(columns.get(lacking, lacking), "is missing: a preference needs both sides")
    if chosen is not None:
        return pair(_text(chosen, columns["chosen"]), _text(rejected, columns["rejected"]))
    if FIRST in columns or SECOND in columns:
        return compared(cells, columns)
    if response is None:
        return {}
    many = response if isinstance(response, list) else [response]
    return {"responses": [_response(one, f"r{i}", columns["response"]) for i, one in enumerate(many, 1)]}


def _response(value: Any, name: str, column: str) -> dict[str, str]:
    """One of a cell's responses: its text, or an object with `text` and perhaps `id` and `model`."""
    if not isinstance(value, dict):
        return {"id": name, "text": _text(value, column)}
    if not isinstance(value.get("text"), str):
        raise BadRow(column, "each response must be text, or an object with its text as `text`")
    origin = value.get("model") or value.get("origin") or ""
    return {"id": str(value.get("id") or name), "text": value["text"], "origin": str(origin)}


def _is_whole(cells: dict[str, Any]) -> bool:
    """Whether the example has all that the cell of responses holds. It reads none beside a pair, and has no field for a score."""
    many = cells["response"] if isinstance(cells["response"], list) else [cells["response"]]
    more = any(isinstance(one, dict) and set(one) - {"id", "text", "model"} for one in many)
    return cells.get("chosen") is None and not more


def _text(value: Any, column: str) -> str:
    if not isinstance(value, str):
        raise BadRow(column, "must be text")
    return value


def _no_messages(value: Any, column: str, field: str) -> None:
    """Raises BadRow for a list of messages, also as JSON: the text would become one response with all its brackets."""
    found = _cell(value, parsed=True)
    if (
        isinstance(found, list)
        and found
        and all(isinstance(each, dict) and each.keys() >= {"role", "content"} for each in found)
    ):
        form = "messages as JSON" if isinstance(value, str) else "a list of messages"
        reader = "; the format trl_preference reads lists of messages, in columns named prompt, chosen and rejected"
        told = reader if field in PAIRS[0] else ""
        raise BadRow(column, f"must be the text of one response, found {form}{told}")


def _rubric(value: Any, column: str) -> Any:
    """A rubric object, a list of criteria (objects or texts worth 1 point each), or text with one criterion a line."""
    if isinstance(value, str):
        value = [line.strip("-*• \t") for line in value.splitlines() if line.strip("-*• \t")]
    if isinstance(value, list):
        value = {"criteria": [{"text": item, "points": 1} if isinstance(item, str) else item for item in value]}
    if not isinstance(value, dict):
        raise BadRow(column, "must be a rubric, a list of criteria, or text with one criterion a line")
    return with_ids(value)


def _split(value: Any, column: str) -> str:
    side = side_of(value)
    if side is None:
        raise BadRow(column, f"must be train or heldout, found {value!r}")
    return side


def _key(cells: dict[str, Any], columns: Mapping, data: dict[str, Any]) -> str:
    if "key" not in columns:
        return content_key(data["prompt"], data.get("responses"))
    if cells["key"] is None:
        raise BadRow(columns["key"], "is empty")
    return _said(cells["key"])


IMPORTER = Importer(
    name="table",
    label="Table with a column mapping",
    help="JSON Lines, CSV, TSV or Parquet; say which column is the prompt, the responses, the rubric.",
    knows=knows,
    convert=convert,
    mappable=True,
    mapping_of=RowGuess,
)
