"""What Rubric-ARM's order of turns rests on, measured: score vectors of both roles, p(r), two variances, C1 (17 to 19)."""

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from trainer.config.alternating import AlternatingConfig, Role
from trainer.inference.chat import encode_prompt
from trainer.inference.sampling import Sampler, SampleRequest, SampleResult
from trainer.rewards.arm import ArmVariances, arm_variances, norm_bound
from trainer.rewards.rubric_judgements import label, question, read
from trainer.rewards.written import FACTS, ComparedPair
from trainer.seeding import derive_seed
from trainer.tasks.arm import criteria_of

from .data import Prompt
from .learner import Learner, Marked
from .stage import Tell
from .two_roles import TwoRoles

Tokens = tuple[int, ...]


@dataclass(frozen=True)
class Tried:
    """A rubric that a judge can use, the question that asks for a judgement by it, and how many criteria it has."""

    pair: ComparedPair
    prompt: Prompt
    written: Marked
    asked: Tokens
    criteria: int


@dataclass(frozen=True)
class Measured:
    """One rubric: p(r), the judge's mean squared length by it, and the writer's score vector [D]."""

    p: float
    judge_square: float
    writer_D: Tensor


class ScoreVectors:
    """Samples rubrics and judgements with both roles as they are. Neither's weights nor moments are changed.

    Everything random follows from the seed, the turn and the pair, so that a resumed run measures the same.
    """

    def __init__(
        self, config: AlternatingConfig, tokenizer: Any, learner: Learner, sampler: Sampler, roles: TwoRoles
    ) -> None:
        self._config, self._tokenizer, self._learner = config, tokenizer, learner
        self._sampler, self._roles = sampler, roles

    def measured(self, prompts: Sequence[Prompt], turn: int, version: int, tell: Tell) -> dict[str, float]:
        """Means over the pairs that could be measured; what is not defined is left out. May raise StopRequested."""
        tried = self._rubrics(prompts, turn, version, tell)
        judgements = self._judgements([each for rubrics in tried for each in rubrics], turn, version, tell)
        found, place = list[list[Measured]](), 0
        for rubrics in tried:
            own = judgements[place : place + len(rubrics)]
            place += len(rubrics)
            if len(rubrics) > 1:
                tell.check()
                found.append(self._score(rubrics, own))
        return summary(found) | {
            "variance/pairs": float(len(found)),
            "variance/left_out": float(len(prompts) - len(found)),
        }

    def _rubrics(self, prompts: Sequence[Prompt], turn: int, version: int, tell: Tell) -> list[list[Tried]]:
        """For each pair those of its rubrics that can be read and whose question to the judge is not too long."""
        each = self._config.variances.rubrics
        requests = [
            self._request("writer", prompt.tokens, "rubric", turn, prompt.example.key, n)
            for prompt in prompts
            for n in range(each)
        ]
        with self._roles.speaking("writer", version):
            results = self._sampler.sample(requests, tell.watch("writing rubrics to measure variances"))
        written = [results[start : start + each] for start in range(0, len(results), each)]
        found = []
        for prompt, own in zip(prompts, written, strict=True):
            usable = (self._tried(prompt, result) for result in own)
            found.append([one for one in usable if one is not None])
        return found

    def _tried(self, prompt: Prompt, result: SampleResult) -> Tried | None:
        criteria = criteria_of(prompt, result.text, result.finish_reason == "length", self._config)
        if not criteria:
            return None
        pair = ComparedPair.model_validate(prompt.facts[FACTS])
        asked = encode_prompt(self._tokenizer, question(pair, criteria, self._config.data.judgement))
        if len(asked) > self._config.data.max_prompt_tokens:
            return None
        return Tried(pair, prompt, Marked.response(prompt.tokens, result.tokens), asked, len(criteria))

    def _judgements(self, tried: Sequence[Tried], turn: int, version: int, tell: Tell) -> list[list[SampleResult]]:
        """Of each rubric those sampled by it."""
        each = self._config.variances.judgements
        requests = [
            self._request("judge", one.asked, "judgement", turn, one.prompt.example.key, place, n)
            for place, one in enumerate(tried)
            for n in range(each)
        ]
        if not requests:
            return []
        with self._roles.speaking("judge", version):
            results = self._sampler.sample(requests, tell.watch("judging by them to measure variances"))
        return [results[start : start + each] for start in range(0, len(results), each)]

    def _request(self, role: Role, tokens: Tokens, *named: Any) -> SampleRequest:
        rollout = self._config.turn(role).rollout
        seed = derive_seed(self._config.seed, "variances", *named)
        return SampleRequest(
            tokens, rollout.max_new_tokens, rollout.temperature, rollout.top_p, tuple(rollout.stop), seed
        )

    def _score(self, tried: Sequence[Tried], judgements: Sequence[Sequence[SampleResult]]) -> list[Measured]:
        """Of the rubrics of one pair."""
        config = self._config
        with self._roles.held("writer"):
            vectors = [score_vector(self._learner, one.written, config.writer.temperature) for one in tried]
        found = []
        with self._roles.held("judge"):
            for one, said, writer_D in zip(tried, judgements, vectors, strict=True):
                right = [self._right(one, result) for result in said]
                rows = [Marked.response(one.asked, result.tokens) for result in said]
                squares = [_square(score_vector(self._learner, row, config.judge.temperature)) for row in rows]
                found.append(Measured(statistics.fmean(right), statistics.fmean(squares), writer_D))
        return found

    def _right(self, one: Tried, result: SampleResult) -> bool:
        """A choice is forced: no decision is not right."""
        cut = result.finish_reason == "length"
        judged = read(result.text, one.criteria, self._config.data.judgement, cut)
        return judged.verdict == label(one.pair)


