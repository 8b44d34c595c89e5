"""hh-rlhf: two transcripts, `Human:` and `Assistant:` by turns, the first one preferred (Bai et al., 2022)."""

import re
from typing import Any

from webapp.files.records import BadRow, Row

from .base_importer import Importer
from .convert import Mapping
from .fields import content_key, pair, remaining_fields, text_of

TURN = re.compile(r"(?:\A|\n\n)(Human|Assistant):[ ]?")
ROLES = {"Human": "user", "Assistant": "assistant"}


def knows(row: Row) -> float:
    return 0.97 if _is_transcript(row.get("chosen")) and "prompt" not in row else 0.0


def _is_transcript(value: Any) -> bool:
    return isinstance(value, str) and value.lstrip("\n").startswith("Human:")


def turns(transcript: str, field: str) -> list[dict[str, str]]:
    """The transcript as messages. Raises BadRow if it does not start with a human's turn."""
    parts = TURN.split(transcript)
    if len(parts) < 3 or parts[0].strip() or parts[1] != "Human":
        raise BadRow(field, "must be a transcript that starts with 'Human:'")
    return [{"role": ROLES[role], "content": text.strip()} for role, text in zip(parts[1::2], parts[2::2], strict=True)]


def convert(row: Row, mapping: Mapping) -> dict[str, Any]:
    chosen = turns(text_of(row, "chosen"), "chosen")
    rejected = turns(text_of(row, "rejected"), "rejected")
    shared = _shared(chosen, rejected)
    return {
        "key": content_key(chosen, rejected),
        "prompt": chosen[:shared],
        "source": "hh-rlhf",
        **pair(_answer(chosen[shared:], "chosen"), _answer(rejected[shared:], "rejected")),
        "meta": remaining_fields(row, {"chosen", "rejected"}),
    }


def _shared(chosen: list[dict[str, str]], rejected: list[dict[str, str]]) -> int:
    """The number of leading turns that are the prompt of both: they are equal, and the last of them is the human's."""
    shared = 0
    for left, right in zip(chosen, rejected, strict=False):
        if left != right:
            break
        shared += 1
    while shared and chosen[shared - 1]["role"] != "user":
        shared -= 1
    # if one transcript is the start of the other, its last answer must not become part of the prompt
    while shared and shared >= min(len(chosen), len(rejected)):
        shared -= 2
    if shared < 1:
        raise BadRow("rejected", "shares no opening turn of the human with chosen")
    return shared


def _answer(rest_of: list[dict[str, str]], field: str) -> str:
    """The answer; if the transcripts differ earlier, everything from there on with its speakers."""
    if not rest_of or rest_of[0]["role"] != "assistant":
        raise BadRow(field, "has no answer of the assistant after the shared turns")
    names = {role: name for name, role in ROLES.items()}
    first, *others = rest_of
    return "\n\n".join([first["content"], *(f"{names[turn['role']]}: {turn['content']}" for turn in others)])


IMPORTER = Importer(
    name="hh_rlhf",
    label="hh-rlhf transcripts",
    help="Chosen and rejected transcripts of a human and an assistant, as JSON Lines, gzipped or not.",
    knows=knows,
    convert=convert,
)
