"""Prompts to train on with a reward: verl's layout, OpenRLHF's input and label, TRL's prompt with a rubric or a reference.

The truth for an answer is a rubric if it is the JSON text of one, as our exports write it; otherwise it is a reference.
"""

import json
from typing import Any

from webapp.files.records import BadRow, Row

from ..base_importer import Importer
from ..convert import Mapping
from ..fields import content_key, messages, remaining_fields, side_of

USED = {"key", "id", "prompt", "input", "label", "rubric", "reference", "reward_model", "data_source", "ability"}
USED |= {"extra_info", "split", "group", "domain", "source"}


def knows(row: Row) -> float:
    if "prompt" in row and isinstance(row.get("reward_model"), dict):
        return 0.95
    if _is_conversation(row.get("input")) and "label" in row:
        return 0.9
    if _is_conversation(row.get("prompt")) and {"rubric", "reference"} <= row.keys() and "completion" not in row:
        return 0.9
    return 0.0


def _is_conversation(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(m, dict) and "content" in m for m in value)


def convert(row: Row, mapping: Mapping) -> dict[str, Any]:
    field = "prompt" if row.get("prompt") is not None else "input"
    prompt = messages(row.get(field), field)
    extra = row["extra_info"] if isinstance(row.get("extra_info"), dict) else {}
    rubric, reference = _truth(row, extra)
    key = row.get("key") or row.get("id") or _index(extra)
    side = row.get("split") or extra.get("split")
    data: dict[str, Any] = {
        "key": str(key if key is not None else content_key(prompt, rubric, reference)),
        "prompt": prompt,
        "domain": str(row.get("domain") or row.get("ability") or ""),
        "source": str(row.get("source") or row.get("data_source") or ""),
        "rubric": rubric,
        "reference": reference,
        "meta": remaining_fields(row, USED)
        | remaining_fields({"extra_info": remaining_fields(extra, {"index", "split", "reference"}) or None}, set()),
    }
    if row.get("group"):
        data["group"] = str(row["group"])
    if side_of(side) is None:
        return data | ({"meta": data["meta"] | {"split": side}} if side is not None else {})
    return data | {"split": side_of(side)}


def _index(extra: Row) -> str | None:
    """The index of the row in its source; a number begins again in each split, so the split is part of the key."""
    index, split = extra.get("index"), extra.get("split")
    if index is None:
        return None
    return f"{split}-{index}" if split and not isinstance(index, str) else str(index)


def _truth(row: Row, extra: Row) -> tuple[Row | None, str | None]:
    """(rubric, reference): from `rubric` and `reference`, or whichever of the two `ground_truth` or `label` holds."""
    given = row.get("rubric")
    reward = row.get("reward_model")
    if given is None:
        given = reward.get("ground_truth") if isinstance(reward, dict) else row.get("label")
    rubric = _rubric(given)
    reference = row.get("reference") if row.get("reference") is not None else extra.get("reference")
    if reference is None and rubric is None and given is not None:
        reference = given if isinstance(given, str) else json.dumps(given, ensure_ascii=False)
    if reference is not None and not isinstance(reference, str):
        raise BadRow("reference", f"must be text, found {type(reference).__name__}")
    return rubric, reference


def _rubric(value: Any) -> Row | None:
    if isinstance(value, str) and value.lstrip()[:1] == "{":
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return None  # a text that happens to start with a bracket
    return value if isinstance(value, dict) and isinstance(value.get("criteria"), list) else None


IMPORTER = Importer(
    name="rl_prompts",
    label="Prompts with a reward (verl, OpenRLHF, TRL)",
    help="verl's prompt and reward_model; OpenRLHF's input and label; prompt with rubric (JSON text) and reference.",
    knows=knows,
    convert=convert,
)
