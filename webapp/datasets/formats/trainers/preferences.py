"""TRL's preference format: prompt, chosen, rejected; as text or as conversations; the prompt given or implied."""

from typing import Any

from webapp.files.records import BadRow, Row

from ..base_importer import Importer
from ..convert import Mapping
from ..fields import content_key, labels, messages, pair, remaining_fields

USED = {"prompt", "chosen", "rejected", "id", "key"}


def knows(row: Row) -> float:
    if not {"chosen", "rejected"} <= row.keys():
        return 0.0
    if not all(isinstance(row[side], str) or _is_conversation(row[side]) for side in ("chosen", "rejected")):
        return 0.0
    return 0.9 if "prompt" in row or isinstance(row["chosen"], list) else 0.0


def _is_conversation(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(message, dict) for message in value)


def convert(row: Row, mapping: Mapping) -> dict[str, Any]:
    prompt, chosen, rejected = parts(row)
    key = row.get("key") or row.get("id") or content_key(prompt, chosen, rejected)
    told, read = labels(row)
    return {
        "key": str(key),
        "prompt": prompt,
        **pair(chosen, rejected),
        **told,
        "meta": remaining_fields(row, USED | read),
    }


def parts(row: Row) -> tuple[list[dict[str, str]], str, str]:
    """(prompt, better answer, worse answer). Raises BadRow at the field that is missing or malformed."""
    for field in ("chosen", "rejected"):
        if row.get(field) is None:
            raise BadRow(field, "is missing")
    if row.get("prompt") is not None:
        prompt = messages(row["prompt"], "prompt")
        return prompt, completion(row["chosen"], "chosen", prompt), completion(row["rejected"], "rejected", prompt)
    chosen, rejected = messages(row["chosen"], "chosen"), messages(row["rejected"], "rejected")
    shared = next((i for i, (a, b) in enumerate(zip(chosen, rejected, strict=False)) if a != b), 0)
    if not shared:
        raise BadRow("prompt", "is missing, and chosen and rejected share no beginning that could be it")
    prompt = chosen[:shared]
    return prompt, completion(chosen, "chosen", prompt), completion(rejected, "rejected", prompt)


def completion(value: Any, field: str, prompt: list[dict[str, str]]) -> str:
    """The one answer that `value` holds, with or without the prompt before it."""
    if isinstance(value, str):
        return value
    turns = messages(value, field)
    if len(turns) > len(prompt) and turns[: len(prompt)] == prompt:
        turns = turns[len(prompt) :]
    if len(turns) != 1 or turns[0]["role"] != "assistant":
        raise BadRow(field, "must be text or one message of the assistant after the prompt")
    return turns[0]["content"]


IMPORTER = Importer(
    name="trl_preference",
    label="TRL preference",
    help="Prompt, chosen and rejected, as text or as conversations; split, group, domain and source where there are any.",
    knows=knows,
    convert=convert,
)
