"""The task of writing rubrics: the question, the examples that are left out, and the measures of rubrics by hand."""

import json
from typing import Any

import pytest

from trainer.config import resolve
from trainer.contracts import Criterion, Example, Message, PartResult, Preference, Response, Rubric
from trainer.judges.calls import expand, read
from trainer.judges.inputs import JudgeInput
from trainer.judges.spec import resolve as judge_spec
from trainer.rewards.written_rubrics import FACTS, ComparedPair
from trainer.tasks import TASKS, AnsweredQuestion, Posed


def config(**data: Any) -> Any:
    return resolve("rubric_writer", {"reward": {"by": "words", "matcher": "words"}, "data": data})


def task(**data: Any) -> Any:
    return TASKS["rubric_writer"](config(**data))


def example(**changed: Any) -> Example:
    raw = {
        "key": "row",
        "prompt": (Message(role="user", content="Is it safe?"),),
        "responses": (Response(id="a", text="Bell says so."), Response(id="b", text="Perhaps.")),
        "preferences": (Preference(a="a", b="b", strength=2, rater="r"),),
        "rubric": Rubric(criteria=(Criterion(id="c", text="names the source", points=1),)),
        "reference": "Bell says so.",
        "split": "heldout",
        "domain": "safety",
    }
    return Example(**raw | changed)


def pair_of(posed: Posed) -> ComparedPair:
    return ComparedPair.model_validate(posed.facts[FACTS])


def test_the_question_is_that_of_a_generator_and_shows_no_answer() -> None:
    (posed,) = task(form="rubric_arm", min_items=2, max_items=4).pose(example(), held_out=True)
    spec = judge_spec({"kind": "rubric_generator", "form": "rubric_arm", "min_items": 2, "max_items": 4})
    (call,) = expand(spec, "v", JudgeInput(example="row", conversation=example().prompt))
    assert [message.model_dump() for message in posed.example.prompt] == list(call.request.messages)
    shown = posed.example.canonical()
    assert "Bell" not in shown and "Perhaps" not in shown and "names the source" not in shown
    assert (posed.example.key, posed.example.split, posed.example.domain) == ("row · a/b", "heldout", "safety")
    pair = pair_of(posed)
    assert (pair.chosen.id, pair.rejected.id, pair.human[0].text) == ("b", "a", "names the source")
    assert pair.conversation == example().prompt and pair.example == "row" and pair.reference == ""


def test_a_reference_is_shown_where_that_was_chosen() -> None:
    (posed,) = task(reference=True).pose(example(), held_out=False)
    assert "<reference>\nBell says so." in posed.example.prompt[-1].content
    assert pair_of(posed).reference == "Bell says so."


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"preferences": (Preference(a="a", b="b", strength=0),)}, "as many raters"),
        ({"preferences": (Preference(a="a", b="b", verdict="cannot_assess"),)}, "nobody could decide"),
        ({"responses": (Response(id="a", text="x"), Response(id="b", text="x"))}, "answers are equal"),
        ({"prompt": (Message(role="user", content=" "),)}, "pairs left out: their prompt has no text"),
    ],
)
def test_what_teaches_nothing_is_left_out_with_the_reason(changed: dict[str, Any], why: str) -> None:
    (said,) = task().pose(example(**changed), held_out=False)
    assert isinstance(said, str) and why in said


def test_an_example_without_pairs_asks_nothing_and_one_with_several_asks_for_each() -> None:
    assert list(task().pose(example(preferences=()), held_out=False)) == []
    three = tuple(Response(id=name, text=name) for name in "abc")
    pairs = (Preference(a="a", b="b", strength=-1), Preference(a="b", b="c", strength=-1))
    posed = list(task().pose(example(responses=three, preferences=pairs), held_out=False))
    assert [each.example.key for each in posed] == ["row · a/b", "row · b/c"]
    assert posed[0].example.prompt == posed[1].example.prompt


def test_the_place_that_a_judge_sees_first_is_drawn_for_each_pair() -> None:
    places = [pair_of(next(iter(task().pose(example(key=f"row-{n}"), held_out=False)))).first for n in range(40)]
    assert 10 < places.count("chosen") < 30
    again = pair_of(next(iter(task().pose(example(key="row-0"), held_out=True)))).first
    assert again == places[0], "the same in training and held out, and whenever it is asked"


def answered(
    key: str,
    preferred: float | None,
    scores: tuple[float | None, float | None] = (None, None),
    items: int = 2,
    problems: tuple[str, ...] = (),
    human: int = 0,
    matches: tuple[tuple[int, int], ...] = (),
    example: str = "",
    **more: float,
) -> AnsweredQuestion:
    form = {"problems": list(problems), "notes": [], "criteria": items, "readable": items > 0}
    both = {"written": [{}] * items, "human": [{}] * human, "matches": [list(match) for match in matches]}
    parts = [
        PartResult(name="preference", kind="rubric_preference", value=preferred, shown={"scores": list(scores)}),
        PartResult(name="format", kind="rubric_form", value=-1.0 if problems else 0.0, shown=form),
        PartResult(name="recall", kind="rubric_recall", value=None, shown=both),
        *(PartResult(name=name, kind="rubric_quality", value=value) for name, value in more.items()),
    ]
    facts = {FACTS: {"example": example or key}}
    return AnsweredQuestion(key, facts, "", {part.name: part for part in parts})


