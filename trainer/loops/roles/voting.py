"""Voting@k on held-out pairs (Rubric-ARM): k rubrics of the writer, a judgement by each, and the majority of the judgements."""

from collections.abc import Sequence

from trainer.metrics.estimate import bootstrap_ratio

from ..prompts.data import Prompt
from ..session.stage import Tell
from .rubric_trials import Trials

ORDERS = (False, True)


def voted(trials: Trials, prompts: Sequence[Prompt], k: int, tell: Tell) -> dict[str, float]:
    """`eval/voting` with its interval over pairs, and `eval/votes` and `eval/votes_missing`. May raise StopRequested.

    The same rubrics decide both orders. A rubric that cannot be read, a question that is too long and a judgement without a
    decision are not votes.
    """
    rubrics = trials.rubrics(prompts, k, tell.watch("writing rubrics to vote by", "evaluation"))
    asked = [one for own in rubrics for rubric in own for swapped in ORDERS if (one := trials.asked(rubric, swapped))]
    said = trials.judgements(asked, 1, tell.watch("voting on held-out pairs", "evaluation"))
    votes: dict[tuple[str, bool], list[bool]] = {}
    for one, (result,) in zip(asked, said, strict=True):
        right = trials.right(one, result)
        if right is not None:
            votes.setdefault((one.rubric.prompt.example.key, one.swapped), []).append(right)
    pairs = [[votes.get((prompt.example.key, swapped), []) for swapped in ORDERS] for prompt in prompts]
    examples = [str(prompt.facts["pair"]["example"]) for prompt in prompts]
    return summary(pairs, examples, k)


def majority(votes: Sequence[bool]) -> float:
    """1 if more than half of the votes are right; half of the votes, or no votes, decide nothing and count as 0."""
    return float(2 * sum(votes) > len(votes))


def summary(pairs: Sequence[Sequence[Sequence[bool]]], examples: Sequence[str], k: int) -> dict[str, float]:
    """Measures over pairs; each pair has the votes in each order. A pair counts once, with the mean of its orders; pairs of one of
    the `examples` are resampled together.
    """
    right = [sum(map(majority, orders)) / len(orders) for orders in pairs]
    cast = sum(len(votes) for orders in pairs for votes in orders)
    wanted = k * sum(len(orders) for orders in pairs)
    found = bootstrap_ratio(right, [1.0] * len(right), clusters=list(examples), share=True)
    values = {"eval/votes": float(cast), "eval/votes_missing": float(wanted - cast)}
    ends = {"eval/voting": found.value, "eval/voting_low": found.low, "eval/voting_high": found.high}
    return values | {key: value for key, value in ends.items() if value is not None}
