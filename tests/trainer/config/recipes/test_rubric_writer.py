"""The config of recipe `rubric_writer`: the parts that it makes, and combinations that cannot work."""

from typing import Any

import pytest

from trainer.config import RECIPES, ConfigInvalid, resolve


def parts(**reward: Any) -> dict[str, Any]:
    found = resolve("rubric_writer", {"reward": {"by": "words", **reward}}).composition.parts  # type: ignore[attr-defined]
    return {part.name: part for part in found}


def test_the_published_reward_is_the_sum_of_its_parts() -> None:
    made = parts(by="likert", judge="Grader v1", quality_judge="Reader v2", preference_weight=2, quality_weight=0.5)
    weights = {name: (part.weight, part.shadow) for name, part in made.items()}
    assert weights == {
        "preference": (2.0, False),
        "format": (1.0, False),
        "quality": (0.5, False),
        "recall": (1.0, True),
    }
    assert made["preference"].asks_judge == "Grader v1" and made["preference"].judge_kinds == ("likert",)
    assert made["quality"].asks_judge == "Reader v2" and made["quality"].judge_kinds == ("rubric_quality",)


def test_what_has_no_weight_is_measured_and_not_trained_on() -> None:
    made = parts(by="choice", judge="Pairs v1", format_weight=0)
    assert made["choice"].judge_kinds == ("pairwise_rubric",) and not made["choice"].shadow
    assert made["format"].shadow and "quality" not in made


def test_each_judge_has_the_budget_and_is_found_by_its_place() -> None:
    config = resolve(
        "rubric_writer",
        {
            "reward": {
                "by": "likert",
                "judge": "Grader v1",
                "quality_judge": "Reader v2",
                "budget_tokens": 9,
                "on_missing": "exclude",
            }
        },
    )
    for path, name in (("reward.judge", "preference"), ("reward.quality_judge", "quality")):
        part = config.asking(path)
        assert part is not None and part.name == name
        assert (part.budget_tokens, part.on_missing) == (9, "exclude")
    slots = {slot.path: slot.name for slot in RECIPES["rubric_writer"].filled(config) if slot.kind == "judge"}
    assert slots == {"reward.judge": "Grader v1", "reward.quality_judge": "Reader v2"}


def test_words_that_are_good_criteria_take_the_place_of_a_judge_of_rubrics() -> None:
    config = resolve("rubric_writer", {"reward": {"by": "words", "quality_words": ["ba", "de"], "quality_weight": 0}})
    assert [slot.role for slot in RECIPES["rubric_writer"].filled(config)] == ["base"]
    part = next(part for part in config.composition.parts if part.name == "quality")  # type: ignore[attr-defined]
    assert (part.words, part.shadow, part.asks_judge, part.judge_kinds) == (("ba", "de"), True, "", ())


def test_a_trial_by_words_fills_no_slot_for_a_judge() -> None:
    config = resolve("rubric_writer", {"reward": {"by": "words", "judge": "Grader v1"}})
    assert [slot.role for slot in RECIPES["rubric_writer"].filled(config)] == ["base"]
    assert all(not part.asks_judge for part in config.composition.parts)  # type: ignore[attr-defined]
    assert parts(by="words", judge="Reader v1", quality_judge="Reader v1")["quality"].asks_judge == "Reader v1"


@pytest.mark.parametrize(
    ("raw", "path"),
    [
        ({"reward": {"by": "likert"}}, "reward.judge"),
        ({"reward": {"by": "words"}, "data": {"min_items": 9, "max_items": 3}}, "data.max_items"),
        ({"reward": {"by": "words", "preference_weight": 0, "format_weight": 0}}, "reward.preference_weight"),
        ({"reward": {"by": "likert", "judge": "G v1", "quality_judge": "G v1"}}, "reward.quality_judge"),
        ({"reward": {"by": "words", "quality_judge": "R v1", "quality_words": ["ba"]}}, "reward.quality_words"),
        ({"reward": {"by": "prose"}}, "reward.by"),
        ({"reward": {"by": "words"}, "data": {"form": "prose"}}, "data.form"),
        ({"reward": {"by": "words", "quality_weight": -1}}, "reward.quality_weight"),
    ],
)
def test_what_cannot_work_is_said_at_its_field(raw: dict[str, Any], path: str) -> None:
    with pytest.raises(ConfigInvalid) as refused:
        resolve("rubric_writer", raw)
    assert [problem.path for problem in refused.value.problems] == [path]
