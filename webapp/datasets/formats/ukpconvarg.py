"""UKPConvArg1 (Habernal and Gurevych, 2016): which of two arguments convinces more, by five raters with a reason each.

Pairs, ranks and strict labels name arguments by id; their texts come from arguments.jsonl beside them.
"""

from typing import Any

from webapp.files.records import BadRow, Row

from .base_importer import Beside, Importer
from .convert import Convert, Mapping
from .fields import not_given, objects, one_of, remaining_fields, text_of

ARGUMENTS = "arguments.jsonl"
STRENGTH = {"a1": -2, "equal": 0, "a2": 2}
PAIR, ARGUMENT = {"topic", "id", "a1", "a2", "annotations"}, {"topic", "id", "stance", "text"}
RANK, LABEL = {"topic", "id", "rank"}, {"topic", "id", "label"}


def knows(row: Row) -> float:
    if row.keys() >= PAIR or row.keys() >= ARGUMENT:
        return 0.98
    return 0.97 if row.keys() in (RANK, LABEL) and str(row["id"]).startswith("arg") else 0.0


def bind(beside: Beside) -> Convert:
    arguments: dict[str, Row] = {}

    def found(row: Row, argument: str) -> Row:
        if not arguments:
            given = (each for each in beside.rows(ARGUMENTS) if each.keys() >= ARGUMENT)
            arguments.update({f"{each['topic']}/{each['id']}": each for each in given} or {"": {}})
        return arguments.get(f"{row['topic']}/{argument}", {})

    def convert(row: Row, mapping: Mapping) -> dict[str, Any]:
        for field in ("topic", "id"):
            text_of(row, field)
        if "text" in row:
            return _example(row, [row["id"]], lambda _: row)
        if "rank" in row:
            return _ranked(row, found)
        return _labelled(row, found) if "label" in row else _judged(row, found)

    return convert


def _judged(row: Row, found: Any) -> dict[str, Any]:
    sides = [text_of(row, "a1"), text_of(row, "a2")]
    data = _example(row, sides, lambda side: found(row, side))
    given = objects(row, "annotations")
    data["preferences"] = [_preference(each, sides, index) for index, each in enumerate(given)]
    kept = [{"rater": each["worker"], **remaining_fields(each, {"worker", "value", "reason"})} for each in given]
    data["meta"] |= {"raters": kept, **({"gold": row["gold"]} if row.get("gold") else {})}
    return data


def _preference(given: Row, sides: list[str], index: int) -> dict[str, Any]:
    for field in ("worker", "value"):
        if not isinstance(given.get(field), str):
            raise BadRow(f"annotations.{index}.{field}", "is missing")
    reason = str(given.get("reason") or "").strip()
    return {
        "a": sides[0],
        "b": sides[1],
        "strength": one_of(given, "value", STRENGTH),
        "rater": given["worker"],
        "reasons": [{"text": reason}] if reason else [],
    }


def _labelled(row: Row, found: Any) -> dict[str, Any]:
    sides = row["id"].split("_")
    if len(sides) != 2:
        raise BadRow("id", f"must name two arguments with _ between, found {row['id']!r}")
    data = _example(row, sides, lambda side: found(row, side))
    strength = one_of(row, "label", STRENGTH)
    data["preferences"] = [{"a": sides[0], "b": sides[1], "strength": strength, "rater": "gold"}]
    return data


def _ranked(row: Row, found: Any) -> dict[str, Any]:
    data = _example(row, [row["id"]], lambda side: found(row, side))
    try:
        data["meta"]["rank"] = float(row["rank"])  # the lower, the more convincing
    except (TypeError, ValueError) as error:
        raise BadRow("rank", "must be a number") from error
    return data


def _example(row: Row, sides: list[str], found: Any) -> dict[str, Any]:
    known = [found(side) for side in sides]
    about: Row = next((each for each in known if each), {})
    title = about.get("debate_title") or row["topic"].split("_")[0].replace("-", " ")
    stance = about.get("stance") or row["topic"].partition("_")[2].replace("-", " ")
    return {
        "key": f"{row['topic']}/{row['id']}",
        "prompt": [{"role": "user", "content": f"Debate: {title}\nSide argued for: {stance}"}],
        "source": "UKPConvArg1",
        "domain": row["topic"],
        "tags": [] if all(known) else ["text missing"],
        "responses": [
            {"id": side, "text": each.get("text") or not_given(f"argument {side}", ARGUMENTS)}
            for side, each in zip(sides, known, strict=True)
        ],
        "meta": remaining_fields(row, PAIR | ARGUMENT | RANK | LABEL | {"gold", "debate_title"}),
    }


IMPORTER = Importer(
    name="ukpconvarg1",
    label="UKPConvArg1 arguments",
    help="Pairs of arguments with the judgements and reasons of several raters; arguments, ranks and strict labels.",
    knows=knows,
    bind=bind,
    aside=lambda row: "annotations" not in row,
)
