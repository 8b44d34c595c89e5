"""Parts that measure a rubric, with verifiers and judges, and judges of whole responses."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from trainer.config.rewards.parts import JudgePart, RubricPart, VerifierPart
from trainer.contracts import Criterion, Rubric, Verdict
from trainer.judges import combine
from trainer.judges.inputs import JudgeInput
from trainer.rubrics.score import likert_score, training_score, verdicts

from ..guard import measure_each
from ..pairwise import remax_pairwise
from ..parts import Item, Part, RewardAnswer, RewardJudge, Services, Unscored, Usage
from .judge_answers import explained, finished, problem_of, told, usage_of

_ID = "sample"
_OTHER = "baseline"


async def verifier(part: VerifierPart, items: Sequence[Item], services: Services) -> list[Part]:
    """`S` over the criteria with a verifier; the other criteria do not count."""
    return await measure_each(items, lambda item: _by_programs(_only(item.rubric, verified=True), item.response))


async def rubric(part: RubricPart, items: Sequence[Item], services: Services) -> list[Part]:
    """`S = sum_i b_i p_i / sum_{p_j > 0} p_j` over all criteria (RuscaRL, 2025; HealthBench, 2025)."""
    programs = await measure_each(items, lambda item: _by_programs(_whole(item.rubric), item.response))
    if not part.judge:
        return programs
    said = await _ask(services.judges[part.judge], items)
    return [_merged(*each_item) for each_item in zip(items, programs, said, strict=True)]


async def judge(part: JudgePart, items: Sequence[Item], services: Services) -> list[Part]:
    asked = services.judges[part.judge]
    match part.protocol:
        case "criterion" | "checklist":
            return [_criteria(item, said) for item, said in zip(items, await _ask(asked, items), strict=True)]
        case "likert":
            return [_likert(item, said) for item, said in zip(items, await _ask(asked, items), strict=True)]
        case "pointwise":
            return [_pointwise(said) for said in await _ask(asked, items)]
        case _:
            return await _pairwise(part, items, asked)


def judged_rubric(rubric: Rubric | None) -> Rubric:
    """The criteria that need a judge, as a rubric. Raises Unscored if there are none, or none that earns points."""
    return _only(rubric, verified=False)


def verified_rubric(rubric: Rubric | None) -> Rubric:
    """The criteria that a program decides, as a rubric. Raises Unscored if there are none, or none that earns points."""
    return _only(rubric, verified=True)


def _whole(rubric: Rubric | None) -> Rubric:
    if rubric is None:
        raise Unscored("the prompt has no rubric")
    return rubric


def _only(rubric: Rubric | None, *, verified: bool) -> Rubric:
    kept = tuple(c for c in _whole(rubric).criteria if (c.verifier is not None) == verified)
    if not any(criterion.points > 0 for criterion in kept):
        how = "with a verifier" if verified else "that needs a judge"
        raise Unscored(f"the rubric has no criterion {how} that earns points")
    return Rubric(criteria=kept)


def _by_programs(rubric: Rubric, response: str) -> Part:
    """The verdicts of verifiers. The score is missing if one of the criteria has no verdict."""
    return _scored(rubric, verdicts(rubric, response))


def _scored(rubric: Rubric, given: Sequence[Verdict], usage: Usage = Usage()) -> Part:  # noqa: B008 - a constant
    score = training_score(rubric, given)
    if score.score is not None:
        return Part(score.score, "", None, score.verdicts, usage)
    missing = [verdict for verdict in given if verdict.met is None]
    named = ", ".join(verdict.criterion_id for verdict in missing)
    notes = "; ".join(dict.fromkeys(verdict.note for verdict in missing if verdict.note))
    return Part(None, f"no verdict for {named}" + (f": {notes}" if notes else ""), None, score.verdicts, usage)


async def _ask(judge: RewardJudge, items: Sequence[Item]) -> list[list[RewardAnswer]]:
    return await judge.ask([_input(item) for item in items])


def _input(item: Item) -> JudgeInput:
    """The input of the judge: the prompt as it is in the data, never the scaffold."""
    return JudgeInput(
        example=item.example.key,
        conversation=item.example.prompt,
        responses={_ID: item.response},
        criteria=item.rubric.criteria if item.rubric else (),
        reference=item.example.reference or "",
        subject={"place": item.place},
    )


def _verdicts_of(criteria: Sequence[Criterion], said: Sequence[RewardAnswer]) -> dict[str, Verdict]:
    """A verdict for each of the criteria, by id, with the cost of the calls that were only about it."""
    unusable = next((answer.problem for answer in said if "response" not in answer.subject), "")
    answered = [answer for answer in said if "response" in answer.subject]
    found = {v.criterion_id: v for given in combine.criterion_verdicts(answered).values() for v in given}
    costs = _costs(answered)
    return {
        c.id: found[c.id].model_copy(update={"cost": costs.get(c.id)})
        if c.id in found
        else Verdict(criterion_id=c.id, met=None, source="judge", note=unusable or "the judge was not asked")
        for c in criteria
    }


def _costs(said: Sequence[RewardAnswer]) -> dict[str, float]:
    """The cost of the calls for each criterion. The cost of a call about several criteria is divided among them."""
    found: dict[str, float] = {}
    for answer in said:
        about = answer.subject.get("criteria") or [answer.subject.get("criterion")]
        if answer.called and answer.cost is not None:
            for criterion in about:
                found[criterion] = found.get(criterion, 0.0) + answer.cost / len(about)
    return found


def _merged(item: Item, programs: Part, said: Sequence[RewardAnswer]) -> Part:
    """The verdict of a program if there is one, else that of the judge."""
    if item.rubric is None or not programs.verdicts:
        return programs
    asked = [criterion for criterion in item.rubric.criteria if criterion.verifier is None]
    by_judge = _verdicts_of(asked, said)
    given = [by_judge.get(verdict.criterion_id, verdict) for verdict in programs.verdicts]
    return finished(_scored(item.rubric, given, usage_of(said)), said)


def _criteria(item: Item, said: Sequence[RewardAnswer]) -> Part:
    try:
        rubric = judged_rubric(item.rubric)
    except Unscored as unscored:
        return Part(None, str(unscored))
    return finished(_scored(rubric, list(_verdicts_of(rubric.criteria, said).values()), usage_of(said)), said)


def _likert(item: Item, said: Sequence[RewardAnswer]) -> Part:
    """`S = sum_k w_k v_k / sum_k w_k`, `v = (rating - 1) / 9`, weights are points (MaMs)."""
    usage = usage_of(said)
    try:
        criteria = [c for c in _whole(item.rubric).criteria if c.verifier is None]
        if sum(criterion.points for criterion in criteria) <= 0:
            raise Unscored("the points of the criteria that need a judge add up to 0 or less")
    except Unscored as unscored:
        return Part(None, str(unscored), usage=usage)
    answered = [answer for answer in said if "response" in answer.subject]
    ratings: Mapping[str, float | None] = next(iter(combine.criterion_ratings(answered).values()), {})
    missing = [criterion.id for criterion in criteria if ratings.get(criterion.id) is None]
    shown = {"ratings": {c.id: ratings.get(c.id) for c in criteria}, "answers": told(said)}
    if missing:
        why = next((answer.problem for answer in said if answer.problem), "")
        part = Part(None, f"no rating for {', '.join(missing)}" + (f": {why}" if why else ""), shown, usage=usage)
    else:
        weights = [criterion.points for criterion in criteria]
        part = Part(likert_score(weights, [ratings[c.id] or 0.0 for c in criteria]), "", shown, usage=usage)
    return finished(part, said)


def _pointwise(said: Sequence[RewardAnswer]) -> Part:
    """`(rating - 1) / 9`, the mean over the votes that can be read."""
    ratings = [float(answer.parsed["rating"]) for answer in said if answer.parsed is not None]
    shown, usage = {"answers": told(said)}, usage_of(said)
    if not ratings:
        return finished(Part(None, problem_of(said), shown, usage=usage), said)
    return finished(Part((sum(ratings) / len(ratings) - 1) / 9, explained(said), shown, usage=usage), said)


_LACKING = {
    "reference": "the example has no reference",
    "greedy": "there is no greedy answer to compare with",
    "sample": "there is no other sample to compare with",
}


async def _pairwise(part: JudgePart, items: Sequence[Item], judge: RewardJudge) -> list[Part]:
    # an empty reference is a field that nobody filled in; an empty answer of a model is an answer
    others = [item.example.reference or None if part.against == "reference" else item.baseline for item in items]
    places = [place for place, other in enumerate(others) if other is not None]
    inputs = [
        replace(_input(items[place]), responses={_ID: items[place].response, _OTHER: str(others[place])})
        for place in places
    ]
    said = dict(zip(places, await judge.ask(inputs), strict=True))
    lacking = _LACKING[part.against]
    return [_against(said[place]) if place in said else Part(None, lacking) for place in range(len(items))]


def _against(said: Sequence[RewardAnswer]) -> Part:
    """`R = (1[sample wins when first] + 1[sample wins when second]) / 2` (ReMax baseline, Li et al., 2024).

    `shown.places`: the place that won when the sample was shown first, and when it was shown second. `shown.strength`: how strongly the
    sample is preferred, -2 to 2, over both.
    """
    answered = [answer for answer in said if "order" in answer.subject]
    pair = next(iter(combine.pair_verdicts(answered).values()), None)
    first = None if pair is None or pair.given is None else {-1: "first", 0: "tie", 1: "second"}[pair.given]
    second = None if pair is None or pair.swapped is None else {-1: "second", 0: "tie", 1: "first"}[pair.swapped]
    strength = None if pair is None or pair.strength is None else -pair.strength
    shown, usage = {"answers": told(said), "places": [first, second], "strength": strength}, usage_of(said)
    value = remax_pairwise(first, second)  # type: ignore[arg-type]  # of the three places
    if value is None:
        return finished(Part(None, problem_of(said), shown, usage=usage), said)
    words = {"first": "won shown first", "second": "lost shown first", "tie": "drew shown first"}[str(first)]
    words += {"first": ", lost shown second", "second": ", won shown second", "tie": ", drew shown second"}[str(second)]
    return finished(Part(value, words, shown, usage=usage), said)
