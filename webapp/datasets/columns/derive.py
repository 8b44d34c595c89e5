"""The small columns of an example, for lists, filters and histograms, which need not read the example again.

One function makes them, for the importer's COPY and for all other code that makes an example, so that a filter means the same for rows of
any source. It runs once per example, a million times in a large import: so each step is a pass in C.
"""

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

from trainer.contracts import Example, Preference

from .prompt_hashes import Hashes, hashes

EXCERPT = 300
LONGER = 1.5  # times: a rejected answer that is longer by this has the richer surface (RubricBench)
SURER = 2  # an answer sounds more confident if its boosters minus hedges are this many more
MARKUP = re.compile(r"\n(?:[-*] |[12]\. |[#|])|\*\*|```")
BOOSTERS = ("definitely", "certainly", "absolutely", "obviously", "clearly", "undoubtedly")
HEDGES = ("might", "maybe", "perhaps", "possibly", "not sure", "i think")
CONSTRAINTS = (
    *("must ", "should ", "exactly", "at least", "at most", "no more than", "no fewer than", "do not", "don't"),
    *("without", "avoid", "only ", "include", " words", "sentence", "paragraph", "bullet", "format", "limit"),
    *("必须", "不要", "至少", "最多", "不超过", "恰好"),
)
READ = 4_000  # characters of a text that are searched for tone and constraints
LABEL = "varchar"  # a text that many examples share
# column of datasets_example and of the staging table -> its type there, in the order of `columns`
COLUMNS = {
    "key": "text",
    "digest": "text",
    "canonical": "text",
    "excerpt": "text",
    "prompt_hash": "bigint",
    "group_hash": "bigint",
    "split": LABEL,
    "domain": LABEL,
    "source": LABEL,
    "criteria_count": "int",
    "verifiable_count": "int",
    "response_count": "int",
    "preference_count": "int",
    "prompt_length": "int",
    "response_length": "int",
    "length_ratio": "double precision",
    "strength": "double precision",
    "agreement": "double precision",
    "pass_rate": "double precision",
    "constraints": "int",
    "marks": "varchar[]",
    "verifiers": "varchar[]",
}


class Signs(NamedTuple):
    """Signs of what the texts of an example may hold. If a sign is False, a search for it would find nothing. One search over the texts of
    many examples gives the signs (see `prefilter`)."""

    markup: bool = True
    tone: bool = True
    constraints: bool = True


ANY = Signs()


def columns(
    example: Example, canonical: str | bytes | None = None, signs: Signs = ANY, known: Hashes | None = None
) -> tuple[Any, ...]:
    """The values of COLUMNS for one example; `canonical` is its canonical text, or that in UTF-8, and `known` its hashes,
    if the caller has them already. Raises ValueError when it holds what JSON or Postgres text cannot."""
    canonical = example.canonical() if canonical is None else canonical
    criteria = example.rubric.criteria if example.rubric else ()
    verifiers = [criterion.verifier.name for criterion in criteria if criterion.verifier]
    prompts = [message.content for message in example.prompt]
    responses = [response.text for response in example.responses]
    asked = prompts[-1] if example.prompt[-1].role == "user" else _asked(example)
    verdict = judged(example)
    return (
        example.key,
        example.digest_of(canonical),
        canonical,
        excerpt(asked),
        *(hashes(example) if known is None else known),
        example.split or "",
        example.domain,
        example.source,
        len(criteria),
        len(verifiers),
        len(responses),
        len(example.preferences),
        sum(map(len, prompts)),
        round(sum(map(len, responses)) / len(responses)) if responses else None,
        verdict.length_ratio if verdict else None,
        verdict.strength if verdict else None,
        agreement(example.preferences) if len(example.preferences) > 1 else None,
        _share(example.meta.get("pass_rate")),
        constraint_count(asked) if signs.constraints else 0,
        _marks(example, verdict, signs),
        sorted(set(verifiers)) if verifiers else [],
    )


def _asked(example: Example) -> str:
    """The last message of the user; if there is none, the last message."""
    return next((m.content for m in reversed(example.prompt) if m.role == "user"), example.prompt[-1].content)


def excerpt(text: str) -> str:
    """The beginning of the text, on one line: any white space becomes one space."""
    start = text[: 2 * EXCERPT]
    if not start.isprintable() or "  " in start or start.startswith(" "):
        start = " ".join(start.replace("\0", " ").split())
    return start[:EXCERPT].rstrip()


