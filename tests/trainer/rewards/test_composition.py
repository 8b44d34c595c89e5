"""Parts are added. A part that is missing, raises or hangs excludes the response and gives the reason. A shadow part excludes nothing."""

import asyncio
import math
import threading
from collections.abc import Sequence
from typing import Any

import pytest

from trainer.config import ConfigInvalid, resolve
from trainer.config.rewards.parts import OverlongPart, RewardPart, RubricPart, VerifierPart
from trainer.contracts import Criterion, Example, Message, Rubric, VerifierSpec
from trainer.rewards import Composed, Item, Part, Services, exclusions, guard, kinds, overlong_penalty, scoring

SHORT = VerifierSpec(name="word_count", args={"max": 3})
RUBRIC = Rubric(
    criteria=(
        Criterion(id="short", text="Is short.", points=1, verifier=SHORT),
        Criterion(
            id="calm", text="Shouts.", points=-1, verifier=VerifierSpec(name="must_contain", args={"texts": ["!"]})
        ),
    )
)
UNJUDGED = Rubric(criteria=(Criterion(id="kind", text="Is kind.", points=1),))
QUALITY = RubricPart(name="quality", weight=2.0)
LENGTH = OverlongPart(name="length", weight=0.5, soft_tokens=40)


def item(response: str = "Two words", rubric: Rubric | None = RUBRIC, tokens: int = 10, place: str = "t/1/0/0") -> Item:
    example = Example(key="row", prompt=(Message(role="user", content="Hi"),))
    return Item(place, example, rubric, response, tokens, longest=60)


def rewards(parts: Sequence[RewardPart], *items: Item) -> list[Composed]:
    async def never(reason: str) -> None:
        raise AssertionError(reason)

    return asyncio.run(scoring.score(parts, items, Services(), never))


def reward(parts: Sequence[RewardPart], given: Item) -> Composed:
    return rewards(parts, given)[0]


@pytest.mark.parametrize(("tokens", "penalty"), [(0, 0.0), (40, 0.0), (45, -0.25), (50, -0.5), (60, -1.0), (70, -1.0)])
def test_overlong_falls_linearly_from_the_soft_limit_to_the_cut(tokens: int, penalty: float) -> None:
    assert overlong_penalty(tokens, 40, 60) == pytest.approx(penalty)


def test_overlong_without_a_slope_is_refused_before_the_run() -> None:
    with pytest.raises(ValueError, match="not below"):
        overlong_penalty(10, 60, 60)
    with pytest.raises(ConfigInvalid) as caught:
        resolve("policy", {"rewards": [{"name": "length", "kind": "overlong", "soft_tokens": 64}]})
    assert [problem.path for problem in caught.value.problems] == ["rewards.0.soft_tokens"]


def test_total_is_the_weighted_sum_and_parts_stay_as_measured() -> None:
    found = reward([QUALITY, LENGTH], item(tokens=50))
    assert found.components == {"quality": 1.0, "length": -0.5}
    assert found.total == pytest.approx(2.0 * 1.0 + 0.5 * -0.5)
    assert found.excluded == ""


def test_a_clipped_part_counts_as_its_bound_and_is_shown_as_measured() -> None:
    found = reward([LENGTH.model_copy(update={"at_least": -0.25})], item(tokens=60))
    assert (found.components, found.total) == ({"length": -1.0}, 0.5 * -0.25)


def test_a_missing_verdict_excludes_the_response() -> None:
    found = reward([QUALITY, LENGTH], item(rubric=UNJUDGED))
    assert found.total is None
    assert found.excluded == "quality: no verdict for kind: no verifier; needs a judge"
    assert found.components == {"length": 0.0} and found.parts["quality"].value is None


def test_every_missing_part_is_named() -> None:
    found = reward([QUALITY, VerifierPart(name="programs")], item(rubric=None))
    assert found.excluded == "quality: the prompt has no rubric; programs: the prompt has no rubric"


