"""Metrics that only the recipe `judge` has; `trainer.tasks.judging_metrics` computes them."""

from collections.abc import Mapping
from typing import Literal

from ..recipe import Metric, Trace, with_ends
from .common import share_of_pairs

_PAIRS = "Each held-out pair is judged in both orders; the pair counts once, with the mean of the two."
OUTCOME = (
    *share_of_pairs(
        "eval/accuracy",
        "Held-out accuracy",
        "Share of verdicts that agree with the human label; the band is its 95% interval over pairs. "
        f"{_PAIRS} A verdict that cannot be read is not right. A coin would reach 0.5.",
    ),
    *with_ends(
        Metric(
            "eval/rc",
            "Held-out rationale consistency",
            "How far the first five reasons are those of people: the weight of the best one-to-one matching, divided by "
            f"the number of human reasons, as a mean over pairs that have any. {_PAIRS} If accuracy rises while this falls, "
            "the judge is right for the wrong reasons.",
            "outcome",
            better="higher",
            count="eval/reasoned_pairs",
            optional=True,
        ),
        "95%.",
    ),
    *with_ends(
        Metric(
            "eval/ap",
            "Held-out average precision of reasons",
            "The reward of the rationale arm: matched reasons, earlier ones more, divided by the number of human reasons.",
            "outcome",
            better="higher",
            count="eval/reasoned_pairs",
            optional=True,
        ),
        "95%.",
    ),
    Metric(
        "eval/consistent",
        "Orders that agree",
        "Share of held-out pairs whose verdicts in the two orders name the same answer, or are both a tie. If there are several judgements per order, "
        "each of the one order is compared with each of the other. A pair without a readable verdict in one of the orders is left out here and counted.",
        "judge",
        better="higher",
        share=True,
        count="eval/ordered_pairs",
        optional=True,
    ),
    Metric("eval/pairs", "judged", "Held-out pairs behind each number.", "data", chart="Held-out pairs", optional=True),
    Metric("eval/reasoned_pairs", "with human reasons", "", "data", chart="Held-out pairs", optional=True),
    Metric("eval/ordered_pairs", "readable in both orders", "", "data", chart="Held-out pairs", optional=True),
    Metric(
        "eval/reward", "Held-out reward", "Values that training pushes, on held-out pairs.", "outcome", optional=True
    ),
)


def _both(key: str, title: str, help: str, better: str = "", share: bool = True, unit: str = "") -> tuple[Metric, ...]:
    """One picture with a curve of the training step and a curve of the held-out pairs. Each has values only if it is defined."""
    names = (("judging", "training", help), ("eval", "held-out", ""))
    return tuple(
        Metric(f"{where}/{key}", name, words, "judge", title, unit, better, share=share, optional=True)  # type: ignore[arg-type]
        for where, name, words in names
    )


STEP = (
    Metric(
        "judging/accuracy",
        "Training accuracy",
        "Share of the step's verdicts that agree with the human label.",
        "judge",
        better="higher",
        share=True,
    ),
    Metric(
        "judging/rc",
        "training",
        "Over the step's judgements of pairs with human reasons, from the first five reasons of each.",
        "judge",
        "Consistency of reasons",
        better="higher",
        optional=True,
    ),
    Metric("judging/ap", "average precision", "", "judge", "Consistency of reasons", better="higher", optional=True),
    *_both(
        "unreadable",
        "Unreadable judgements",
        "Judgements without a verdict that can be read. They are wrong, never left out.",
        "lower",
    ),
    *_both("no_reasons", "Judgements without reasons", "Judgements that can be read and give no reason.", "lower"),
    *_both(
        "tie",
        "Ties",
        "Share of the readable verdicts that call it a tie. Pairs that people found equal are not among the data, so a tie is never right.",
    ),
    *_both(
        "first",
        "Order bias",
        "Share of the decided verdicts that choose the answer shown first. In training the order is drawn at random; 0.5 means no bias.",
    ),
    *_both("reasons", "Reasons given", "Mean number of reasons in a readable judgement.", share=False, unit="reasons"),
    *_both(
        "generic",
        "Generic reasons",
        "Share of reasons that name nothing of the case: none of their words of four letters or more occurs in the question or in either answer. This overlooks a reason that repeats a word and still says nothing.",
        "lower",
    ),
    *_both(
        "unmatched",
        "Reasons that no person gave",
        "Share of reasons that the matcher joins to no human reason, over pairs that have human reasons.",
        "lower",
    ),
    *_both(
        "not_matched",
        "Judgements that nobody could match",
        "Judgements with reasons, about pairs with human reasons, for which the judge that matches could not be asked or gave an answer that cannot be "
        "read. They do not count in the consistency; if reasons are rewarded, they are left out of training.",
        "lower",
    ),
)
FLAWS = {
    "F1": "style only",
    "F2": "generic correctness",
    "F3": "generic relevance",
    "F4": "one-sided praise",
    "F5": "unfalsifiable",
    "F6": "non sequitur",
    "F7": "contradiction",
}
RESTS_ON = {"evidence": "in an answer", "criterion": "a demand", "generic": "neither"}
_TAGGED = "As shares of the reasons that the judge in `reward.flaws_judge` tagged. "
_FLAWS = (
    _TAGGED
    + "A reason may have several flaws. Only somebody who understands the reason can see a flaw; no program decides one."
)
_RESTS = (
    _TAGGED
    + "The object of a reason: something in an answer that can be checked, a demand and whether it is met, or neither."
)


def _tags(
    path: str, chart: str, help: str, names: Mapping[str, str], better: Mapping[str, Literal["higher", "lower"]]
) -> tuple[Metric, ...]:
    """A picture of training and a picture of the held-out pairs, with a curve for each tag."""
    return tuple(
        Metric(
            f"{where}/{path}/{tag}",
            words,
            help if not place else "",
            "judge",
            f"{chart}, {name}",
            "",
            better.get(tag, ""),
            share=True,
            optional=True,
        )
        for where, name in (("judging", "training"), ("eval", "held-out"))
        for place, (tag, words) in enumerate(names.items())
    )


TAGS = (
    *_both("flawed", "Reasons with a flaw", _TAGGED + "Reasons with at least one of the flaws F1 to F7.", "lower"),
    *_both(
        "untagged",
        "Reasons without tags",
        "Reasons that the judge of flaws should tag and did not: it could not be asked, or its answer could not be read.",
        "lower",
    ),
    *_tags(
        "flaws",
        "Flaws of reasons",
        _FLAWS,
        {tag: f"{tag} {words}" for tag, words in FLAWS.items()},
        dict.fromkeys(FLAWS, "lower"),
    ),
    *_tags("rests_on", "Kinds of reasons", _RESTS, RESTS_ON, {"evidence": "higher", "generic": "lower"}),
)
TRACES = (
    Trace(
        "Right, and for the right reasons",
        "A point for each evaluation, joined in their order. Further right, the judge is right more often; further up, its reasons are more often those "
        "of people. A line that runs right and down shows a judge that learns to be right for the wrong reasons.",
        "outcome",
        x="eval/accuracy",
        y="eval/rc",
    ),
)
METRICS = (*OUTCOME, *STEP, *TAGS)
