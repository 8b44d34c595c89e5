"""UltraFeedback (Cui et al., 2023): four answers rated by a model on four aspects; and its binarised form.

In the full form every rating is kept in `meta.ratings`; preferences follow from the overall scores, between neighbours
in their order, so that a preference never claims more than the scores.
"""

from itertools import pairwise
from typing import Any

from webapp.files.records import BadRow, Row

from .base_importer import Importer
from .convert import Mapping
from .fields import content_key, messages, objects, pair, remaining_fields
from .trainers.preferences import parts

RATER = "gpt-4"


def knows(row: Row) -> float:
    if {"instruction", "completions", "models"} <= row.keys() or {"instruction", "completions", "source"} <= row.keys():
        return 0.98
    return 0.97 if {"prompt", "chosen", "rejected", "score_chosen", "score_rejected"} <= row.keys() else 0.0


def convert(row: Row, mapping: Mapping) -> dict[str, Any]:
    return _full(row) if "completions" in row else _binarised(row)


def _binarised(row: Row) -> dict[str, Any]:
    prompt, chosen, rejected = parts(row)
    used = {"prompt", "chosen", "rejected", "messages", "prompt_id", "score_chosen", "score_rejected"}
    data: dict[str, Any] = {
        "key": content_key(prompt, chosen, rejected),
        "prompt": prompt,
        "source": "UltraFeedback",
        "meta": remaining_fields(row, used) | _scores(row),
    }
    if row.get("prompt_id"):
        data["meta"]["prompt_id"] = row["prompt_id"]
    if chosen == rejected or row.get("score_chosen") == row.get("score_rejected") is not None:
        # the file calls one of them chosen, but equal scores are a tie
        answers = [{"id": "a", "text": chosen}, {"id": "b", "text": rejected}]
        return data | {"responses": answers, "preferences": [_between("a", "b", 0)]}
    return data | pair(chosen, rejected)


def _scores(row: Row) -> Row:
    ratings = [
        {"response": side, "scale": "overall", "rater": RATER, "score": row[name]}
        for side, name in (("a", "score_chosen"), ("b", "score_rejected"))
        if isinstance(row.get(name), int | float)
    ]
    return {"ratings": ratings} if ratings else {}


def _full(row: Row) -> dict[str, Any]:
    prompt = messages(row.get("instruction"), "instruction")
    completions = objects(row, "completions")
    for index, each in enumerate(completions):
        if not isinstance(each.get("response"), str):
            raise BadRow(f"completions.{index}.response", "must be text")
    return {
        "key": content_key(prompt, [each["response"] for each in completions]),
        "prompt": prompt,
        "source": "UltraFeedback",
        "domain": str(row.get("source") or ""),
        "responses": [
            {"id": f"r{i}", "text": each["response"], "origin": str(each.get("model") or "")}
            for i, each in enumerate(completions, 1)
        ],
        "preferences": _preferences(completions),
        "meta": remaining_fields(row, {"instruction", "completions", "source", "models"})
        | {"ratings": [rating for i, each in enumerate(completions, 1) for rating in _ratings(f"r{i}", each)]}
        | {"completions": [remaining_fields(each, {"response", "model", "annotations"}) for each in completions]},
    }


def _preferences(completions: list[Row]) -> list[Row]:
    scored = [
        (each["overall_score"], f"r{i}")
        for i, each in enumerate(completions, 1)
        if _is_number(each.get("overall_score"))
    ]
    ordered = sorted(scored, key=lambda pair: -pair[0])  # stable: equal scores stay in the file's order
    return [_between(better, worse, -2 if high > low else 0) for (high, better), (low, worse) in pairwise(ordered)]


def _between(a: str, b: str, strength: int) -> Row:
    return {"a": a, "b": b, "strength": strength, "rater": RATER}


def _ratings(response: str, completion: Row) -> list[Row]:
    """Every aspect's rating; one that says N/A is left out: it is missing, not low."""
    annotations = completion.get("annotations")
    found = []
    for scale, given in annotations.items() if isinstance(annotations, dict) else ():
        for each in given if isinstance(given, list) else [given]:
            score = _number(each.get("Rating")) if isinstance(each, dict) else None
            if score is not None:
                why = str(each.get("Rationale For Rating") or each.get("Rationale") or "").strip()
                rating = {"response": response, "scale": scale, "rater": RATER, "score": score}
                found.append(rating | ({"feedback": why} if why else {}))
    return found


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _number(value: Any) -> float | None:
    try:
        number = float(value)
    except (TypeError, ValueError):
        return None
    return int(number) if number.is_integer() else number


IMPORTER = Importer(
    name="ultrafeedback",
    label="UltraFeedback",
    help="Instruction with completions and their ratings; or prompt, chosen and rejected with score_chosen and score_rejected.",
    knows=knows,
    convert=convert,
)
