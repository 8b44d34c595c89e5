"""Rubric-ARM (2026): the rewards of its judge and its rubric writer, and the variances behind its order of training.

Axes: R rubrics, D components of a score vector (the gradient of a log-probability).
"""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from trainer.judges.kinds.pairwise import STRENGTHS

Floats = NDArray[np.float64]


def judge_reward(verdict: str | None, label: str, format_ok: bool) -> float | None:
    """`1[o = o*] + 1[format]` of a judgement: the reward for accuracy and for the form. None if the label is a tie.

    A choice is forced: a verdict that is a tie, or that cannot be read (None), is a failure of the judge and not right. `verdict` and
    `label` are words of `STRENGTHS`; "A much better" chooses A, as "A" does.
    """
    right = chose_right(verdict, label)
    return None if right is None else float(right) + float(format_ok)


def writer_reward(verdict: str | None, label: str) -> float | None:
    """`1[o = o*]`, eq. (8), of the rubric by which a frozen, greedy judge decided. None if the label is a tie.

    It is also None if the judge gave no verdict that can be read: that is not the writer's failure, so the sample is left out and does
    not count as wrong.
    """
    if verdict is None:
        return None
    right = chose_right(verdict, label)
    return None if right is None else float(right)


def chose_right(verdict: str | None, label: str) -> bool | None:
    """Whether a forced choice agrees with the label; None if the label is a tie, because then no choice is right."""
    wanted = np.sign(STRENGTHS[label])
    return bool(verdict is not None and np.sign(STRENGTHS[verdict]) == wanted) if wanted else None


@dataclass(frozen=True)
class ArmVariances:
    """`var_judge`: mean of (17) over rubrics. `var_writer` = `noise` + `inconsistency`: (18). `c1`: of (19), None for 0/0."""

    var_judge: float
    var_writer: float
    noise: float
    inconsistency: float
    c1: float | None


def arm_variances(p_R: ArrayLike, u_writer_RD: ArrayLike, u_judge_RD: ArrayLike) -> ArmVariances:
    """Gradient variances of a judge step and of a writer step, with p = P(judge right | rubric).

    Judge step, its rubric cached: `p (1-p) |u_j|^2` (17). Writer step: `E[p (1-p) |u_r|^2] + Var_r(p u_r)` (18), reward
    noise and disagreement between rubrics. `C1 = Var_r(p u_r) / E[p^2 |u_r|^2]` (19). The moments are those of
    the given rubrics (population); the variance of a vector is the sum over its components. The two D may differ. Raises ValueError
    with the name of the argument if there is no rubric, or not one row for each.
    """
    p, u_writer, u_judge = (np.asarray(each, dtype=np.float64) for each in (p_R, u_writer_RD, u_judge_RD))
    if not len(p):
        raise ValueError("p: give at least one rubric")
    for name, rows in (("u_r", u_writer), ("u_j", u_judge)):
        if rows.ndim != 2 or len(rows) != len(p):
            raise ValueError(f"{name}: {rows.shape} is not one row for each of {len(p)} rubrics")
    pushed = p[:, None] * u_writer
    noise = float((p * (1 - p) * _square(u_writer)).mean())
    inconsistency = float(_square(pushed - pushed.mean(0)).mean())
    second = float(_square(pushed).mean())
    return ArmVariances(
        var_judge=float((p * (1 - p) * _square(u_judge)).mean()),
        var_writer=noise + inconsistency,
        noise=noise,
        inconsistency=inconsistency,
        c1=inconsistency / second if second else None,
    )


def norm_bound(p: float, c1: float) -> float | None:
    """`sqrt((1-p) / (1-p + C1 p))`, the right side of (19): if `|u_r| / |u_j|` is greater, the writer's step is noisier.

    None if the judge is always right and rubrics do not disagree: 0/0.
    """
    below = 1 - p + c1 * p
    return math.sqrt((1 - p) / below) if below > 0 else None


def _square(rows_RD: Floats) -> Floats:
    squares: Floats = (rows_RD**2).sum(1)
    return squares
