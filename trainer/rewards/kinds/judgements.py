"""What a judgement of two answers is worth: its verdict, its reasons, its form (METHODS 4 and 5).

`Item.facts` has `label` (-1: people prefer the answer shown first, 1: the other) and `reasons`, people's. What was read of a
judgement goes along in `shown`, where metrics and pages find it.
"""

import asyncio
from collections.abc import Sequence
from typing import Any

from trainer.config.task_parts import OutcomePart, RationalePart, WellFormedPart

from ..guard import each
from ..pair_judgements import PairJudgement, read_pair_judgement
from ..parts import Item, Part, Services
from ..rationale import average_precision, match, outcome, rationale_consistency
from ..reason_matching import Floats

MOST_REASONS = 50
"""A longer list is cut here before it is matched: nobody has so many reasons, and matching takes their number cubed."""


async def verdict(part: OutcomePart, items: Sequence[Item], services: Services) -> list[Part]:
    return await each(items, lambda item: _verdict(part, item))


async def well_formed(part: WellFormedPart, items: Sequence[Item], services: Services) -> list[Part]:
    return await each(items, lambda item: Part(float(_read(part, item).well_formed)))


async def rationale(part: RationalePart, items: Sequence[Item], services: Services) -> list[Part]:
    """Missing where people gave no reasons: there is nothing to measure on."""
    given = [_read(part, item).reasons[:MOST_REASONS] for item in items]
    lists = [(_human(item), reasons) for item, reasons in zip(items, given, strict=True)]
    known = [place for place, (human, model) in enumerate(lists) if human and model]
    matcher = services.matchers[part.matcher]
    scores = await asyncio.to_thread(matcher.scores, [lists[place] for place in known], "reasons")
    by_place = dict(zip(known, scores, strict=True))
    return [_rationale(part, *lists[place], by_place.get(place)) for place in range(len(items))]


def _verdict(part: OutcomePart, item: Item) -> Part:
    found = _read(part, item)
    shown = {"verdict": found.strength, "label": item.facts["label"], "reasons": list(found.reasons)}
    return Part(outcome(item.facts["label"], found.strength), found.problem, shown)


def _rationale(part: RationalePart, human: list[str], model: Sequence[str], scores_HM: Floats | None) -> Part:
    shown: dict[str, Any] = {"human": human, "reasons": list(model), "matcher": part.matcher}
    if not human:
        return Part(None, "people gave no reasons for their verdict", shown)
    if scores_HM is None:
        return Part(0.0, "the judgement has no reasons that can be read", {**shown, "rc": 0.0})
    joined = match(scores_HM, part.threshold)
    shown |= {
        "scores": scores_HM.round(3).tolist(),
        "human_of": list(joined.human_of_M),
        "hits": list(joined.hits_M),
        "rc": rationale_consistency(scores_HM, len(human)),
    }
    return Part(average_precision(scores_HM, len(human), part.threshold), "", shown)


def _human(item: Item) -> list[str]:
    return list(item.facts["reasons"])


def _read(part: OutcomePart | RationalePart | WellFormedPart, item: Item) -> PairJudgement:
    return read_pair_judgement(item.response, part.form, cut=item.tokens >= item.longest)
