"""TRL's other formats, as text or as conversations: messages; prompt and completion, with or without a label; and steps."""

from typing import Any

from webapp.files.records import BadRow, Row

from ..base_importer import Importer
from ..convert import Mapping
from ..fields import content_key, labels, messages, remaining_fields
from .preferences import completion

USED = {"id", "key", "messages", "prompt", "completion", "label", "completions", "labels"}


def knows(row: Row) -> float:
    if _is_conversation(row.get("messages")) and not {"prompt", "chosen"} & row.keys():
        return 0.9
    if "prompt" not in row or "chosen" in row:
        return 0.0
    if isinstance(row.get("completions"), list) and isinstance(row.get("labels"), list):
        return 0.9
    if "completion" in row:
        return 0.9
    return 0.8 if row.keys() <= {"prompt", "id"} and _is_conversation(row["prompt"]) else 0.0


def _is_conversation(value: Any) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(m, dict) and "content" in m for m in value)


def convert(row: Row, mapping: Mapping) -> dict[str, Any]:
    if "messages" in row:
        data = _dialogue(row)
    elif "completions" in row:
        data = _steps(row)
    else:
        data = _completed(row)
    key = (
        row.get("key") or row.get("id") or content_key(data["prompt"], data.get("responses"), data["meta"].get("label"))
    )
    told, read = labels(row)
    data["meta"] = {name: value for name, value in data["meta"].items() if name not in read}
    return {"key": str(key), **data, **told}


def _dialogue(row: Row) -> dict[str, Any]:
    """The last message of the assistant is the answer, and everything before it is the prompt."""
    turns = messages(row["messages"], "messages")
    *prompt, last = turns
    if last["role"] != "assistant" or not prompt:
        return {"prompt": turns, "meta": remaining_fields(row, USED)}
    return {"prompt": prompt, "responses": [{"id": "r1", "text": last["content"]}], "meta": remaining_fields(row, USED)}


def _completed(row: Row) -> dict[str, Any]:
    prompt = messages(row.get("prompt"), "prompt")
    data: dict[str, Any] = {"prompt": prompt, "meta": remaining_fields(row, USED)}
    if row.get("completion") is not None:
        data["responses"] = [{"id": "r1", "text": completion(row["completion"], "completion", prompt)}]
    if row.get("label") is not None:
        if not isinstance(row["label"], bool) and row["label"] not in (0, 1):
            raise BadRow("label", f"must be true or false, found {row['label']!r}")
        data["meta"]["label"] = bool(row["label"])  # wanted or not, compared with nothing
    return data


def _steps(row: Row) -> dict[str, Any]:
    """Stepwise supervision: the steps are one answer; whether each is right stays beside it."""
    steps, labels = row["completions"], row["labels"]
    if not isinstance(steps, list) or not all(isinstance(step, str) for step in steps):
        raise BadRow("completions", "must be a list of steps")
    if not isinstance(labels, list) or len(labels) != len(steps):
        raise BadRow("labels", f"must be a list with one truth value for each of {len(steps)} steps")
    prompt = messages(row.get("prompt"), "prompt")
    told = [{"text": step, "right": bool(label)} for step, label in zip(steps, labels, strict=True)]
    text = "\n\n".join(step.strip() for step in steps)
    return {
        "prompt": prompt,
        "responses": [{"id": "r1", "text": text}],
        "meta": remaining_fields(row, USED) | {"steps": told},
    }


IMPORTER = Importer(
    name="trl_conversation",
    label="TRL conversations",
    help="Messages; prompt and completion, with a label or not; prompt with completions and labels of steps.",
    knows=knows,
    convert=convert,
)
