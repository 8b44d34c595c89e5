"""Metrics of judgements, from what their parts have kept to show. Torch-free.

An estimate over held-out pairs counts each pair once, with the mean of its two orders, because the two are not independent. Pairs of
one example are not independent either, so they are resampled together.
"""

import re
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from trainer.judges.kinds.rationales import FLAWS, RESTS_ON
from trainer.metrics.estimate import Estimate, bootstrap_ratio

from .base import AnsweredQuestion
from .estimates import estimate_metrics, mean

_WORD = re.compile(r"[^\W\d_]{4,}")
# words that reasons and questions use for any pair
_EMPTY = frozenset(
    [
        "answer",
        "answers",
        "response",
        "responses",
        "better",
        "best",
        "worse",
        "than",
        "more",
        "less",
        "first",
        "second",
        "other",
        "both",
        "much",
        "clear",
        "clearly",
        "with",
        "that",
        "this",
        "they",
        "what",
        "which",
        "while",
        "does",
        "from",
        "have",
        "very",
        "good",
        "question",
        "prompt",
        "user",
        "assistant",
        "verdict",
        "reason",
        "reasons",
    ]
)


def of_step(answers: Sequence[AnsweredQuestion]) -> dict[str, float]:
    """Means over the step's judgements; undefined values are left out."""
    found = {"judging/accuracy": mean(each.parts["outcome"].value for each in answers if _known(each, "outcome"))}
    reasoned = [each for each in answers if _known(each, "rationale")]
    found["judging/rc"] = mean(each.shown("rationale").get("rc") for each in reasoned)
    found["judging/ap"] = mean(each.parts["rationale"].value for each in reasoned)
    found |= {f"judging/{key}": value for key, value in _habits(answers).items()}
    return {key: value for key, value in found.items() if value is not None}


def of_evaluation(answers: Sequence[AnsweredQuestion]) -> dict[str, float]:
    """Measures over held-out pairs; see `trainer.config.metrics.judge`."""
    pairs: dict[str, list[AnsweredQuestion]] = defaultdict(list)
    for each in answers:
        pairs[each.facts["pair"]].append(each)
    found: dict[str, float] = {}
    for key, count, value in (
        ("accuracy", "pairs", lambda each: each.parts["outcome"].value if _known(each, "outcome") else None),
        ("rc", "reasoned_pairs", lambda each: each.shown("rationale").get("rc")),
        ("ap", "reasoned_pairs", lambda each: each.parts["rationale"].value if _known(each, "rationale") else None),
    ):
        found |= estimate_metrics(key, count, _over_pairs(pairs.values(), value))
    agreed = [agree for both in pairs.values() if (agree := _agree(both)) is not None]
    found["eval/ordered_pairs"] = float(len(agreed))
    if agreed:
        found["eval/consistent"] = statistics.fmean(agreed)
    return found | {f"eval/{key}": value for key, value in _habits(answers).items() if value is not None}


def is_generic(reason: str, asked: str) -> bool:
    """Whether a reason names nothing of the case: none of its words of four letters or more is in the question, apart from
    words about answers in general. A reason without any such word is generic.
    """
    words = set(_WORD.findall(reason.lower())) - _EMPTY
    return not words & set(_WORD.findall(asked.lower()))


def _habits(answers: Sequence[AnsweredQuestion]) -> dict[str, float | None]:
    """Metrics of the form of judgements, of right and wrong ones alike."""
    measured = [each for each in answers if _known(each, "outcome")]
    readable = [each for each in measured if _verdict(each) is not None]
    lists = [_reasons(each) for each in readable]
    sides = [_verdict(each) for each in readable if _verdict(each)]
    reasons = [(reason, each) for each in readable for reason in _reasons(each)]
    hits = [hit for each in answers for hit in each.shown("rationale").get("hits", ())]
    return _flaws(answers) | {
        "unreadable": mean(_verdict(each) is None for each in measured),
        "no_reasons": mean(not each for each in lists),
        "tie": mean(_verdict(each) == 0 for each in readable),
        "first": mean(side < 0 for side in sides if side is not None),
        "reasons": mean(len(each) for each in lists),
        "generic": mean(is_generic(reason, _material(each)) for reason, each in reasons),
        "unmatched": mean(not hit for hit in hits),
        "not_matched": mean(each.parts["rationale"].value is None for each in answers if _to_match(each)),
    }


def _to_match(answer: AnsweredQuestion) -> bool:
    """Whether there are reasons on both sides, so that a matcher has something to match."""
    shown = answer.shown("rationale")
    return bool(shown.get("human")) and bool(shown.get("reasons"))


def _material(answer: AnsweredQuestion) -> str:
    """All texts that are judged, as one text."""
    return "\n".join([*(message["content"] for message in answer.facts["prompt"]), *answer.facts["answers"]])


def _flaws(answers: Sequence[AnsweredQuestion]) -> dict[str, float | None]:
    """Shares of the reasons that a judge has tagged, and of those that it should have tagged and has not."""
    asked = [each.shown("flaws") for each in answers if each.shown("flaws").get("reasons")]
    tags = [tag for shown in asked for tag in shown.get("tags") or [None] * len(shown["reasons"])]
    known = [tag for tag in tags if tag is not None]
    found = {f"flaws/{flaw}": mean(flaw in tag["flaws"] for tag in known) for flaw in FLAWS}
    found |= {f"rests_on/{name}": mean(tag["rests_on"] == name for tag in known) for name in RESTS_ON}
    return found | {
        "flawed": mean(bool(tag["flaws"]) for tag in known),
        "untagged": mean(tag is None for tag in tags),
    }


def _over_pairs(
    pairs: Iterable[Sequence[AnsweredQuestion]], value: Callable[[AnsweredQuestion], float | None]
) -> Estimate:
    """The mean over pairs of the mean of their orders; pairs without any value are missing."""
    values, examples, missing = [], [], 0
    for both in pairs:
        known = [found for each in both if (found := value(each)) is not None]
        if known:
            values.append(statistics.fmean(known))
            examples.append(both[0].facts["example"])
        missing += not known
    return bootstrap_ratio(values, [1.0] * len(values), clusters=examples, missing=missing, share=True)


def _agree(both: Sequence[AnsweredQuestion]) -> float | None:
    """The share of pairs of verdicts, one in each order, that name the same answer or are both a tie; None if no verdict of one order
    can be read.
    """
    signs = {
        order: [
            _sign(verdict) for each in both if each.facts["order"] == order and (verdict := _verdict(each)) is not None
        ]
        for order in ("given", "swapped")
    }
    return mean(given == -swapped for given in signs["given"] for swapped in signs["swapped"])


def _sign(strength: int) -> int:
    return (strength > 0) - (strength < 0)


def _known(answer: AnsweredQuestion, part: str) -> bool:
    return part in answer.parts and answer.parts[part].value is not None


def _verdict(answer: AnsweredQuestion) -> Any:
    return answer.shown("outcome").get("verdict")


def _reasons(answer: AnsweredQuestion) -> Sequence[str]:
    found: Sequence[str] = answer.shown("outcome").get("reasons", ())
    return found
