"""The tasks of recipe `alternating`: the question about a pair by a written rubric, the rewards of answers, and the measures by hand."""

import asyncio
import json
from typing import Any

import pytest

from trainer.config import resolve
from trainer.config.rewards.arm import JUSTIFIED, FrozenChoicePart, RubricJudgementFormPart, RubricVerdictPart
from trainer.contracts import Criterion, Example, Message, PartResult, Preference, Response
from trainer.judges.calls import expand, read
from trainer.judges.inputs import JudgeInput
from trainer.judges.kinds.pairwise import PairwiseRubricSpec
from trainer.judges.spec import resolve as judge_spec
from trainer.rewards import Item, Services
from trainer.rewards.kinds import KINDS
from trainer.rewards.written_rubrics import FACTS, ComparedPair
from trainer.tasks import AnsweredQuestion, Posed
from trainer.tasks.arm import ArmWriting, JudgingByRubric, KeptRubric

CRITERIA = (
    Criterion(id="g1", text="names the source", points=5, kind="hard"),
    Criterion(id="g2", text="is short", points=3, kind="principle"),
)
RUBRIC = "1. The response names the source. [Hard Rule]"


def example() -> Example:
    return Example(
        key="row",
        prompt=(Message(role="user", content="Who was it?"),),
        responses=(Response(id="a", text="It was Bell."), Response(id="b", text="Perhaps.")),
        preferences=(Preference(a="a", b="b", strength=-2, rater="r"),),
    )


def config(**changes: Any) -> Any:
    return resolve("alternating", {"matcher": "words", **changes})


def posed(kept: KeptRubric, turn: int = 0, **changes: Any) -> list[Posed | str]:
    return list(JudgingByRubric(config(**changes), {"row · a/b": kept}, turn).pose(example(), False))


def test_the_question_is_that_of_a_judge_who_must_choose_and_justifies_the_whole() -> None:
    for turn in range(8):
        (asked,) = posed(KeptRubric("", False, CRITERIA), turn)
        assert isinstance(asked, Posed)
        order = "given" if asked.facts["label"] == "A" else "swapped"
        texts = {response.id: response.text for response in example().responses}
        given = JudgeInput("row", example().prompt, texts, CRITERIA)
        trained = config().asked_as("judge")
        (call,) = expand(judge_spec({**trained, "order": order}), "", given)
        assert [message.model_dump() for message in asked.example.prompt] == list(call.request.messages)
    usual = PairwiseRubricSpec.model_fields["prompt"].default
    assert JUSTIFIED.startswith(f"{usual}\n\n"), "the kind's own question, and one paragraph more"


def test_outputs_are_judges_as_they_were_trained() -> None:
    writer: Any = judge_spec(config().asked_as("rubric_writer"))
    assert (writer.kind, writer.form, writer.sampling.max_tokens) == ("rubric_generator", "rubric_arm", 512)
    judge: Any = judge_spec(config().asked_as("judge"))
    assert (judge.kind, judge.scale, judge.order, judge.sampling.max_tokens) == (
        "pairwise_rubric",
        "forced",
        "both",
        1024,
    )
    assert config(data={"judgement": "rubric_arm"}).asked_as("judge") is None, "no kind asks in lines"


def test_the_order_is_drawn_for_each_turn_and_the_label_follows_the_preferred_answer() -> None:
    labels = set()
    for turn in range(12):
        (asked,) = posed(KeptRubric("", False, CRITERIA), turn, data={"judgement": "rubric_arm"})
        assert isinstance(asked, Posed)
        text = asked.example.prompt[0].content
        shown = text.split("<response_a>\n")[1].split("\n</response_a>")[0]
        assert asked.facts["label"] == ("A" if shown == "It was Bell." else "B")
        labels.add(asked.facts["label"])
    assert labels == {"A", "B"}


def test_a_pair_whose_rubric_cannot_be_read_is_left_out_with_the_reason() -> None:
    assert posed(KeptRubric("Sure!", False, ())) == ["pairs left out: the rubric that the writer wrote cannot be read"]


def answer(winner: str, criteria: int = 2, **changes: Any) -> str:
    met = [
        {"number": n, "explanation": f"point {n}", "a_meets": True, "b_meets": False} for n in range(1, criteria + 1)
    ]
    keeper = {**met[0], "explanation": "the hard rule"}
    return json.dumps({"gatekeeper": keeper, "criteria": met, "justification": "so", "verdict": winner} | changes)


def worth(part: Any, text: str, **facts: Any) -> tuple[float | None, Any]:
    item = Item("train/1/0/0", example(), None, text, 5, 100, facts=facts)
    (found,) = asyncio.run(KINDS[part.kind](part, [item], Services()))  # type: ignore[arg-type]
    return found.value, found.shown


