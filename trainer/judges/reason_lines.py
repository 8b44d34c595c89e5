"""Judgements of two answers in lines: reasons, then one of five verdicts. No text raises.

- a reason
- the next one
Verdict: A better
"""

import re
from dataclasses import dataclass

from .answers import without_thinking

VERDICTS = ("A much better", "A better", "tie", "B better", "B much better")
FORM = (
    "Reasons, the weightiest first, one a line behind “- ”. Then “Verdict: ” and one of: " + ", ".join(VERDICTS) + "."
)
"""The text that asks for the form. Stored versions of judges show it word for word."""
_REASON = re.compile(r"\s*(?:[-*•]|\d{1,3}[.)])\s+(.*\S)\s*")
_VERDICT = re.compile(r"\s*[*_#]*verdict[*_]*\s*:[*_]*\s*(.*?)[*_.\s]*", re.I)
_WORDS = {words.lower(): words for words in VERDICTS}


@dataclass(frozen=True)
class ReasonLines:
    """`verdict` is one of VERDICTS, or None if no verdict can be read; `problem` then says why. `whole`: the text has only reasons and, at the
    end, the verdict."""

    reasons: tuple[str, ...]
    verdict: str | None
    problem: str = ""
    whole: bool = False


def read_lines(text: str) -> ReasonLines:
    """The judgement in `text`, after any thinking aloud."""
    lines = [line for line in without_thinking(text).splitlines() if line.strip()]
    verdicts = [found[1] for line in lines if (found := _VERDICT.fullmatch(line))]
    reasons = tuple(found[1] for line in lines if not _VERDICT.fullmatch(line) and (found := _REASON.fullmatch(line)))
    if len(verdicts) != 1:
        problem = f"there are {len(verdicts)} verdicts" if verdicts else "there is no line that begins with “Verdict:”"
        return ReasonLines(reasons, None, problem)
    verdict = _WORDS.get(" ".join(verdicts[0].lower().split()))
    if verdict is None:
        return ReasonLines(reasons, None, f"the verdict is none of the five: {verdicts[0][:60]}")
    last = _VERDICT.fullmatch(lines[-1]) is not None
    return ReasonLines(reasons, verdict, "", bool(reasons) and last and len(reasons) == len(lines) - 1)