def test_a_shadow_is_measured_and_neither_counts_nor_excludes() -> None:
    shadow = QUALITY.model_copy(update={"shadow": True})
    assert reward([shadow, LENGTH], item(rubric=UNJUDGED)).total == 0.0
    found = reward([shadow, LENGTH], item())
    assert (found.total, found.components) == (0.0, {"quality": 1.0, "length": 0.0})


def test_verifiers_alone_score_the_criteria_that_have_one() -> None:
    mixed = Rubric(criteria=(*RUBRIC.criteria, *UNJUDGED.criteria))
    found = reward([VerifierPart(name="programs")], item("Two words!", mixed))
    assert found.total == 0.0 and [v.criterion_id for v in found.parts["programs"].verdicts] == ["short", "calm"]
    assert reward([VerifierPart(name="programs")], item(rubric=UNJUDGED)).excluded == (
        "programs: the rubric has no criterion with a verifier that earns points"
    )


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (Part(math.nan), "it answered nan, which is not a finite number"),
        (Part(math.inf), "it answered inf, which is not a finite number"),
        (Part(True), "it answered True, which is not a number"),
        (Part("0.5"), "it answered '0.5', which is not a number"),  # type: ignore[arg-type]
        (Part(None), "it answered nothing"),
    ],
)
def test_what_is_no_number_is_missing(monkeypatch: pytest.MonkeyPatch, answer: Part, why: str) -> None:
    async def odd(part: Any, items: Sequence[Item], services: Services) -> list[Part]:
        return await guard.measure_each(items, lambda item: answer)

    monkeypatch.setitem(kinds.KINDS, "rubric", odd)
    found = reward([QUALITY], item())
    assert (found.total, found.excluded) == (None, f"quality: {why}")


def test_a_part_that_raises_excludes_the_response_and_is_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    async def broken(part: Any, items: Sequence[Item], services: Services) -> list[Part]:
        raise RuntimeError("no answer")

    monkeypatch.setitem(kinds.KINDS, "rubric", broken)
    given = rewards([QUALITY], item(place="t/1/0/0"), item(place="t/1/0/1"))
    monkeypatch.undo()
    assert exclusions([*given, reward([QUALITY], item())]) == {"quality: RuntimeError: no answer": 2}


def test_one_response_that_raises_takes_no_other_along(monkeypatch: pytest.MonkeyPatch) -> None:
    async def picky(part: Any, items: Sequence[Item], services: Services) -> list[Part]:
        return await guard.measure_each(items, lambda item: Part(1 / len(item.response)))

    monkeypatch.setitem(kinds.KINDS, "rubric", picky)
    found = rewards([QUALITY], item("", place="t/1/0/0"), item("four", place="t/1/0/1"))
    assert [each.total for each in found] == [None, 0.5]
    assert found[0].excluded == "quality: ZeroDivisionError: division by zero"


def test_a_part_that_answers_for_fewer_responses_is_missing_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    async def short(part: Any, items: Sequence[Item], services: Services) -> list[Part]:
        return [Part(1.0)]

    monkeypatch.setitem(kinds.KINDS, "rubric", short)
    found = rewards([QUALITY], item(place="t/1/0/0"), item(place="t/1/0/1"))
    assert [each.excluded for each in found] == ["quality: 1 values for 2 responses"] * 2


def test_a_part_that_hangs_excludes_the_response(monkeypatch: pytest.MonkeyPatch) -> None:
    release = threading.Event()

    async def stuck(part: Any, items: Sequence[Item], services: Services) -> list[Part]:
        return await guard.measure_each(items, lambda item: Part(float(release.wait(30))))

    monkeypatch.setattr(guard, "SECONDS", 0.05)
    monkeypatch.setitem(kinds.KINDS, "rubric", stuck)
    found = reward([QUALITY], item())
    release.set()
    assert (found.total, found.excluded) == (None, "quality: took longer than 0.05 s")
