"""The measures on which Rubric-ARM's order of turns rests: score vectors of both roles, p(r), two variances, C1 (equations 17 to 19)."""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from trainer.inference.sampling import SampleResult
from trainer.rewards.arm import ArmVariances, arm_variances, norm_bound

from ..learner.learner import Learner, Marked
from ..prompts.data import Prompt
from ..session.stage import Tell
from .rubric_trials import TrialQuestion, Trials
from .two_roles import TwoRoles


@dataclass(frozen=True)
class MeasuredRubric:
    """One rubric: p(r), the mean squared length of the judge's score vectors by it, and the writer's score vector [D]."""

    p: float
    judge_square: float
    writer_D: Tensor


def measured(
    trials: Trials, learner: Learner, roles: TwoRoles, prompts: Sequence[Prompt], tell: Tell
) -> dict[str, float]:
    """Means over the pairs that could be measured, with both roles as they are; undefined values are left out.

    The weights and moments of both roles stay as they are. May raise StopRequested.
    """
    sizes = trials.config.variances
    rubrics = trials.rubrics(prompts, sizes.rubrics, tell.watch("writing rubrics to measure variances", "evaluation"))
    asked = [[one for rubric in own if (one := trials.asked(rubric))] for own in rubrics]
    flat = [one for own in asked for one in own]
    watch = tell.watch("judging by them to measure variances", "evaluation")
    said = iter(trials.judgements(flat, sizes.judgements, watch))
    found = []
    for own in asked:
        judgements = list(islice(said, len(own)))
        if len(own) > 1:
            tell.check()
            found.append(_scored(trials, learner, roles, own, judgements))
    left_out = float(len(prompts) - len(found))
    return summary(found) | {"variance/pairs": float(len(found)), "variance/left_out": left_out}


def _scored(
    trials: Trials,
    learner: Learner,
    roles: TwoRoles,
    asked: Sequence[TrialQuestion],
    judgements: Sequence[Sequence[SampleResult]],
) -> list[MeasuredRubric]:
    """The measured rubrics of one pair."""
    config = trials.config
    with roles.held("writer"):
        vectors = [score_vector(learner, one.rubric.written, config.writer.temperature) for one in asked]
    found = []
    with roles.held("judge"):
        for one, said, writer_D in zip(asked, judgements, vectors, strict=True):
            # The judge must choose: without a decision it is not right.
            right = [trials.right(one, result) is True for result in said]
            rows = [Marked.response(one.tokens, result.tokens) for result in said]
            squares = [_square(score_vector(learner, row, config.judge.temperature)) for row in rows]
            found.append(MeasuredRubric(statistics.fmean(right), statistics.fmean(squares), writer_D))
    return found


def score_vector(learner: Learner, row: Marked, temperature: float) -> Tensor:
    """The score vector [D], float32 on the CPU: the gradient of the log-probability of the row's marked tokens by all trained parameters.

    Drops the learner's gradients; changes no weights and no moments.
    """
    learner.begin_update()
    (scored,) = learner.measure([row], temperature)
    scored.logp_T.sum().backward()
    learner.clip(math.inf)  # completes the gradients and clips none
    found = [parameter.grad.detach().float().flatten().cpu() for parameter in learner.parameters.values()]  # type: ignore[union-attr]
    learner.begin_update()
    return torch.cat(found)


def coordinates(rows: Sequence[Tensor]) -> NDArray[np.float64]:
    """Coordinates [R, R] of R vectors of any width in the space that they span: the variances need only lengths and angles."""
    gram_RR = np.array([[float(one.double() @ other.double()) for other in rows] for one in rows])
    values_R, vectors_RR = np.linalg.eigh(gram_RR)
    found: NDArray[np.float64] = vectors_RR * np.sqrt(np.clip(values_R, 0.0, None))
    return found


def summary(pairs: Sequence[Sequence[MeasuredRubric]]) -> dict[str, float]:
    """Equations (17) to (19) for each pair over its rubrics, as means over pairs; undefined values are left out."""
    if not pairs:
        return {}
    each = [_variances(rubrics) for rubrics in pairs]
    rubrics = [one for own in pairs for one in own]
    p = statistics.fmean(one.p for one in rubrics)
    writer = math.sqrt(statistics.fmean(_square(one.writer_D) for one in rubrics))
    judge = math.sqrt(statistics.fmean(one.judge_square for one in rubrics))
    noisy = {name: statistics.fmean(getattr(found, name) for found in each) for name in _NAMES}
    known = [found.c1 for found in each if found.c1 is not None]
    c1 = statistics.fmean(known) if known else None
    defined = {
        "variance/log_ratio": _log_ratio(noisy["var_writer"], noisy["var_judge"]),
        "variance/c1": c1,
        "variance/norm_ratio": writer / judge if judge else None,
        "variance/norm_bound": None if c1 is None else norm_bound(p, c1),
    }
    ratio, bound = defined["variance/norm_ratio"], defined["variance/norm_bound"]
    defined["variance/norm_margin"] = None if ratio is None or bound is None else ratio - bound
    always = {key: noisy[name] for name, key in _NAMES.items()}
    always |= {"variance/p": p, "variance/writer_norm": writer, "variance/judge_norm": judge}
    return always | {key: value for key, value in defined.items() if value is not None}


_NAMES = {
    "var_judge": "variance/judge",
    "var_writer": "variance/writer",
    "noise": "variance/noise",
    "inconsistency": "variance/inconsistency",
}


def _variances(rubrics: Sequence[MeasuredRubric]) -> ArmVariances:
    """The variances of a pair. The formula reads only the lengths of the judge's score vectors."""
    judge_R1 = np.sqrt([[one.judge_square] for one in rubrics])
    return arm_variances([one.p for one in rubrics], coordinates([one.writer_D for one in rubrics]), judge_R1)


def _log_ratio(writer: float, judge: float) -> float | None:
    return math.log10(writer / judge) if writer > 0 and judge > 0 else None


def _square(vector_D: Tensor) -> float:
    return float(vector_D.double() @ vector_D.double())
