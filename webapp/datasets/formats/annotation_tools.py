"""The common part of exports of annotation tools: texts by name, and what each person answered to each question.

Every answer is kept as it was given in `meta.answers`. An answer that clearly names one of two texts also becomes a preference, and a text
by the same person its reason; numbers become ratings. Unclear answers are not guessed.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

from webapp.files.records import BadRow, FileHead, Row, RowProblem

from .fields import messages

SIDES = (("a", "b"), ("1", "2"), ("left", "right"), ("first", "second"), ("one", "two"))
FIRST, SECOND = ({pair[index] for pair in SIDES} for index in (0, 1))
EVEN = {"tie", "tied", "equal", "equally", "same", "neither", "both", "draw"}
STEPS = {"much": 3, "significantly": 3, "far": 3, "slightly": 1, "bit": 1, "marginally": 1}
NOISE = {"response", "answer", "text", "option", "model", "output", "completion", "is", "are", "the", "better", "good"}
SURE = NOISE | {
    "prefer",
    "preferred",
    "about",
    "they",
    "than",
    "wins",
    "winner",
    "chosen",
    "best",
    "summary",
    "pair",
    "a",
}
WORDS = re.compile(r"[^\W_]+")
ARTICLE = re.compile(r"\ba (?=bit\b)")  # this "a" names no side
LACKING = "[the export gives no prompt]"
MAX_ROWS = 500_000  # of an export whose rows are merged by item, because all of them are then in memory


@dataclass(frozen=True)
class RaterAnswer:
    """`value` is text, a number, or another value that the tool wrote."""

    question: str
    rater: str
    value: Any


def example(key: str, source: str, fields: Row, answers: list[RaterAnswer], meta: Row) -> dict[str, Any]:
    """The data of one example. Raises BadRow if there is no text at all."""
    texts = {name: value for name, value in fields.items() if _is_text(value)}
    if not texts:
        raise BadRow("", "holds no text that could be shown")
    sides = two_sides(texts)
    asked = _asked(texts, sides)
    data: dict[str, Any] = {
        "key": key,
        "source": source,
        "prompt": messages(texts[asked], asked) if asked else [{"role": "user", "content": LACKING}],
        "responses": _responses(texts, sides, asked),
        "preferences": _preferences(answers, sides) if sides else [],
    }
    placed = {asked, *(sides or ())}
    left = {name: value for name, value in fields.items() if name not in placed and value is not None}
    told = [{"question": each.question, "rater": each.rater, "value": each.value} for each in answers]
    ratings = [
        {"scale": each.question, "rater": each.rater, "score": each.value} for each in answers if _is_number(each.value)
    ]
    extra = {"fields": left, "answers": told, "ratings": ratings}
    return data | {"meta": meta | {name: value for name, value in extra.items() if value}}


def _is_text(value: Any) -> bool:
    if isinstance(value, str):
        return bool(value.strip())
    return (
        isinstance(value, list)
        and bool(value)
        and all(isinstance(m, dict) and {"role", "content"} <= m.keys() for m in value)
    )


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def two_sides(texts: Iterable[str]) -> tuple[str, str] | None:
    """The two names that differ only in A and B, 1 and 2, left and right, ...; None if there is no such pair."""
    names = {name.lower(): name for name in texts}
    for first, second in SIDES:
        for lower, name in names.items():
            words = re.split(r"(?<![^\W_])(?=[^\W_])|(?<=[^\W_])(?![^\W_])|(?<=[^\W\d_])(?=\d)", lower)
            for index, word in enumerate(words):
                other = "".join((*words[:index], second, *words[index + 1 :]))
                if word == first and other in names:
                    return name, names[other]
    return None


def _asked(texts: Row, sides: tuple[str, str] | None) -> str:
    from .table import guess  # here, because it imports modules that import this one

    left = {name: value for name, value in texts.items() if name not in (sides or ())}
    return guess(FileHead("", (left,))).get("prompt") or next(iter(left), "")


def _responses(texts: Row, sides: tuple[str, str] | None, asked: str) -> list[Row]:
    from .table import guess

    if sides:
        return [{"id": id, "text": _plain(texts[name])} for id, name in zip("ab", sides, strict=True)]
    answer = guess(FileHead("", ({name: value for name, value in texts.items() if name != asked},))).get("response")
    return [{"id": "r1", "text": _plain(texts[answer])}] if answer else []


def _plain(value: Any) -> str:
    return value if isinstance(value, str) else "\n\n".join(str(message["content"]) for message in value)


def _preferences(answers: list[RaterAnswer], sides: tuple[str, str]) -> list[Row]:
    """A preference for each person who named a side; a person who named two different ones has none."""
    found: dict[str, list[Row]] = defaultdict(list)
    reasons: dict[str, list[Row]] = defaultdict(list)
    for each in answers:
        judged = verdict(each.value, sides)
        if judged is not None:
            found[each.rater].append(judged)
        elif isinstance(each.value, str) and len(WORDS.findall(each.value)) > 2:
            reasons[each.rater].append({"text": each.value.strip()})
    return [
        {"a": "a", "b": "b", "rater": rater, "reasons": reasons[rater], **judged[0]}
        for rater, judged in found.items()
        if all(each == judged[0] for each in judged)
    ]


def verdict(value: Any, sides: tuple[str, str]) -> Row | None:
    """The strength or verdict of a short answer such as `A`, `left`, `B is much better`, `tie`; None for any other."""
    if not isinstance(value, str):
        return None
    if value in sides:
        return {"strength": -2 if value == sides[0] else 2}
    words = WORDS.findall(ARTICLE.sub("", value.lower()))
    if not 1 <= len(words) <= 6 or (words[0].isdigit() and len(words) == 1 and not _numbered(sides)):
        return None
    if "both" in words and {"bad", "worse", "poor"} & set(words):
        return {"verdict": "both_bad"}
    if EVEN & set(words):
        return {"strength": 0}
    named = [word for word in words if word in FIRST | SECOND]
    rest = set(words) - set(named) - SURE - STEPS.keys()
    if len(named) != 1 or rest:
        return None
    strength = next((STEPS[word] for word in words if word in STEPS), 2)
    return {"strength": -strength if named[0] in FIRST else strength}


def _numbered(sides: tuple[str, str]) -> bool:
    """Whether the two names differ in the numbers 1 and 2. Otherwise a number alone is a rating, which tools may write as text."""
    first, second = sides
    return second in {f"{first[:at]}2{first[at + 1 :]}" for at, letter in enumerate(first) if letter == "1"}


def merged(rows: Iterator[tuple[int, Row | RowProblem]], item: str) -> Iterator[tuple[int, Row | RowProblem]]:
    """Rows of one item each, by column `item`, as one row `{"rows": [...]}` at the line of the first."""
    groups: dict[str, tuple[int, list[Row]]] = {}
    for count, (line, row) in enumerate(rows):
        if isinstance(row, RowProblem):
            yield line, row
        elif count >= MAX_ROWS:
            yield line, RowProblem(line, "", f"exports of more than {MAX_ROWS:,} rows must be split")
            return
        elif row.get(item) is None:
            yield line, RowProblem(line, item, "is missing")
        else:
            groups.setdefault(str(row[item]), (line, []))[1].append(row)
    for line, together in groups.values():
        yield line, {"rows": together}
