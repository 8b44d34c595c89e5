"""The rewards of a judgement of two answers: for its verdict, its reasons, its form.

`Item.facts` has `label` (-1: people prefer the answer shown first, 1: the other) and people's `reasons`. The judgement that was read is
in `shown`, for metrics and pages. A judge that is asked about a judgement sees `prompt` and `answers`, in the order in which they were
shown.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from trainer.config.rewards.tasks import FlawsPart, OutcomePart, RationalePart, WellFormedPart
from trainer.contracts import Message
from trainer.judges.inputs import JudgeInput

from ..guard import measure_each
from ..pair_judgements import WORDS_OF, PairJudgement, read_pair_judgement
from ..parts import Item, Part, RewardAnswer, Services
from ..rationale import match, outcome, precision_of, rationale_consistency
from .judge_answers import away_reason, finished, problem_of, usage_of
from .matching import Compared, Matched, match_lists

MOST_REASONS = 50
"""The most reasons that are matched. Nobody has so many, and the time of a matching grows with the cube of their number."""


async def verdict(part: OutcomePart, items: Sequence[Item], services: Services) -> list[Part]:
    return await measure_each(items, lambda item: _verdict(part, item))


async def well_formed(part: WellFormedPart, items: Sequence[Item], services: Services) -> list[Part]:
    return await measure_each(items, lambda item: Part(float(_read(part, item).well_formed)))


async def rationale(part: RationalePart, items: Sequence[Item], services: Services) -> list[Part]:
    """Missing if people gave no reasons: there is nothing to compare with."""
    lists = [_lists(part, item) for item in items]
    known = [place for place, both in enumerate(lists) if both.human and both.model]
    found = await match_lists(part, "reasons", [lists[place] for place in known], services)
    by_place = dict(zip(known, found, strict=True))
    return [_rationale(part, both, by_place.get(place)) for place, both in enumerate(lists)]


async def flaws(part: FlawsPart, items: Sequence[Item], services: Services) -> list[Part]:
    """The share of reasons with a flaw; missing without reasons. `shown`: the tags of each reason, null if it has none."""
    read = [_read(part, item) for item in items]
    known = [place for place, found in enumerate(read) if found.reasons]
    asked = [_about_reasons(items[place], read[place]) for place in known]
    said = await services.judges[part.judge].ask(asked) if asked else []
    by_place = dict(zip(known, said, strict=True))
    return [_flaws(part, found, by_place.get(place)) for place, found in enumerate(read)]


def _verdict(part: OutcomePart, item: Item) -> Part:
    found = _read(part, item)
    shown = {"verdict": found.strength, "label": item.facts["label"], "reasons": list(found.reasons)}
    return Part(outcome(item.facts["label"], found.strength), found.problem, shown)


def _rationale(part: RationalePart, both: Compared, found: Matched | None) -> Part:
    human = list(both.human)
    shown: dict[str, Any] = {"human": human, "reasons": list(both.model), "matcher": part.by}
    if not human:
        return Part(None, "people gave no reasons for their verdict", shown)
    if found is None:
        return Part(0.0, "the judgement has no reasons that can be read", {**shown, "rc": 0.0})
    if found.scores_HM is None:
        return found.unmatched(shown)
    scores_HM = found.scores_HM
    joined = match(scores_HM, part.threshold)
    shown |= {
        "scores": scores_HM.round(3).tolist(),
        "human_of": list(joined.human_of_M),
        "hits": list(joined.hits_M),
        "rc": rationale_consistency(scores_HM, len(human)),
    }
    return Part(precision_of(joined, len(human)), "", shown, usage=usage_of(found.said))


def _flaws(part: FlawsPart, read: PairJudgement, said: Sequence[RewardAnswer] | None) -> Part:
    shown: dict[str, Any] = {"reasons": list(read.reasons[:MOST_REASONS]), "by": part.judge}
    if said is None:
        return Part(None, "the judgement has no reasons that can be read", shown)
    parsed = next((answer.parsed for answer in said if answer.parsed is not None), None)
    if parsed is None:
        return Part(None, problem_of(said), shown, usage=usage_of(said), away=bool(away_reason(said)))
    tags = [parsed["items"].get(str(place)) for place in range(len(shown["reasons"]))]
    known = [each for each in tags if each is not None]
    value = sum(bool(each["flaws"]) for each in known) / len(known) if known else None
    return finished(Part(value, "", {**shown, "tags": [_tags(each) for each in tags]}, usage=usage_of(said)), said)


def _tags(found: Mapping[str, Any] | None) -> dict[str, Any] | None:
    return None if found is None else {"rests_on": found["rests_on"], "flaws": list(found["flaws"])}


def _lists(part: RationalePart, item: Item) -> Compared:
    reasons = _read(part, item).reasons[:MOST_REASONS]
    return Compared(item.place, item.facts["example"], _prompt(item), item.facts["reasons"], reasons)


def _about_reasons(item: Item, read: PairJudgement) -> JudgeInput:
    first, second = item.facts["answers"]
    return JudgeInput(
        example=item.facts["example"],
        conversation=_prompt(item),
        responses={"first": first, "second": second},
        model_reasons=read.reasons[:MOST_REASONS],
        verdict="" if read.strength is None else WORDS_OF[read.strength],
        subject={"place": item.place},
    )


def _prompt(item: Item) -> tuple[Message, ...]:
    """The prompt of the two answers."""
    return tuple(Message.model_validate(message) for message in item.facts["prompt"])


def _read(part: OutcomePart | RationalePart | FlawsPart | WellFormedPart, item: Item) -> PairJudgement:
    return read_pair_judgement(item.response, part.form, cut=item.cut)
