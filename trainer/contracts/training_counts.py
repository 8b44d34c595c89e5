"""What of an example a recipe can learn from, as numbers: its needs are counted in these before anything is launched."""

from collections import Counter

from .example import Example

COUNTS = {
    "examples": "examples",
    "rubrics": "prompts with a rubric",
    "criteria": "criteria",
    "verified": "prompts whose every criterion has a verifier",
    "unjudged": "prompts with a criterion that has no verifier",
    "unjudged_criteria": "criteria without a verifier",
    "responses": "prompts with a stored answer",
    "references": "prompts with a reference answer",
    "turns": "conversations with an answer in them",
    "preferences": "prompts with compared answers",
    "pairs": "pairs with a preferred answer",
    "ties": "ties",
    "undecided": "pairs that nobody could decide",
}
"""Key of a count -> what it counts, in the plural."""


def training_counts(example: Example) -> Counter[str]:
    """The counts of one example; keys of COUNTS, those that are 0 left out."""
    found = Counter(examples=1)
    found["responses"] = bool(example.responses)
    found["references"] = bool(example.reference)
    found["turns"] = any(message.role == "assistant" for message in example.prompt)
    found["preferences"] = bool(example.preferences)
    if example.rubric:
        criteria = example.rubric.criteria
        unjudged = sum(criterion.verifier is None for criterion in criteria)
        found.update(rubrics=1, criteria=len(criteria), unjudged_criteria=unjudged)
        found["unjudged" if unjudged else "verified"] += 1
    found.update(_pairs(example))
    return +found


def _pairs(example: Example) -> Counter[str]:
    """Pairs of answers by what their raters say: more for the one side, as many for both, or no vote at all."""
    votes: dict[tuple[str, str], list[int]] = {}
    for each in example.preferences:
        first, second = sorted((each.a, each.b))
        mine = votes.setdefault((first, second), [])
        if each.verdict == "compared" and each.strength is not None:
            side = (each.strength > 0) - (each.strength < 0)
            mine.append(side if each.a == first else -side)
    return Counter("undecided" if not mine else "pairs" if sum(mine) else "ties" for mine in votes.values())