def score_vector(learner: Learner, row: Marked, temperature: float) -> Tensor:
    """[D] float32 on the CPU: the gradient of the log-probability of the row's marked tokens by all that is trained.

    Drops the learner's gradients; changes no weights and no moments.
    """
    learner.begin_update()
    (scored,) = learner.measure([row], temperature)
    scored.logp_T.sum().backward()
    learner.clip(math.inf)  # gradients are complete after it, and none is cut down
    found = [parameter.grad.detach().float().flatten().cpu() for parameter in learner.parameters.values()]  # type: ignore[union-attr]
    learner.begin_update()
    return torch.cat(found)


def coordinates(rows: Sequence[Tensor]) -> NDArray[np.float64]:
    """[R, R]: R vectors of any width in the space that they span, with their lengths and angles, all that variances need."""
    gram_RR = np.array([[float(one.double() @ other.double()) for other in rows] for one in rows])
    values_R, vectors_RR = np.linalg.eigh(gram_RR)
    found: NDArray[np.float64] = vectors_RR * np.sqrt(np.clip(values_R, 0.0, None))
    return found


def summary(pairs: Sequence[Sequence[Measured]]) -> dict[str, float]:
    """(17) to (19) of each pair over its rubrics, as means over pairs; what is not defined is left out."""
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
    always = {key: noisy[name] for name, key in _NAMES.items()}
    always |= {"variance/p": p, "variance/writer_norm": writer, "variance/judge_norm": judge}
    return always | {key: value for key, value in defined.items() if value is not None}


_NAMES = {
    "var_judge": "variance/judge",
    "var_writer": "variance/writer",
    "noise": "variance/noise",
    "inconsistency": "variance/inconsistency",
}


def _variances(rubrics: Sequence[Measured]) -> ArmVariances:
    """Of the judge's score vectors the formula reads lengths alone."""
    judge_R1 = np.sqrt([[one.judge_square] for one in rubrics])
    return arm_variances([one.p for one in rubrics], coordinates([one.writer_D for one in rubrics]), judge_R1)


def _log_ratio(writer: float, judge: float) -> float | None:
    return math.log10(writer / judge) if writer > 0 and judge > 0 else None


def _square(vector_D: Tensor) -> float:
    return float(vector_D.double() @ vector_D.double())
