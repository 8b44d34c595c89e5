"""Rubrics that the writer of a run of recipe `alternating` samples with its present weights, and judgements of the present judge by them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from trainer.config.recipes.alternating import AlternatingConfig, Role
from trainer.contracts import Criterion
from trainer.inference.chat import encode_prompt
from trainer.inference.sampling import Sampler, SampleRequest, SampleResult
from trainer.rewards.rubric_judgements import label, question, read
from trainer.rewards.written_rubrics import FACTS, ComparedPair
from trainer.seeding import derive_seed
from trainer.tasks.arm import criteria_of

from ..learner.learner import Marked
from ..prompts.data import Prompt
from ..session.stage import Progress
from .two_roles import TwoRoles

Tokens = tuple[int, ...]


@dataclass(frozen=True)
class TriedRubric:
    """A rubric that can be read, and its `place` among the rubrics sampled for the pair."""

    prompt: Prompt
    pair: ComparedPair
    place: int
    written: Marked
    criteria: tuple[Criterion, ...]


@dataclass(frozen=True)
class TrialQuestion:
    """The question for a judgement by a rubric; with `swapped` the answers are shown in the other order."""

    rubric: TriedRubric
    swapped: bool
    tokens: Tokens


@dataclass(frozen=True)
class Trials:
    """Samples rubrics and judgements. The run's seed, `purpose`, the pair and the places decide every random choice. Changes no state of
    the run.
    """

    config: AlternatingConfig
    tokenizer: Any
    sampler: Sampler
    roles: TwoRoles
    purpose: tuple[str | int, ...]
    version: int
    """The last step of the run; the sampler gets it as the version of its weights."""

    def rubrics(self, prompts: Sequence[Prompt], each: int, progress: Progress) -> list[list[TriedRubric]]:
        """For each question of the writer, those of its `each` rubrics that can be read."""
        requests = [
            self._request("writer", prompt.tokens, "rubric", prompt.example.key, place)
            for prompt in prompts
            for place in range(each)
        ]
        with self.roles.speaking("writer", self.version):
            results = self.sampler.sample(requests, progress)
        found = []
        for number, prompt in enumerate(prompts):
            own = enumerate(results[number * each : (number + 1) * each])
            usable = [self._tried(prompt, place, result) for place, result in own]
            found.append([one for one in usable if one is not None])
        return found

    def asked(self, rubric: TriedRubric, swapped: bool = False) -> TrialQuestion | None:
        """The question about a rubric; None if it is longer than `data.max_prompt_tokens`."""
        messages = question(rubric.pair, rubric.criteria, self.config.data.judgement, swapped)
        tokens = encode_prompt(self.tokenizer, messages)
        return TrialQuestion(rubric, swapped, tokens) if len(tokens) <= self.config.data.max_prompt_tokens else None

    def judgements(
        self, asked: Sequence[TrialQuestion], each: int, progress: Progress, greedy: bool = False
    ) -> list[list[SampleResult]]:
        """`each` judgements of each question, sampled as in training, or the judge's most likely one."""
        requests = [
            self._request(
                "judge", one.tokens, "judgement", one.rubric.prompt.example.key, one.rubric.place, one.swapped, number
            )
            for one in asked
            for number in range(each)
        ]
        if not requests:
            return []
        if greedy:
            requests = [replace(request, temperature=0.0, top_p=1.0, stop=()) for request in requests]
        with self.roles.speaking("judge", self.version):
            results = self.sampler.sample(requests, progress)
        return [results[start : start + each] for start in range(0, len(results), each)]

    def right(self, asked: TrialQuestion, said: SampleResult) -> bool | None:
        """Whether the judgement chooses the answer that people preferred; None without a decision."""
        cut = said.finish_reason == "length"
        judged = read(said.text, len(asked.rubric.criteria), self.config.data.judgement, cut)
        return None if judged.verdict is None else judged.verdict == label(asked.rubric.pair, asked.swapped)

    def _tried(self, prompt: Prompt, place: int, result: SampleResult) -> TriedRubric | None:
        criteria = criteria_of(prompt, result.text, result.finish_reason == "length", self.config)
        if not criteria:
            return None
        pair = ComparedPair.model_validate(prompt.facts[FACTS])
        return TriedRubric(prompt, pair, place, Marked.response(prompt.tokens, result.tokens), criteria)

    def _request(self, role: Role, tokens: Tokens, *named: str | int) -> SampleRequest:
        rollout = self.config.turn(role).rollout
        seed = derive_seed(self.config.seed, *self.purpose, *named)
        return SampleRequest(
            tokens, rollout.max_new_tokens, rollout.temperature, rollout.top_p, tuple(rollout.stop), seed
        )
