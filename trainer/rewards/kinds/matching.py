"""Finds people's items in a model's list, by a matcher in this process or by a judge version."""

import asyncio
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from trainer.config.rewards.base import MatchedPart
from trainer.contracts import Message
from trainer.judges.inputs import JudgeInput

from ..parts import Part, RewardAnswer, Services
from ..reason_matching import Floats, Kind
from .judge_answers import away_reason, problem_of, usage_of


class Compared(NamedTuple):
    """Two lists to compare, people's and a model's, about this conversation. `place` is the place of the response."""

    place: str
    example: str
    conversation: tuple[Message, ...]
    human: Sequence[str]
    model: Sequence[str]


class Matched(NamedTuple):
    """The similarity of each human text with each text of the model, in [0, 1]; above 0.5 they say the same. None: no usable answer.
    `said` are the judge's answers."""

    scores_HM: Floats | None
    said: Sequence[RewardAnswer] = ()

    def unmatched(self, shown: object) -> Part:
        """The part of a response whose lists could not be matched."""
        why = away_reason(self.said)
        told = why or f"the matcher gave no matching: {problem_of(self.said)}"
        return Part(None, told, shown, usage=usage_of(self.said), away=bool(why))


async def match_lists(part: MatchedPart, of: Kind, lists: Sequence[Compared], services: Services) -> list[Matched]:
    """The results, in order. A judge is asked about all lists at once; of several votes the mean counts."""
    if not lists:
        return []
    if not part.asks_judge:
        pairs = [(each.human, each.model) for each in lists]
        found = await asyncio.to_thread(services.matchers[part.found_by].scores, pairs, of)
        return [Matched(scores) for scores in found]
    said = await services.judges[part.judge].ask([_question(of, each) for each in lists])
    return [Matched(_scores(of, each, answers), answers) for each, answers in zip(lists, said, strict=True)]


def _question(of: Kind, each: Compared) -> JudgeInput:
    subject = {"place": each.place}
    human, model = tuple(each.human), tuple(each.model)
    if of == "reasons":
        return JudgeInput(each.example, each.conversation, human_reasons=human, model_reasons=model, subject=subject)
    return JudgeInput(each.example, each.conversation, reference_items=human, generated=model, subject=subject)


def _scores(of: Kind, each: Compared, said: Sequence[RewardAnswer]) -> Floats | None:
    """The scores; None if no answer can be read, or if one of the questions could not be asked."""
    parsed = [answer.parsed for answer in said if answer.parsed is not None]
    if not parsed or away_reason(said):
        return None
    if of == "reasons":
        votes = [np.asarray(found["scores"], dtype=np.float64) for found in parsed]
    else:
        votes = [np.zeros((len(each.human), len(each.model))) for _ in parsed]
        for vote, found in zip(votes, parsed, strict=True):
            for generated, reference in found["matches"]:
                vote[reference, generated] = 1.0
    mean: Floats = np.mean(votes, axis=0)
    return mean
