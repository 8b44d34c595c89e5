"""RewardBench (Lambert et al., 2024) and RewardBench 2 (Malik et al., 2025): one chosen answer, or the right ones, against others."""

from typing import Any

from webapp.files.records import BadRow, Row

from .base_importer import Importer
from .convert import Mapping
from .fields import CHOSEN_STRENGTH, messages, pair, remaining_fields, text_of

FIRST = {"prompt", "chosen", "chosen_model", "rejected", "rejected_model", "subset"}
SECOND = {"prompt", "chosen", "rejected", "num_correct", "subset"}


def knows(row: Row) -> float:
    return 0.98 if row.keys() >= FIRST or row.keys() >= SECOND else 0.0


def convert(row: Row, mapping: Mapping) -> dict[str, Any]:
    if not isinstance(row.get("id"), int | str):
        raise BadRow("id", "is missing" if row.get("id") is None else "must be a number or text")
    data: dict[str, Any] = {
        "prompt": messages(row.get("prompt"), "prompt"),
        "domain": str(row.get("subset") or ""),
    }
    return data | (_second(row) if "num_correct" in row else _first(row))


def _first(row: Row) -> dict[str, Any]:
    found = pair(text_of(row, "chosen"), text_of(row, "rejected"))
    for response, name in zip(found["responses"], ("chosen_model", "rejected_model"), strict=True):
        response["origin"] = str(row.get(name) or "")
    # in some releases, ids begin again in each subset
    return found | {
        "key": f"{row['subset']}-{row['id']}",
        "source": "RewardBench",
        "meta": remaining_fields(row, FIRST | {"id"}),
    }


def _second(row: Row) -> dict[str, Any]:
    """Every right answer is better than every wrong one. Two right or two wrong answers are not compared."""
    right, wrong = _texts(row, "chosen"), _texts(row, "rejected")
    models, many = row.get("models"), len(right) + len(wrong)
    origins = models if isinstance(models, list) and len(models) == many else [""] * many
    names = [f"right{i}" for i in range(1, len(right) + 1)] + [f"wrong{i}" for i in range(1, len(wrong) + 1)]
    kept = {"id", "prompt", "chosen", "rejected", "subset", "models"}
    return {
        "key": f"{row['subset']}-{row['id']}",
        "source": "RewardBench 2",
        "responses": [
            {"id": name, "text": text, "origin": str(origin)}
            for name, text, origin in zip(names, right + wrong, origins, strict=True)
        ],
        "preferences": [
            {"a": a, "b": b, "strength": CHOSEN_STRENGTH} for a in names[: len(right)] for b in names[len(right) :]
        ],
        "meta": remaining_fields(row, kept),
    }


def _texts(row: Row, field: str) -> list[str]:
    value = row.get(field)
    if not isinstance(value, list) or not value or not all(isinstance(text, str) for text in value):
        raise BadRow(field, "must be a list of answers with at least one")
    return value


IMPORTER = Importer(
    name="rewardbench",
    label="RewardBench 1 and 2",
    help="Prompt, chosen and rejected with their models and a subset; or lists of right and wrong answers.",
    knows=knows,
    convert=convert,
    heldout_share=1.0,
)
