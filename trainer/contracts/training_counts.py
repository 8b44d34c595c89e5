"""Counts the items of an example from which a recipe can learn. The counts show before a launch whether a dataset has what a recipe
needs."""

from collections import Counter

from .example import Example
from .hints import pass_rate_of, reasoning_of
from .pairs import LabelledPair, human_reasons, labelled_pairs

COUNTS = {
    "examples": "examples",
    "rubrics": "prompts with a rubric",
    "criteria": "criteria",
    "verified": "prompts whose every criterion has a verifier",
    "unjudged": "prompts with a criterion that has no verifier",
    "unjudged_criteria": "criteria without a verifier",
    "verifiable": "prompts with a criterion that earns points and has a verifier",
    "judgeable": "prompts with a criterion that earns points and has no verifier",
    "responses": "prompts with a stored answer",
    "turns": "conversations with an answer",
    "references": "prompts with a reference answer",
    "reasonings": "prompts with reference reasoning",
    "rated": "prompts with a pass rate",
    "rated_solved": "prompts that a probe always solved",
    "rated_unsolved": "prompts that a probe never solved",
    "chosen": "prompts with an answer that was preferred and never rejected",
    "valued": "prompts with several answers whose reward is known",
    "preferences": "prompts with compared answers",
    "pairs": "pairs with a preferred answer",
    "reasoned_pairs": "pairs with human reasons",
    "equal": "pairs of equal answers",
    "ties": "ties",
    "undecided": "pairs without a decision",
}
"""The key of each count, with what it counts, in the plural."""


def training_counts(example: Example) -> Counter[str]:
    """The counts of one example by the keys of COUNTS. Counts of 0 are left out."""
    answered = example.prompt[-1].role == "assistant"
    found = Counter(examples=1)
    found["responses"] = bool(example.responses)
    found["turns"] = answered or len(example.responses) == 1
    found["references"] = bool(example.reference) and not answered
    found["reasonings"] = bool(reasoning_of(example)) and not answered
    found.update(_rated(pass_rate_of(example)))
    found["preferences"] = bool(example.preferences)
    found["valued"] = _valued(example)
    if example.rubric:
        criteria = example.rubric.criteria
        unjudged = sum(criterion.verifier is None for criterion in criteria)
        found.update(rubrics=1, criteria=len(criteria), unjudged_criteria=unjudged)
        found["unjudged" if unjudged else "verified"] += 1
        earning = [criterion.verifier is not None for criterion in criteria if criterion.points > 0]
        found.update(verifiable=any(earning), judgeable=not all(earning))
    found.update(_pairs(example))
    return +found


def _rated(rate: float | None) -> dict[str, int]:
    return {} if rate is None else {"rated": 1, "rated_solved": rate == 1, "rated_unsolved": rate == 0}


def _valued(example: Example) -> bool:
    """Whether two answers or more have a reward: it is stored with them, or verifiers alone can compute it."""
    stored = example.meta.get("rewards")
    if isinstance(stored, dict):
        known = {response.id for response in example.responses}
        return sum(name in known and _is_number(value) for name, value in stored.items()) > 1
    criteria = example.rubric.criteria if example.rubric else ()
    return bool(criteria) and len(example.responses) > 1 and all(criterion.verifier for criterion in criteria)


def _pairs(example: Example) -> Counter[str]:
    """Counts pairs of answers by the raters' judgements, and whether an answer was preferred and never rejected."""
    texts = {response.id: response.text for response in example.responses}
    found: Counter[str] = Counter()
    won, lost = set(), set()
    for pair in labelled_pairs(example):
        if not pair.votes:
            found["undecided"] += 1
        elif not pair.decided:
            found["ties"] += 1
        else:
            found.update(_usable(example, pair) if texts[pair.first] != texts[pair.second] else ["equal"])
            better, worse = pair.first, pair.second
            if len(pair.for_second) > len(pair.for_first):
                better, worse = worse, better
            won.add(better)
            lost.add(worse)
    found["chosen"] = bool(won - lost)
    return found


def _usable(example: Example, pair: LabelledPair) -> list[str]:
    reasons, _ = human_reasons(example, pair)
    return ["pairs", "reasoned_pairs"] if reasons else ["pairs"]


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
