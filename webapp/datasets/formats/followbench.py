"""FollowBench (Jiang et al., 2023): instructions that gain one constraint per level, 0 to 5.

The files state constraints inside the instruction only, so no verifier fits; one criterion asks for all of them.
"""

from typing import Any

from webapp.files.records import BadRow, Row

from .base_importer import Importer
from .convert import Mapping
from .fields import content_key, criteria, messages, remaining_fields

NEEDED = {"example_id", "category", "level", "instruction", "target"}

LACKING = "[the file gives no instruction for this level]"


def knows(row: Row) -> float:
    return 0.98 if row.keys() >= NEEDED else 0.0


def convert(row: Row, mapping: Mapping) -> dict[str, Any]:
    level = row.get("level")
    if not isinstance(level, int) or isinstance(level, bool) or not 0 <= level <= 5:
        raise BadRow("level", f"must be a number from 0 to 5, found {level!r}")
    kinds = [kind.strip() for kind in str(row.get("category") or "").split(",") if kind.strip()]
    empty = (
        row.get("instruction") == ""
    )  # 17 levels of the published file of content constraints lack their instruction
    prompt = messages(LACKING if empty else row.get("instruction"), "instruction")
    domain = kinds[0] if len(set(kinds)) == 1 else "mixed"
    data: dict[str, Any] = {
        # the file of mixed constraints has its own numbers, so the content belongs to the key
        "key": f"followbench-{domain}-{row.get('example_id')}-{level}-{content_key(prompt, row.get('category'))[:6]}",
        "prompt": prompt,
        "source": "FollowBench",
        "domain": domain,
        "tags": [f"level:{level}", *dict.fromkeys(kinds), *(["text missing"] if empty else [])],
        "meta": remaining_fields(row, {"instruction", "category", "answer"}) | {"level": level},
    }
    reference = row.get("answer") or row.get("target")
    if reference:
        data["reference"] = str(reference)
    if level and not empty:
        data["rubric"] = {"criteria": criteria([_asked(level, domain)])}
    return data


def _asked(level: int, domain: str) -> str:
    kind = "" if domain == "mixed" else f"{domain} "
    if level == 1:
        return f"The {kind}constraint that the instruction states is met."
    return f"All {level} {kind}constraints that the instruction states are met."


IMPORTER = Importer(
    name="followbench",
    label="FollowBench constraints",
    help="Instructions with example_id, category, level 0 to 5 and target.",
    knows=knows,
    convert=convert,
)
