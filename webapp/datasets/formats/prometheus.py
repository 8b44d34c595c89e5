"""Prometheus evaluation sets (Kim et al., 2024): a judge's whole prompt, split into its parts.

One file holds responses scored three times by a model with feedback, the other pairs with a rubric.
"""

import re
from typing import Any

from webapp.files.records import BadRow, Row

from .base_importer import Importer
from .convert import Mapping
from .fields import content_key, criteria, messages, pair, remaining_fields, text_of

SECTION = re.compile(r"^###([^\n:]+):[ ]*\n?", re.MULTILINE)
ASKED, ANSWER, RUBRIC = "The instruction to evaluate", "Response to evaluate", "Score Rubrics"
REFERENCE, FEEDBACK = "Reference Answer (Score 5)", "Feedback"
KNOWN = ("Task Description", ASKED, ANSWER, REFERENCE, RUBRIC, FEEDBACK)
LEVEL = re.compile(r"^Score (\d+): ", re.MULTILINE)


def knows(row: Row) -> float:
    if {"chosen_instruction", "rejected_instruction"} <= row.keys():
        return 0.98
    text = row.get("instruction")
    return 0.98 if isinstance(text, str) and text.startswith("###Task Description:") else 0.0


def sections(text: str, field: str) -> dict[str, str]:
    """{heading: text} of the template. Raises BadRow if a needed heading is missing.

    The texts between may have headings of their own; only the template's headings count, each at its first place in their order.
    """
    marks: list[re.Match[str]] = []
    for found in SECTION.finditer(text):
        turn = KNOWN.index(found[1]) if found[1] in KNOWN else -1
        if turn > (KNOWN.index(marks[-1][1]) if marks else -1):
            marks.append(found)
    ends = [mark.start() for mark in marks[1:]] + [len(text)]
    parts = {mark[1]: text[mark.end() : end].strip() for mark, end in zip(marks, ends, strict=True)}
    for name in (ASKED, ANSWER, RUBRIC):
        if name not in parts:
            raise BadRow(field, f"has no section '###{name}:'")
    return parts


def rubric(text: str, field: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """(rubric of one criterion, {"c1": {score: description}}) from `[criterion]` and lines `Score 1: ...`."""
    head, *levels = LEVEL.split(text)
    asked = head.strip().removeprefix("[").removesuffix("]").strip()
    if not asked:
        raise BadRow(field, "names no criterion in its score rubric")
    described = {score: words.strip() for score, words in zip(levels[::2], levels[1::2], strict=True)}
    return {"criteria": criteria([asked])}, {"c1": described}


def convert(row: Row, mapping: Mapping) -> dict[str, Any]:
    return _pair(row) if "chosen_instruction" in row else _scored(row)


def _pair(row: Row) -> dict[str, Any]:
    chosen = sections(text_of(row, "chosen_instruction"), "chosen_instruction")
    rejected = sections(text_of(row, "rejected_instruction"), "rejected_instruction")
    for name in (ASKED, RUBRIC):
        if chosen[name] != rejected[name]:
            raise BadRow("rejected_instruction", f"differs from chosen_instruction in '{name}'")
    prompt = messages(chosen[ASKED], "chosen_instruction")
    asked, levels = rubric(chosen[RUBRIC], "chosen_instruction")
    return {
        "key": content_key(prompt, chosen[ANSWER], rejected[ANSWER]),
        "prompt": prompt,
        "source": "Prometheus HHH",
        "domain": str(row.get("source") or ""),
        "rubric": asked,
        **pair(chosen[ANSWER], rejected[ANSWER]),
        "meta": remaining_fields(row, {"chosen_instruction", "rejected_instruction", "source"}) | {"levels": levels},
    }


def _scored(row: Row) -> dict[str, Any]:
    parts = sections(text_of(row, "instruction"), "instruction")
    asked, levels = rubric(parts[RUBRIC], "instruction")
    prompt = messages(parts[ASKED], "instruction")
    used = {"instruction", "gpt4_score", "gpt4_feedback", "category", "response_source", "idx"}
    return {
        "key": content_key(prompt, parts[ANSWER], row.get("idx"), row.get("response_source")),
        "prompt": prompt,
        "source": "Prometheus Vicuna",
        "domain": str(row.get("category") or ""),
        "rubric": asked,
        "reference": parts.get(REFERENCE),
        "responses": [{"id": "r1", "text": parts[ANSWER], "origin": str(row.get("response_source") or "")}],
        "meta": remaining_fields(row, used) | {"levels": levels, "ratings": _ratings(row)},
    }


def _ratings(row: Row) -> list[Row]:
    """Every score with its feedback; the same judge was asked several times."""
    scores, words = row.get("gpt4_score") or [], row.get("gpt4_feedback") or []
    if not isinstance(scores, list) or not isinstance(words, list) or len(words) not in (0, len(scores)):
        raise BadRow("gpt4_feedback", "must be a list with one text for each of gpt4_score")
    return [
        {
            "response": "r1",
            "criterion": "c1",
            "rater": f"gpt-4 #{i}",
            "score": score,
            **({"feedback": said} if said else {}),
        }
        for i, (score, said) in enumerate(zip(scores, words or [""] * len(scores), strict=True), 1)
        if score is not None
    ]


IMPORTER = Importer(
    name="prometheus",
    label="Prometheus evaluation sets",
    help="Prompts of a judge with instruction, response and score rubric; scored by a model, or as chosen and rejected.",
    knows=knows,
    convert=convert,
)
