"""Texts of people as demonstrations of recipe `alternating`: which ones there are, their content, and the reasons for missing ones."""

import json
from typing import Any

import pytest

from trainer.config import resolve
from trainer.contracts import Criterion, Example, Message, Preference, Response, Rubric
from trainer.contracts.example import Reason
from trainer.judges.rubric_forms import read_rubric
from trainer.rewards.judgement_forms import read_judgement
from trainer.tasks.arm_demonstrations import ArmDemonstrations, Demonstrated, reasons_of

SOURCE = Criterion(id="s", text="The response names the source", points=5, kind="hard", importance="essential")
RUDE = Criterion(id="r", text="Is rude to the reader", points=-2, importance="pitfall")
REASONS = (
    Reason(text="It names its source in the first line.", response="a"),
    Reason(text="No source is named.", response="b"),
    Reason(text="Neither is rude."),
)
GRADES = {
    "verdicts": [
        {
            "response": response,
            "verdicts": [
                {"criterion_id": criterion, "met": met, "source": "human"}
                for criterion, met in (("s", response == "a"), ("r", False))
            ],
        }
        for response in "ab"
    ]
}


def example(**changes: Any) -> Example:
    given: dict[str, Any] = {
        "key": "one",
        "prompt": (Message(role="user", content="Where from?"),),
        "rubric": Rubric(criteria=(SOURCE, RUDE)),
        "responses": (Response(id="a", text="From the book."), Response(id="b", text="I know.")),
        "preferences": (Preference(a="a", b="b", strength=-2, rater="r", reasons=REASONS),),
    }
    return Example(**(given | changes))


def demonstrations_of(role: Any, judgement: str = "rubric_arm", form: str = "rubric_arm", **changes: Any) -> list[Any]:
    config: Any = resolve("alternating", {"data": {"judgement": judgement, "form": form}})
    return list(ArmDemonstrations(config).of(role, example(**changes)))


def test_the_writer_gets_peoples_rubric_as_the_answer_to_its_own_question() -> None:
    (found,) = demonstrations_of("writer")
    assert isinstance(found, Demonstrated) and "Where from?" in found.asked[-1].content
    read = read_rubric(found.text, "rubric_arm")
    assert read.ok and [item.text for item in read.items] == [
        "The response names the source",
        "The response does not do this: Is rude to the reader",
    ]


def test_the_judge_gets_peoples_reasons_criterion_by_criterion_and_their_choice() -> None:
    (found,) = demonstrations_of("judge")
    assert "names the source" in found.asked[0].content, "it is asked by people's rubric"
    shown_first = found.asked[0].content.index("From the book.") < found.asked[0].content.index("I know.")
    read = read_judgement(found.text, 2, "rubric_arm")
    assert read.ok and read.verdict == ("A" if shown_first else "B")
    sides = found.text.split("Response B\n")
    a, b = sides if shown_first else (sides[1], sides[0])
    assert "It names its source in the first line." in a and "No source is named." in b.split("Final")[0]
    assert all("Criterion 2: Neither is rude." in side for side in sides), "said of the comparison, so of both"


def test_json_says_who_meets_what_by_peoples_grades_in_the_sense_of_the_written_rubric() -> None:
    for form, rude in (("rubric_arm", True), ("touchstone", False)):
        (found,) = demonstrations_of("judge", "touchstone", form, meta=GRADES)
        said = json.loads(found.text)
        right = "a_meets" if said["verdict"] == "A" else "b_meets"
        wrong = "b_meets" if said["verdict"] == "A" else "a_meets"
        assert (said["criteria"][0][right], said["criteria"][0][wrong]) == (True, False)
        assert said["criteria"][1][right] is rude, "not to be rude is met, to be rude is not"
    assert demonstrations_of("judge", "touchstone") == [
        "form `touchstone` says of both answers which criteria they meet, and people have not graded all of them, or are split"
    ]


@pytest.mark.parametrize(
    ("role", "changes", "why"),
    [
        ("writer", {"rubric": None}, "people wrote no rubric"),
        ("judge", {"rubric": None}, "people wrote no rubric"),
        ("writer", {"rubric": Rubric(criteria=(SOURCE,))}, "fewer criteria than data.min_items"),
        ("judge", {"preferences": (Preference(a="a", b="b", strength=-2),)}, "no reasons were given"),
        (
            "judge",
            {"preferences": (Preference(a="a", b="b", strength=-2, reasons=REASONS[:2]),)},
            "a criterion of the rubric has no reason",
        ),
        (
            "judge",
            {
                "preferences": (
                    Preference(a="a", b="b", strength=-2, rater="r"),
                    Preference(a="a", b="b", strength=-1, rater="s"),
                    Preference(a="a", b="b", strength=2, rater="t", reasons=REASONS),
                )
            },
            "no reasons were given for the answer that was preferred",
        ),
    ],
)
def test_what_people_did_not_write_is_named(role: str, changes: Any, why: str) -> None:
    (found,) = demonstrations_of(role, **changes)
    assert isinstance(found, str) and why in found


def test_what_the_run_asks_nothing_about_has_no_demonstration_either() -> None:
    tie = (Preference(a="a", b="b", strength=0, reasons=REASONS),)
    assert demonstrations_of("judge", preferences=tie) == demonstrations_of("writer", preferences=tie) == []


def test_reasons_go_to_the_criterion_they_name_or_share_words_with() -> None:
    criteria = ["The response names the source", "The response is short"]
    named, alike, strange = Reason(text="Criterion 2: as asked"), Reason(text="a source is named"), Reason(text="hm")
    assert reasons_of([named, alike, strange, Reason(text="Criterion 7: x")], criteria) == [[alike], [named]]
    assert reasons_of([strange], criteria[:1]) == [[strange]], "of one criterion every reason speaks"
