"""Rubric-ARM (2026): the rewards of a judgement by a written rubric, and of the rubric by which the frozen judge decided.

`Item.facts` of a judgement has the pair, `criteria` (how many the rubric has) and `label` (`A` or `B`: the place of the answer that
people preferred). `Item.facts` of a rubric has the pair and `judged`: the frozen judge's judgements by it, one for each order.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from trainer.config.rewards.arm import FrozenChoicePart, RubricJudgementFormPart, RubricVerdictPart

from ..arm import chose_right, writer_reward
from ..guard import measure_each
from ..parts import Item, Part, Services
from ..rubric_judgements import RubricJudgement, read
from ..written_rubrics import writing_of

_SIGNS = {"A": -1, "B": 1}
_NAMED = 3  # problems that the reason names


async def verdict(part: RubricVerdictPart, items: Sequence[Item], services: Services) -> list[Part]:
    """`shown`: `verdict` and `label`, -1 for the answer shown first, 1 for the other; a verdict that cannot be read is None."""
    return await measure_each(items, lambda item: _verdict(part, item))


async def form(part: RubricJudgementFormPart, items: Sequence[Item], services: Services) -> list[Part]:
    return await measure_each(items, lambda item: _form(_read(part, item)))


async def frozen_choice(part: FrozenChoicePart, items: Sequence[Item], services: Services) -> list[Part]:
    """The mean over the orders that were asked. It is missing if the judge decided nothing in one of them: that is not the writer's failure.
    A rubric that cannot be read is the writer's failure, and earns 0. `shown`: the judge's judgements."""
    return await measure_each(items, lambda item: _choice(part, item))


def _verdict(part: RubricVerdictPart, item: Item) -> Part:
    found, wanted = _read(part, item), str(item.facts["label"])
    shown = {"verdict": _SIGNS[found.verdict] if found.verdict else None, "label": _SIGNS[wanted]}
    return Part(float(bool(chose_right(found.verdict, wanted))), found.problem, shown)


def _form(found: RubricJudgement) -> Part:
    return Part(float(not found.problems), "; ".join(found.problems[:_NAMED]), {"problems": list(found.problems)})


def _read(part: RubricVerdictPart | RubricJudgementFormPart, item: Item) -> RubricJudgement:
    return read(item.response, int(item.facts["criteria"]), part.form, cut=item.cut)


def _choice(part: FrozenChoicePart, item: Item) -> Part:
    if fault := writing_of(item, part.form).fault:
        return Part(0.0, fault)
    said: Sequence[Mapping[str, Any]] = item.facts["judged"]
    shown = {"answers": [_told(one) for one in said]}
    worth = [writer_reward(one["verdict"], one["label"]) for one in said]
    known = [value for value in worth if value is not None]
    if len(known) < len(worth):
        why = next(str(one["problem"]) for one in said if one["verdict"] is None)
        return Part(None, f"the judge decided nothing: {why}", shown)
    value = sum(known) / len(known)
    words = {0.0: "the judge chose the other answer", 1.0: "the judge chose the preferred answer"}
    return Part(value, words.get(value, "its two orders disagree"), shown)


def _told(one: Mapping[str, Any]) -> dict[str, Any]:
    """The judgement in the form in which judges' answers are shown: A is the answer that the judge saw first."""
    decided = {"verdict": one["verdict"]} if one["verdict"] else {}
    return {"parsed": {**decided, "people": one["label"]}, "problem": one["problem"], "raw": one["text"]}
