"""Formulas of rewards from judgement: rubric writers, reasons, pairs, scores. Parameters are the inputs by name."""

from typing import Annotated, Any

import numpy as np
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from trainer.config.rewards.expression import ExpressionInvalid, parse
from trainer.metrics import effect
from trainer.rewards import mams, pairwise, rationale
from trainer.rubrics import score
from trainer.scheduling import padded

from .base import Flag, InputInvalid, NotNegative, Share, Undefined, same_length, same_width

Rating = Annotated[float, Field(ge=1, le=10)]
Matrix = list[list[Share]]
GroupSize = Annotated[int, Field(ge=1, le=100_000)]
_NO_HUMAN_REASONS = "there are no human reasons"


def mams_reward(
    score_chosen: float | None,
    score_rejected: float | None,
    quality: Annotated[float, Field(ge=0, le=4)] | None,
    format_ok: Flag,
    l_pref: NotNegative,
    l_llm: NotNegative,
) -> float:
    """Reward of a written rubric: l_pref R_pref + l_llm R_llm + R_fmt (MaMs); an unreadable one has no scores."""
    value = mams.mams_reward(score_chosen, score_rejected, quality, format_ok, l_pref, l_llm)
    if value is None:
        given = {"score_chosen": score_chosen, "score_rejected": score_rejected, "quality": quality}
        missing = [name for name, number in given.items() if number is None]
        raise Undefined(f"{' and '.join(missing)} missing, so the rubric is excluded")
    return value


def rationale_ap(matrix: Matrix, correct: Flag = False, threshold: Share = rationale.HIT_THRESHOLD) -> float:
    """Average precision of a judge's reasons; a row of `matrix` is a human reason. `correct` is not read."""
    value = rationale.average_precision(_scores(matrix), len(matrix), threshold)
    if value is None:
        raise Undefined(_NO_HUMAN_REASONS)
    return value


def rationale_hybrid(matrix: Matrix, correct: Flag, threshold: Share = rationale.HIT_THRESHOLD) -> float:
    """Average precision of a judge's reasons if its verdict is right, else 0 (AP x outcome)."""
    value = rationale.hybrid(_scores(matrix), len(matrix), 1, 1 if correct else -1, threshold)
    if value is None:
        raise Undefined(_NO_HUMAN_REASONS)
    return value


def remax_pairwise(sample_first: pairwise.Place | None, sample_second: pairwise.Place | None) -> float:
    """Share of the two orders in which a sample wins against the greedy answer; the inputs are the places that won."""
    value = pairwise.remax_pairwise(sample_first, sample_second)
    if value is None:
        raise Undefined(_no_verdict(sample_first=sample_first, sample_second=sample_second))
    return value


def swap_consistent(given: pairwise.Side | None, swapped: pairwise.Side | None) -> str:
    """The verdict on which both orders agree; `swapped` is the verdict before un-swapping."""
    value = pairwise.swap_consistent(given, swapped)
    if value is not None:
        return value
    if given is None or swapped is None:
        raise Undefined(_no_verdict(given=given, swapped=swapped))
    raise Undefined("the two orders disagree")


def cohens_d(chosen: list[float | None], rejected: list[float | None]) -> float:
    """Paired Cohen's d of scores, mean(D) / std(D, ddof=1) with D = chosen - rejected; null scores are left out."""
    same_length(chosen=chosen, rejected=rejected)
    found = effect.cohens_d(chosen, rejected)
    if found.value is None:
        raise Undefined(found.undefined)
    return found.value


def likert_score(ratings: list[Rating | None], weights: list[float]) -> float:
    """Weighted mean of ratings 1 to 10, scaled to 0 to 1: sum w (rating - 1) / 9 / sum w."""
    same_length(ratings=ratings, weights=weights)
    if sum(weights) <= 0:
        raise InputInvalid("weights", f"sum to {sum(weights):g}; a score needs a sum above 0")
    known = [rating for rating in ratings if rating is not None]
    if len(known) < len(ratings):
        raise Undefined(f"ratings[{ratings.index(None)}] is missing")
    return score.likert_score(weights, known)


class MeasuredPart(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True, allow_inf_nan=False)
    value: float | None
    why: str = ""


def _measured(given: Any) -> Any:
    if given is None or isinstance(given, int | float):
        return {"value": given}
    if not isinstance(given, dict):
        raise ValueError('expected a number, null, or {"value": ..., "why": ...}')
    return given


def reward_expression(expression: str, parts: dict[str, Annotated[MeasuredPart, BeforeValidator(_measured)]]) -> float:
    """A reward computed from the values of its parts by an expression such as outcome * rc + 0.1 * format."""
    try:
        parsed = parse(expression, list(parts))
    except ExpressionInvalid as error:
        raise InputInvalid("expression", str(error)) from error
    found = parsed.evaluate(
        {name: part.value for name, part in parts.items()}, {name: part.why for name, part in parts.items()}
    )
    if found.value is None:
        raise Undefined(found.why)
    return found.value


def _flag_or_place(value: Any) -> Any:
    if type(value) not in (bool, int) or value < 0:
        raise ValueError("expected true or false, or the place of a valid response")
    return value


def pad_group(valid: list[Annotated[Any, BeforeValidator(_flag_or_place)]], size: GroupSize | None = None) -> list[int]:
    """Places a group trains on: its valid ones, repeated up to its size if more than half are valid (GLM-5).

    `valid` has a true or false (1 or 0) for each response; or, with `size`, the places of the valid ones.
    """
    places, size = _places(valid, size)
    rows = padded(places, size)
    if not rows:
        raise Undefined(f"{len(places)} of {size} responses are valid, not more than half: the group is dropped")
    return list(rows)


def _places(valid: list[Any], size: int | None) -> tuple[list[int], int]:
    if size is None or (valid and all(isinstance(each, bool) for each in valid)):
        if not valid:
            raise InputInvalid("valid", "is empty; expected an entry for each response, or places and the field size")
        if size not in (None, len(valid)):
            raise InputInvalid("valid", f"has {len(valid)} entries for a group of {size}")
        for i, each in enumerate(valid):
            if each not in (0, 1):
                raise InputInvalid(f"valid[{i}]", f"is the place {each}, and places need the field size")
        return [place for place, each in enumerate(valid) if each], len(valid)
    for i, place in enumerate(valid):
        if isinstance(place, bool) or place >= size or place in valid[:i]:
            raise InputInvalid(
                f"valid[{i}]", f"expected a place from 0 to {size - 1} that was not named before, found {place!r}"
            )
    return valid, size


def _scores(matrix: Matrix) -> Any:
    same_width("matrix", matrix)
    return np.array(matrix, dtype=np.float64).reshape(len(matrix), len(matrix[0]) if matrix else 0)


def _no_verdict(**orders: str | None) -> str:
    return f"no verdict in order {' and '.join(name for name, said in orders.items() if said is None)}"