class MeanVerdict(NamedTuple):
    """The mean verdict of the raters of one pair. `strength` runs from -3 (the earlier response is much better) to 3; `chosen` and
    `rejected` are texts, None for a tie."""

    strength: float
    chosen: str | None
    rejected: str | None

    @property
    def length_ratio(self) -> float | None:
        """Characters of the rejected answer over those of the chosen one; None for a tie or an empty choice."""
        return len(self.rejected or "") / len(self.chosen) if self.chosen else None


def judged(example: Example) -> MeanVerdict | None:
    """The mean verdict on the first pair that anybody compared; None if there is no such pair."""
    if not example.preferences:
        return None
    place = [response.id for response in example.responses].index
    pair, values = None, []
    for each in example.preferences:
        if each.strength is None or each.verdict != "compared":
            continue
        first, second = place(each.a), place(each.b)
        turned = first > second
        sides = (second, first) if turned else (first, second)
        pair = pair or sides
        if sides == pair:
            values.append(-each.strength if turned else each.strength)
    if pair is None:
        return None
    mean = sum(values) / len(values)
    if not mean:
        return MeanVerdict(0.0, None, None)
    earlier, later = example.responses[pair[0]].text, example.responses[pair[1]].text
    return MeanVerdict(mean, *((earlier, later) if mean < 0 else (later, earlier)))


def agreement(preferences: Sequence[Preference]) -> float | None:
    """The share of rater pairs that take the same side, averaged over the pairs of responses that two or more judged.

    A tie and "both bad" are sides of their own; a rater who could not assess has no side. None if no pair has two raters.
    """
    votes: dict[tuple[str, str], Counter[str]] = {}
    for each in preferences:
        if each.verdict == "cannot_assess":
            continue
        turned = each.a > each.b
        pair = (each.b, each.a) if turned else (each.a, each.b)
        votes.setdefault(pair, Counter())[_side(each, turned)] += 1
    shares = [
        sum(count * (count - 1) for count in sides.values()) / (total * (total - 1))
        for sides in votes.values()
        if (total := sides.total()) > 1
    ]
    return sum(shares) / len(shares) if shares else None


def _share(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if 0 <= value <= 1 else None


def _side(each: Preference, turned: bool) -> str:
    if each.verdict == "both_bad" or each.strength is None:
        return each.verdict
    return "tie" if not each.strength else "second" if (each.strength > 0) != turned else "first"


def constraint_count(prompt: str) -> int:
    """Distinct wordings of an explicit constraint in the prompt: a rough measure of its complexity (RubricBench)."""
    prompt = prompt[:READ].lower()
    return sum(map(prompt.__contains__, CONSTRAINTS))


def _marks(example: Example, verdict: MeanVerdict | None, signs: Signs) -> list[str]:
    """The kinds of criteria in the rubric, and the surface features by which one side of the judged pair stands out."""
    found: set[str] = set()
    for criterion in example.rubric.criteria if example.rubric else ():
        found.add("kind:pitfall" if criterion.points < 0 else f"kind:{criterion.kind}")
        if criterion.verifier:
            found.add("kind:verifiable")
    if verdict and verdict.chosen is not None and verdict.rejected is not None:
        found.update(_slices(verdict.chosen, verdict.rejected, signs))
    return sorted(found) if found else []


def _slices(chosen: str, rejected: str, signs: Signs) -> list[str]:
    """`rejected:...` if the worse answer has the richer surface, `chosen:...` if the better one has."""
    found = []
    if len(rejected) >= LONGER * max(len(chosen), 1):
        found.append("rejected:longer")
    if len(chosen) >= LONGER * max(len(rejected), 1):
        found.append("chosen:longer")
    formatted = markup(rejected) - markup(chosen) if signs.markup else 0
    if abs(formatted) >= 3:
        found.append("rejected:formatted" if formatted > 0 else "chosen:formatted")
    surer = confidence(rejected) - confidence(chosen) if signs.tone else 0
    if abs(surer) >= SURER:
        found.append("rejected:confident" if surer > 0 else "chosen:confident")
    return found


def markup(text: str) -> int:
    """Marks of Markdown: list items, headings, bold, code fences, table rows."""
    return len(MARKUP.findall("\n" + text))


def confidence(text: str) -> int:
    """Boosters minus hedges, by a short English word list. A text that sounds sure may be right or wrong."""
    text = text[:READ].lower()
    return sum(map(text.count, BOOSTERS)) - sum(map(text.count, HEDGES))
