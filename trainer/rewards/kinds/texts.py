"""Parts that measure only the response: its form and its length."""

from collections.abc import Sequence

from trainer.config.rewards.parts import FormatPart, OverlongPart
from trainer.contracts import VerifierSpec
from trainer.verifiers import verify

from ..guard import measure_each
from ..parts import Item, Part, Services, Unscored


async def overlong(part: OverlongPart, items: Sequence[Item], services: Services) -> list[Part]:
    return await measure_each(items, lambda item: Part(overlong_penalty(item.tokens, part.soft_tokens, item.longest)))


async def form(part: FormatPart, items: Sequence[Item], services: Services) -> list[Part]:
    return await measure_each(items, lambda item: _form(part, item.response))


def overlong_penalty(tokens: int, soft: int, longest: int) -> float:
    """0 up to `soft` tokens, then linear down to -1 at `longest` (DAPO's soft overlong punishment, Yu et al., 2025).

    Raises ValueError if `soft` is not below `longest`: there is no slope between them.
    """
    if soft >= longest:
        raise ValueError(f"the soft limit of {soft} tokens is not below the longest response of {longest}")
    return max(-1.0, min(0.0, (soft - tokens) / (longest - soft)))


def tags_fault(text: str, tags: Sequence[str]) -> str:
    """The reason why a text does not consist of these tags, each once and in order, with blanks between them; empty if it does."""
    at = 0
    for tag in tags:
        opening, closing = f"<{tag}>", f"</{tag}>"
        for mark in (opening, closing):
            if (count := text.count(mark)) != 1:
                return f"{mark} stands there {count} times" if count else f"{mark} is missing"
        start, end = text.index(opening), text.index(closing)
        if start < at or end < start:
            return f"<{tag}> is out of order"
        if text[at:start].strip():
            return f"text stands before <{tag}>"
        at = end + len(closing)
    return f"text stands behind </{tags[-1]}>" if text[at:].strip() else ""


def _form(part: FormatPart, text: str) -> Part:
    if part.form == "tags":
        fault = tags_fault(text, part.tags)
        return Part(0.0 if fault else 1.0, fault)
    if part.form == "json":
        spec = VerifierSpec(name="valid_json", args={"required": part.keys})
    else:
        spec = VerifierSpec(name="regex", args={"pattern": part.pattern, "where": "whole", "dot_all": True})
    finding = verify(spec, text)
    if finding.met is None:
        raise Unscored(finding.note)
    return Part(float(finding.met), finding.note)