def test_a_step_is_measured_by_hand() -> None:
    found = task().measured(
        [
            answered("p", 1.0, (0.75, 0.25), items=3, quality=4.0),
            answered("p", -1.0, (0.5, 0.5), items=1, problems=("odd",), quality=1.0),
            answered("q", -1.0, items=0, problems=("no JSON",), quality=0.0),
            answered("q", None, (0.5, None), items=2),
        ]
    )
    assert found == {
        "writing/preference_accuracy": pytest.approx(1 / 3),  # the example without a score is left out
        "writing/format_rate": 0.5,
        "writing/unreadable": 0.25,
        "writing/criteria": 2.0,
        "writing/quality": pytest.approx(5 / 3),
        "writing/margin": 0.25,
    }


def test_an_evaluation_is_measured_by_hand() -> None:
    found = task().held_out(
        [
            answered("p", 1.0, (1.0, 0.0), items=2, human=2, matches=((0, 0), (1, 0))),
            answered("q", 1.0, (0.75, 0.25), items=2, human=1, matches=((0, 0),)),
            answered("r", -1.0, items=0, problems=("no JSON",), human=3),
            answered("s", None, (None, 0.5), items=1),
        ]
    )
    assert found["eval/preference_accuracy"] == pytest.approx(2 / 3) and found["eval/pairs"] == 3
    assert found["eval/preference_accuracy_low"] == pytest.approx(0.2077, abs=1e-4)  # Wilson, 2 of 3
    assert found["eval/preference_accuracy_high"] == pytest.approx(0.9385, abs=1e-4)
    # differences 1 and 0.5: mean 0.75, standard deviation sqrt(0.125)
    assert found["eval/cohens_d"] == pytest.approx(0.75 / 0.125**0.5) and found["eval/scored_pairs"] == 2
    assert found["eval/human_rubrics"] == 3
    assert found["eval/rubric_recall"] == pytest.approx((0.5 + 1.0 + 0.0) / 3)
    assert found["eval/rubric_hallucination"] == pytest.approx((0.0 + 0.5) / 2)  # undefined for a rubric without items
    assert found["eval/rubric_f1"] == pytest.approx((2 / 3 + 2 / 3 + 0.0) / 3)
    assert "eval/rubric_precision" not in found and found["eval/margin"] == 0.75


def test_what_is_not_defined_is_left_out() -> None:
    found = task().held_out([answered("p", None), answered("q", None)])
    assert {"eval/preference_accuracy", "eval/cohens_d", "eval/rubric_f1", "eval/quality"} & found.keys() == set()
    assert found["eval/pairs"] == 0.0 and found["eval/human_rubrics"] == 0.0
    assert task().measured([]) == {}


def test_samples_of_one_pair_are_one_case() -> None:
    both = [answered("p", 1.0, (1.0, 0.0)), answered("p", -1.0, (0.0, 0.5)), answered("q", 1.0, (1.0, 0.5))]
    found = task().held_out(both)
    assert found["eval/pairs"] == 2 and found["eval/preference_accuracy"] == 0.75
    assert found["eval/cohens_d"] == pytest.approx(0.375 / (2 * 0.125**2) ** 0.5)


def test_pairs_of_one_example_are_no_independent_cases() -> None:
    def found(examples: int) -> dict[str, float]:
        """40 pairs, of which every second one is ranked rightly. Pairs of one example get the same rank. All have the rubric that people
        wrote.
        """
        return task().held_out(
            [
                answered(
                    f"pair {n}",
                    1.0 if (right := (n % examples) % 2) else -1.0,
                    (0.9 + n / 100, 0.5) if right else (0.5, 0.6),
                    human=2,
                    matches=((0, 0),),
                    example=f"row {n % examples}",
                )
                for n in range(40)
            ]
        )

    alone, ten_each = found(40), found(4)
    for key in ("eval/preference_accuracy", "eval/cohens_d"):
        assert alone[key] == ten_each[key]
        width, wider = (each[f"{key}_high"] - each[f"{key}_low"] for each in (alone, ten_each))
        assert wider > 1.5 * width, key
    assert (alone["eval/human_rubrics"], ten_each["eval/human_rubrics"]) == (40, 4)
    assert alone["eval/rubric_recall"] == ten_each["eval/rubric_recall"] == 0.5


def test_whoever_reads_for_a_judge_reads_what_the_writer_was_trained_on() -> None:
    text = json.dumps([{"title": "Source", "description": "Key: names the source", "weight": 5}])
    parsed = read(judge_spec({"kind": "rubric_generator", "form": "mams"}), {}, text).parsed
    assert parsed is not None and parsed["items"][0]["points"] == 5.0