@pytest.mark.parametrize(
    ("text", "right", "formed"),
    [
        (answer("A"), 1.0, 1.0),
        (answer("B"), 0.0, 1.0),
        (answer("tie"), 0.0, 0.0),
        (answer("A", criteria=1), 1.0, 0.0),
        (answer("A", justification=" "), 1.0, 0.0),
        (f"Let me see. {answer('A')}", 1.0, 0.0),
        ("Response A, I think.", 0.0, 0.0),
        ("", 0.0, 0.0),
    ],
)
def test_a_judgement_earns_one_for_the_choice_and_one_for_the_form(text: str, right: float, formed: float) -> None:
    facts = {"label": "A", "criteria": 2}
    assert worth(RubricVerdictPart(), text, **facts)[0] == right
    assert worth(RubricJudgementFormPart(), text, **facts)[0] == formed


def test_the_trained_judge_is_read_as_a_judge_of_its_kind() -> None:
    spec = judge_spec({"kind": "pairwise_rubric", "scale": "forced"})
    found = read(spec, {"criteria": ["g1", "g2"]}, answer("B"))
    assert found.parsed is not None and found.parsed["verdict"] == "B" and not found.problem


def pair() -> ComparedPair:
    better, worse = example().responses
    return ComparedPair(example="row", conversation=example().prompt, chosen=better, rejected=worse)


def arm_answer(verdict: str | None, label: str = "A") -> dict[str, Any]:
    return {"verdict": verdict, "label": label, "problem": "" if verdict else "it said nothing", "text": "…"}


@pytest.mark.parametrize(
    ("judged", "value"),
    [
        ([arm_answer("A")], 1.0),
        ([arm_answer("B")], 0.0),
        ([arm_answer(None)], None),
        ([arm_answer("A"), arm_answer("A", "B")], 0.5),
        ([arm_answer("A"), arm_answer("B", "B")], 1.0),
    ],
)
def test_a_rubric_earns_what_the_frozen_judge_chooses(judged: list[Any], value: float | None) -> None:
    found, shown = worth(FrozenChoicePart(), RUBRIC, **pair().facts, judged=judged)
    assert found == value and len(shown["answers"]) == len(judged)


def test_a_rubric_that_cannot_be_read_is_the_writers_failure() -> None:
    assert worth(FrozenChoicePart(), "Sure!", **pair().facts, judged=[])[0] == 0.0


def written(key: str, *parsed: dict[str, str]) -> AnsweredQuestion:
    form = PartResult(
        name="format", kind="rubric_form", value=0.0, shown={"problems": [], "criteria": 2, "readable": bool(parsed)}
    )
    answers = {"answers": [{"parsed": each} for each in parsed]}
    choice = PartResult(name="choice", kind="frozen_choice", value=None, shown=answers)
    return AnsweredQuestion(key, {FACTS: {"example": key}}, "", {"choice": choice, "format": form})


def test_held_out_measures_by_hand() -> None:
    right, other = {"verdict": "A", "people": "A"}, {"verdict": "A", "people": "B"}
    answers = [
        written("1", right, {"verdict": "B", "people": "B"}),
        written("2", right, other),
        written("3", {"people": "A"}, {"verdict": "B", "people": "B"}),
        written("4"),
    ]
    found = ArmWriting(config()).held_out(answers)
    # 1, a half, a half (an undecided pair is not right), 0 (no rubric)
    assert found["eval/accuracy"] == pytest.approx(0.5) and found["eval/pairs"] == 4
    assert found["eval/accuracy_low"] < 0.5 < found["eval/accuracy_high"]
    assert found["eval/ordered_pairs"] == 2 and found["eval/consistent"] == pytest.approx(0.5)
    assert found["eval/undecided"] == pytest.approx(1 / 6) and found["eval/unreadable"] == pytest.approx(0.25)


def test_measures_of_a_step_by_hand() -> None:
    def judged(verdict: int | None, label: int, formed: float) -> AnsweredQuestion:
        right = float(verdict == label)
        outcome = PartResult(
            name="outcome", kind="rubric_verdict", value=right, shown={"verdict": verdict, "label": label}
        )
        form = PartResult(name="form", kind="rubric_judgement_form", value=formed)
        return AnsweredQuestion("k", {}, "", {"outcome": outcome, "form": form})

    task = JudgingByRubric(config(), {}, 0)
    found = task.measured([judged(-1, -1, 1.0), judged(1, -1, 1.0), judged(None, 1, 0.0), judged(1, 1, 0.0)])
    assert found["judging/accuracy"] == 0.5 and found["judging/format_rate"] == 0.5
    assert found["judging/undecided"] == 0.25 and found["judging/first"] == pytest.approx(1 / 3)
