"""Prompts of environments: rows of the library verifiers, and rows of NeMo Gym with a rubric that a judge reads."""

import json
from typing import Any

from webapp.files.records import BadRow, Row

from ..base_importer import Importer
from ..convert import Mapping
from ..fields import content_key, messages, remaining_fields, side_of
from . import criteria
from .criteria import AskedCriterion

FACTS = {"key", "split", "group", "domain", "source", "reference", "answer", "rubric"}
VERIFIERS = FACTS | {"id", "prompt", "info"}
GYM = FACTS | {"uuid", "responses_create_params", "context"}
PARAMS = "responses_create_params"


def knows(row: Row) -> float:
    if isinstance(row.get(PARAMS), dict) and "input" in row[PARAMS]:
        return 0.95
    if "prompt" in row and "answer" in row and "completion" not in row and _is_info(row.get("info")):
        return 0.92
    return 0.0


def _is_info(value: Any) -> bool:
    return isinstance(value, dict) or (isinstance(value, str) and value.lstrip()[:1] == "{")


def convert(row: Row, mapping: Mapping) -> dict[str, Any]:
    prompt, rubric, meta = _gym(row) if PARAMS in row else _verifiers(row)
    reference = row.get("reference") if row.get("reference") is not None else row.get("answer") or None
    if reference is not None and not isinstance(reference, str):
        raise BadRow("answer", f"must be text, found {type(reference).__name__}")
    key = next((row[name] for name in ("key", "id", "uuid") if row.get(name) is not None), None)
    data: dict[str, Any] = {
        "key": str(key if key is not None else content_key(prompt, rubric, reference)),
        "prompt": prompt,
        "domain": str(row.get("domain") or ""),
        "source": str(row.get("source") or ""),
        "rubric": rubric,
        "reference": reference,
        "meta": meta,
    }
    if row.get("group"):
        data["group"] = str(row["group"])
    if (side := side_of(row.get("split"))) is not None:
        data["split"] = side
    elif row.get("split") is not None:
        data["meta"]["split"] = row["split"]
    return data


def _verifiers(row: Row) -> tuple[list[Row], Row | None, Row]:
    """(prompt, rubric, other fields) of a row of verifiers."""
    info = row.get("info")
    if isinstance(info, str):
        try:
            info = json.loads(info)
        except (ValueError, RecursionError):
            raise BadRow("info", "must be JSON") from None
    if not isinstance(info, dict):
        raise BadRow("info", "must be an object")
    rubric = criteria.read(info["criteria"], "info.criteria", _named) if info.get("criteria") else None
    other = {name: value for name, value in info.items() if name != "criteria"}
    return (
        messages(row.get("prompt"), "prompt"),
        rubric,
        remaining_fields(row, VERIFIERS) | ({"info": other} if other else {}),
    )


def _named(item: Row, field: str) -> AskedCriterion:
    choices = item.get("choices", ["no", "yes"])
    if not isinstance(choices, list) or len(choices) != 2:
        raise BadRow(f"{field}.choices", "must be two answers, the worse first: a criterion here is met or not met")
    return AskedCriterion(item.get("name"), item.get("text"), item.get("weight", 1.0), choices == ["yes", "no"])


def _gym(row: Row) -> tuple[list[Row], Row | None, Row]:
    """(prompt, rubric, other fields) of a row of NeMo Gym; sampling parameters stay in the last."""
    params = row[PARAMS] if isinstance(row[PARAMS], dict) else {}
    prompt = messages(params.get("input"), f"{PARAMS}.input")
    rubric = criteria.read(row["rubric"], "rubric", _question) if row.get("rubric") else None
    meta = remaining_fields(row, GYM)
    if others := remaining_fields(params, {"input"}):
        meta[PARAMS] = others
    if row.get("context") not in (None, conversation(prompt)):
        meta["context"] = row["context"]
    return prompt, rubric, meta


def _question(item: Row, field: str) -> AskedCriterion:
    earns = str(item.get("pass_criteria", "YES")).upper()
    return AskedCriterion(item.get("id"), item.get("question"), item.get("weight", 1.0), earns == "NO")


def conversation(prompt: list[Row]) -> str:
    """The prompt in the form that NeMo Gym's rubric judge reads."""
    return "\n\n".join(f"[{message['role'].upper()}]: {message['content']}" for message in prompt)


IMPORTER = Importer(
    name="environments",
    label="Prompts of environments (verifiers, NeMo Gym)",
    help="verifiers' prompt, answer and info with criteria; NeMo Gym's responses_create_params with a rubric of questions.",
    knows=knows,
    convert=convert,
)
