"""The worth of whole rubrics, in an audit of them: their quality by a judge of rubrics, and whether scores by them rank
answers as people did (MaMs, 2026). The baseline rates answers without a rubric."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from statistics import fmean
from typing import Any

from trainer.contracts import Criterion, Example
from trainer.judges.combine import criterion_ratings
from trainer.judges.inputs import JudgeInput
from trainer.metrics.effect import cohens_d
from trainer.metrics.estimate import bootstrap_mean, proportion
from trainer.rubrics.score import likert_score

from ... import report as r
from ..base import Context, FoundCase, tag
from ..pairs import FirstComparison, labelled_pairs

BEST = 4  # the best score that a judge of rubrics gives
BY = {"likert": "Rated by the rubric, item by item", "pointwise": "Rated as a whole, without a rubric"}
Scores = dict[tuple[str, str], float]
"""(example, response) -> its score, 0 to 1; a response without a score is absent."""


def worth(context: Context, examples: Sequence[Example]) -> tuple[list[r.Table], list[FoundCase]]:
    """The tables that the config asks for, and their cases. `examples` have rubrics."""
    tables, cases = [], []
    if context.config.quality:
        rated = list(_qualities(context, examples))
        cases += rated
        tables.append(_quality(rated))
    pairs = list(labelled_pairs(examples, ties=False))
    compared = {by: list(_compared(context, pairs, by)) for by in BY if getattr(context.config, by)}
    if compared:
        tables.append(_ranking(compared))
        cases += [case for found in compared.values() for case in found]
    return tables, cases


def _qualities(context: Context, examples: Sequence[Example]) -> Iterator[FoundCase]:
    """A case for each rubric, with its faults; votes are averaged."""
    inputs = [_input(each, ()) for each in examples]
    said: dict[str, list[Any]] = defaultdict(list)
    for answer in context.judge(context.config.quality, inputs, "rating rubrics"):
        said[answer.subject["example"]].append(answer)
    for each in examples:
        answers = said[each.key]
        parsed = [answer.parsed for answer in answers if answer.parsed is not None]
        score = fmean(one["score"] for one in parsed) if parsed else None
        faults = list(dict.fromkeys(fault for one in parsed for fault in one["problems"]))
        tags = ["rubric", "not rated" if score is None else tag("quality", str(round(score)))]
        values = {"quality": score, "faults": faults, "verdicts": [answer.id for answer in answers if answer.id]}
        yield FoundCase({"example": each.key}, values, tags)


def _quality(rated: Sequence[FoundCase]) -> r.Table:
    known = [case.values["quality"] for case in rated if case.values["quality"] is not None]
    mean = bootstrap_mean(known, len(rated) - len(known), "no rubric was rated")
    rows = [[r.text("Mean"), r.estimate(mean, "rubric", unit="number")]]
    shares = [(str(score), tag("quality", str(score))) for score in range(BEST, -1, -1)]
    for words, tagged in shares:
        share = proportion(sum(tagged in case.tags for case in rated), len(known), len(rated) - len(known))
        rows.append([r.text(words), r.estimate(share, tagged)])
    note = "The grade of the judge of rubrics for a rubric itself, 0 to 4; below the mean, the share of each score."
    return r.table("Quality of the rubrics", ["Quality", "Rubrics"], rows, note)


def _compared(context: Context, pairs: Sequence[FirstComparison], by: str) -> Iterator[FoundCase]:
    """A case for each pair that people decided: the answer with the higher score."""
    scores, ids = _SCORES[by](context, pairs)
    for pair in pairs:
        chosen, rejected = pair.chosen, pair.rejected
        assert chosen is not None and rejected is not None  # noqa: S101  # ties were left out
        better, worse = (scores.get((pair.key, side.id)) for side in (chosen, rejected))
        known = better is not None and worse is not None
        tags = [f"{by}:pair", f"{by}:{_outcome(better, worse)}"]
        lead = better - worse if better is not None and worse is not None else None
        values = {
            "by": BY[by],
            "preferred": chosen.id,
            "score of the preferred": better,
            "score of the other": worse,
            "lead": lead,
            "verdicts": ids[pair.key],
        }
        subject = {"example": pair.key, "a": pair.a.id, "b": pair.b.id}
        yield FoundCase(subject, values, tags if known else [*tags, "not scored"])


def _outcome(better: float | None, worse: float | None) -> str:
    if better is None or worse is None:
        return "not scored"
    return "right" if better > worse else "tie" if better == worse else "wrong"


def _ranking(compared: dict[str, list[FoundCase]]) -> r.Table:
    rows = []
    for by, cases in compared.items():
        known = [case for case in cases if f"{by}:not scored" not in case.tags]
        right, ties = (sum(f"{by}:{outcome}" in case.tags for case in known) for outcome in ("right", "tie"))
        share = proportion(right, len(known), len(cases) - len(known), "no pair that people decided has both scores")
        sides = ([case.values[f"score of the {which}"] for case in cases] for which in ("preferred", "other"))
        cells = [r.text(BY[by]), r.estimate(share, f"{by}:right"), r.count(ties, f"{by}:tie")]
        rows.append([*cells, r.estimate(cohens_d(*sides), f"{by}:pair", unit="points")])
    note = "Over the pairs that people decided. A tie is wrong. Cohen's d: how far apart the scores of the two answers are."
    return r.table("Do scores rank answers as people did?", ["Scores", "Accuracy", "Ties", "Cohen's d"], rows, note)


def _by_rubric(context: Context, pairs: Sequence[FirstComparison]) -> tuple[Scores, dict[str, list[int]]]:
    """`S = sum_k w_k (rating_k - 1) / 9 / sum_k w_k` over the criteria without a verifier; none if a rating is missing or
    the points sum to 0 or less."""
    answers = context.judge(context.config.likert, [_pair_input(pair) for pair in pairs], "rating by the rubric")
    rubrics = {pair.key: _rated_criteria(pair.example) for pair in pairs}
    found: Scores = {}
    for (key, response), ratings in criterion_ratings(answers).items():
        weights = [criterion.points for criterion in rubrics[key]]
        given = [ratings.get(criterion.id) for criterion in rubrics[key]]
        whole = [rating for rating in given if rating is not None]
        if sum(weights) > 0 and len(whole) == len(weights):
            found[key, response] = likert_score(weights, whole)
    return found, _ids(answers)


def _by_whole(context: Context, pairs: Sequence[FirstComparison]) -> tuple[Scores, dict[str, list[int]]]:
    """`(rating - 1) / 9`, the mean over the votes that can be read."""
    answers = context.judge(context.config.pointwise, [_pair_input(pair) for pair in pairs], "rating as a whole")
    ratings: dict[tuple[str, str], list[float]] = defaultdict(list)
    for answer in answers:
        if answer.parsed is not None:
            ratings[answer.subject["example"], answer.subject["response"]].append((answer.parsed["rating"] - 1) / 9)
    return {key: fmean(given) for key, given in ratings.items()}, _ids(answers)


_SCORES: dict[str, Callable[[Context, Sequence[FirstComparison]], tuple[Scores, dict[str, list[int]]]]] = {
    "likert": _by_rubric,
    "pointwise": _by_whole,
}


def _rated_criteria(example: Example) -> tuple[Criterion, ...]:
    return tuple(c for c in example.rubric.criteria if c.verifier is None) if example.rubric else ()


def _pair_input(pair: FirstComparison) -> JudgeInput:
    return _input(pair.example, (pair.a, pair.b))


def _input(example: Example, responses: Sequence[Any]) -> JudgeInput:
    return JudgeInput(
        example.key,
        example.prompt,
        {response.id: response.text for response in responses},
        example.rubric.criteria if example.rubric else (),
        example.reference or "",
    )


def _ids(answers: Sequence[Any]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = defaultdict(list)
    for answer in answers:
        found[answer.subject["example"]] += [answer.id] if answer.id else []
    return found
