"""The judge of a run of recipe `alternating` while the writer learns: its weights do not change, it decides greedily, and for every
rubric it is asked whether it chooses the answer that people preferred.
"""

from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from trainer.config.recipes.alternating import TurnConfig
from trainer.config.rewards.arm import ByRubricForm
from trainer.contracts.rubric import RubricForm
from trainer.inference.chat import encode_prompt
from trainer.inference.sampling import Sampler, SampleRequest
from trainer.rewards import Item, Services
from trainer.rewards.access import Access
from trainer.rewards.rubric_judgements import Side, label, question, read
from trainer.rewards.written_rubrics import Writing, writing_of
from trainer.rollouts import Reward, RewardScorer, RewardSetup, RewardWatch
from trainer.rollouts.scoring import Begun, Unwatched

from .two_roles import TwoRoles


class FrozenJudge:
    """Asks the judge of the run, greedily, with its present weights."""

    def __init__(
        self,
        config: TurnConfig,
        rubric: RubricForm,
        judgement: ByRubricForm,
        tokenizer: Any,
        sampler: Sampler,
        roles: TwoRoles,
    ) -> None:
        self._config, self._rubric, self._judgement = config, rubric, judgement
        self._tokenizer, self._sampler, self._roles = tokenizer, sampler, roles
        self.version = 0
        """The last step of the run; the sampler gets it as the version of its weights."""

    def ask(self, items: Sequence[Item], orders: Sequence[bool], watch: RewardWatch) -> list[Item]:
        """The items with the judge's answers by each rubric, in each of the `orders` (True: swapped), as fact `judged`."""
        asked = [
            (place, swapped, writing_of(item, self._rubric)) for place, item in enumerate(items) for swapped in orders
        ]
        asked = [each for each in asked if not each[2].fault]
        said: dict[int, list[dict[str, Any]]] = {place: [] for place in range(len(items))}
        for (place, _, _), answer in zip(asked, self._answers([each[1:] for each in asked], watch), strict=True):
            said[place].append(answer)
        return [replace(item, facts={**item.facts, "judged": said[place]}) for place, item in enumerate(items)]

    def _answers(self, asked: Sequence[tuple[bool, Writing]], watch: RewardWatch) -> list[dict[str, Any]]:
        prompts = [
            encode_prompt(self._tokenizer, question(writing.pair, writing.criteria, self._judgement, swapped))
            for swapped, writing in asked
        ]
        longest, most = self._config.data.max_prompt_tokens, self._config.rollout.max_new_tokens
        short = [place for place, prompt in enumerate(prompts) if len(prompt) <= longest]
        requests = [SampleRequest(prompts[place], most, 0.0, 1.0, (), 0) for place in short]
        found = {}
        if requests:
            with self._roles.speaking("judge", self.version):
                results = self._sampler.sample(requests, lambda done, total: watch.check())
            found = dict(zip(short, results, strict=True))
        answers = []
        for place, (swapped, writing) in enumerate(asked):
            result, side = found.get(place), label(writing.pair, swapped)
            if result is None:
                problem = f"the question is longer than data.max_prompt_tokens = {longest}"
                answers.append(_answer(None, problem, "", side))
                continue
            cut = result.finish_reason == "length"
            judged = read(result.text, len(writing.criteria), self._judgement, cut)
            answers.append(_answer(judged.verdict, judged.problem, result.text, side))
        return answers


def _answer(verdict: Side | None, problem: str, text: str, side: Side) -> dict[str, Any]:
    return {"verdict": verdict, "label": side, "problem": problem, "text": text}


class JudgedScorer(RewardScorer):
    """Rewards of rubrics. The judge is asked about all rubrics that are sampled together once the last is written, because it needs
    the sampler.
    """

    def __init__(self, config: TurnConfig, services: Services, judge: FrozenJudge, orders: Sequence[bool]) -> None:
        super().__init__(config, services)
        self._judge, self._orders = judge, orders

    def begin(self, items: Sequence[Item]) -> Begun:
        """Nothing happens yet: `finish` asks the judge."""
        return Begun(items, Future())

    def finish(self, begun: Sequence[Begun], watch: RewardWatch | None = None) -> list[Reward]:
        items = [item for each in begun for item in each.items]
        judged = self._judge.ask(items, self._orders, watch or Unwatched())
        return super().finish([super().begin(judged)], watch)


@dataclass(frozen=True)
class JudgedRewards:
    """Opens scorers of rubrics. `orders` are those in which the judge is shown each pair: True is swapped. `access` has the judge of
    the panel, if there is one.
    """

    config: TurnConfig
    judge: FrozenJudge
    orders: Sequence[bool]
    access: Access = field(default_factory=Access)

    def open(self, journal: Path | None = None) -> JudgedScorer:
        """The scorer, without a journal: a greedy judge gives the same answer again."""
        return JudgedScorer(self.config, RewardSetup(self.config, self.access).services(), self.judge, self.orders)


@dataclass(frozen=True)
class OwnRewards:
    """Opens scorers whose rewards are read from the response alone."""

    config: TurnConfig

    def open(self, journal: Path | None = None) -> RewardScorer:
        """The scorer, without a journal: it asks no judge."""
        return RewardSetup(self.config).open()
