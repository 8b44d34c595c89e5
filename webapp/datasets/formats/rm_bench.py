"""RM-Bench (Liu et al., 2024): each prompt with a right and a wrong answer in three styles, from concise to formatted."""

from typing import Any

from webapp.files.records import BadRow, Row

from .base_importer import Importer
from .convert import Mapping
from .fields import CHOSEN_STRENGTH, content_key, messages, remaining_fields

STYLES = ("concise", "detailed_plain", "detailed_markdown")
USED = {"id", "prompt", "chosen", "rejected", "domain"}


def knows(row: Row) -> float:
    return 0.97 if {"prompt", "chosen", "rejected", "domain"} <= row.keys() and _three(row) else 0.0


def _three(row: Row) -> bool:
    return all(_texts(row.get(side)) for side in ("chosen", "rejected"))


def _texts(value: Any) -> bool:
    return isinstance(value, list) and len(value) == len(STYLES) and all(isinstance(text, str) for text in value)


def convert(row: Row, mapping: Mapping) -> dict[str, Any]:
    for side in ("chosen", "rejected"):
        if not _texts(row.get(side)):
            raise BadRow(side, "must be a list of three answers: concise, detailed, detailed with Markdown")
    prompt = messages(row.get("prompt"), "prompt")
    domain = str(row.get("domain") or "")
    # ids are unique only within a domain, and each domain has its own file
    known = (
        f"{domain}-{row['id']}" if row.get("id") is not None else content_key(prompt, row["chosen"], row["rejected"])
    )
    return {
        "key": known,
        "prompt": prompt,
        "source": "RM-Bench",
        "domain": domain,
        "responses": [
            {"id": f"{side}_{style}", "text": text, "tags": [f"style:{style}"]}
            for side in ("chosen", "rejected")
            for style, text in zip(STYLES, row[side], strict=True)
        ],
        # all nine comparisons: the benchmark's easy, normal and hard accuracy are about different styles
        "preferences": [
            {"a": f"chosen_{one}", "b": f"rejected_{other}", "strength": CHOSEN_STRENGTH}
            for one in STYLES
            for other in STYLES
        ],
        "meta": remaining_fields(row, USED),
    }


IMPORTER = Importer(
    name="rm_bench",
    label="RM-Bench",
    help="Prompt and domain with three chosen and three rejected answers in three styles.",
    knows=knows,
    convert=convert,
    heldout_share=1.0,
)
