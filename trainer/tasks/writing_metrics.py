"""Metrics of written rubrics, from what their parts have kept to show. Torch-free.

A held-out pair is one case: its samples are averaged first, because they are not independent. Pairs of one
example are not independent either, because their rubrics answer one question: they are resampled together, and people's rubric is compared
only with the first of them.
"""

import statistics
from collections import defaultdict
from collections.abc import Iterable, Sequence

from trainer.metrics.effect import cohens_d
from trainer.metrics.estimate import Estimate, bootstrap_ratio, proportion
from trainer.metrics.rubricbench import Alignment, alignment, alignments
from trainer.rewards.written_rubrics import FACTS

from .base import AnsweredQuestion
from .estimates import estimate_metrics, mean

Scores = tuple[float | None, float | None]
"""The scores of the preferred answer and of the other."""


def of_step(answers: Sequence[AnsweredQuestion]) -> dict[str, float]:
    """Means over the step's rubrics; undefined values are left out."""
    found = {f"writing/{key}": value for key, value in _habits(answers).items()}
    found["writing/preference_accuracy"] = mean(_ranked(each) for each in answers)
    return {key: value for key, value in found.items() if value is not None}


def of_evaluation(answers: Sequence[AnsweredQuestion]) -> dict[str, float]:
    """Measures over held-out pairs; see `trainer.config.metrics.writer`."""
    pairs: dict[str, list[AnsweredQuestion]] = defaultdict(list)
    for each in answers:
        pairs[each.key].append(each)
    found = estimate_metrics("preference_accuracy", "pairs", _accuracy(list(pairs.values())))
    scores = [_scores(each) for each in pairs.values()]
    examples = [_example(group) for group in pairs.values()]
    d = cohens_d([chosen for chosen, _ in scores], [rejected for _, rejected in scores], examples)
    found |= estimate_metrics("cohens_d", "", d) | {"eval/scored_pairs": float(d.n)}
    aligned = _aligned(pairs.values())
    found["eval/human_rubrics"] = float(sum(each is not None for each in aligned))
    for name, share in alignments(aligned).items():
        if name != "precision" and aligned:
            found |= estimate_metrics(f"rubric_{name}", "", share)
    return found | {f"eval/{key}": value for key, value in _habits(answers).items() if value is not None}


def _accuracy(pairs: Sequence[Sequence[AnsweredQuestion]]) -> Estimate:
    """A share with Wilson's interval if each pair has one rubric and is the only pair of its example, else the mean over pairs of their
    shares.
    """
    known = [(_example(group), [right for each in group if (right := _ranked(each)) is not None]) for group in pairs]
    examples = [example for example, group in known if group]
    shares = [statistics.fmean(group) for _, group in known if group]
    missing = len(pairs) - len(shares)
    if len(set(examples)) == len(examples) and all(share in (0.0, 1.0) for share in shares):
        return proportion(round(sum(shares)), len(shares), missing)
    return bootstrap_ratio(shares, [1.0] * len(shares), clusters=examples, missing=missing, share=True)


def _example(group: Sequence[AnsweredQuestion]) -> str:
    """The key of the example that the pair belongs to."""
    return str(group[0].facts[FACTS]["example"])


def _ranked(answer: AnsweredQuestion) -> bool | None:
    """Whether the rubric favours the preferred answer; None if this could not be decided."""
    for name in ("preference", "choice"):
        part = answer.parts.get(name)
        if part is not None:
            return None if part.value is None else part.value > 0
    return None


def _scores(group: Sequence[AnsweredQuestion]) -> Scores:
    """The mean scores of a pair's two answers over its rubrics that scored both."""
    both = [found for each in group if (found := _both_scores(each))]
    if not both:
        return None, None
    return statistics.fmean(chosen for chosen, _ in both), statistics.fmean(rejected for _, rejected in both)


def _both_scores(answer: AnsweredQuestion) -> tuple[float, float] | None:
    chosen, rejected = answer.shown("preference").get("scores", (None, None))
    return None if chosen is None or rejected is None else (float(chosen), float(rejected))


def _aligned(pairs: Iterable[Sequence[AnsweredQuestion]]) -> list[Alignment | None]:
    """For each example with a human rubric, the alignment of the first rubric that was written for it; None if it could not be matched."""
    found: list[Alignment | None] = []
    for group in {_example(group): group for group in reversed(list(pairs))}.values():
        shown = group[0].shown("recall")
        if shown.get("human"):
            matches = shown["matches"]
            sizes = len(shown["written"]), len(shown["human"])
            found.append(None if matches is None else alignment([(int(k), int(j)) for k, j in matches], *sizes))
    return found


def _habits(answers: Sequence[AnsweredQuestion]) -> dict[str, float | None]:
    """Metrics of the form of rubrics, of right and wrong ones alike."""
    written = [shown for each in answers if (shown := each.shown("format"))]
    readable = [shown for shown in written if shown["readable"]]
    leads = [both[0] - both[1] for each in answers if (both := _both_scores(each))]
    return {
        "format_rate": mean(not shown["problems"] for shown in written),
        "unreadable": 1 - len(readable) / len(written) if written else None,
        "criteria": mean(shown["criteria"] for shown in readable),
        "quality": mean(_value(each, "quality") for each in answers),
        "margin": mean(leads),
    }


def _value(answer: AnsweredQuestion, name: str) -> float | None:
    part = answer.parts.get(name)
    return None if part is None else part.value
