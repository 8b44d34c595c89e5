"""The task of the claim `judge_policy`: the data for the judges, the data for the policies, and the data that neither sees."""

import random
import re
from itertools import islice
from pathlib import Path

import pytest

from tests import fork_server
from trainer.claims import answers, command, faults, runs
from trainer.inference.chat import encode_prompt
from trainer.inference.models import load_tokenizer
from trainer.judges.reason_lines import read_lines
from trainer.metrics.claims import PLANS
from trainer.metrics.claims.downstream import TWO_FAULTS
from trainer.rewards import access
from trainer.rubrics import score_rubric

from .test_command import in_this_process  # noqa: F401 - a fixture

PLAN = PLANS["judge_policy"]


def test_an_example_is_a_pair_of_the_faults_with_a_reference_and_what_answers_are_worth() -> None:
    rows = answers.examples()
    for row, pair in zip(rows, faults.examples(), strict=True):
        assert row.model_copy(update={"rubric": None, "reference": None}) == pair
        assert row.rubric == answers.rubric() and row.reference
    assert rows == answers.examples() != answers.examples(seed=6)


@pytest.mark.parametrize(
    ("text", "worth"),
    [
        ("dull late", 1),
        ("um dull um late um um", 1),
        ("dull cruel", 0),
        ("cruel false", 0),
        ("um um", 0),
        ("dull", 0),
        ("", 0),
    ],
)
def test_an_answer_is_worth_something_with_two_light_faults_at_any_length(text: str, worth: float) -> None:
    assert score_rubric(answers.rubric(), text).score == worth


def test_what_people_prefer_is_worth_more() -> None:
    worth = [[score_rubric(answers.rubric(), side.text).score for side in row.responses] for row in answers.examples()]
    assert all(each == [1.0, 0.0] for each in worth)


def test_what_the_model_is_taught_to_answer_is_worth_a_third_and_has_the_form() -> None:
    chooser = random.Random(0)  # noqa: S311 - a task, not a secret
    said = [answers.answer(chooser) for _ in range(4000)]
    assert abs(sum(score_rubric(answers.rubric(), text).score or 0 for text in said) / len(said) - 1 / 3) < 0.03
    assert {text.split().count(faults.FILLER) for text in said} == set(range(answers.MOST_FILLER + 1))
    assert answers.two_of(faults.GRAVE + faults.LIGHT) == TWO_FAULTS
    assert all(re.fullmatch(TWO_FAULTS, text) for text in said) and not re.fullmatch(TWO_FAULTS, "um um um")


def test_later_three_lessons_in_ten_answer_and_the_others_judge() -> None:
    taught = answers.lessons(random.Random(0))  # noqa: S311 - as above
    assert all(messages != faults.PROMPT for messages, _ in islice(taught, answers.JUDGING))
    lessons = list(islice(taught, 2000))
    judged = [read_lines(text).verdict is not None for messages, text in lessons if messages != faults.PROMPT]
    assert all(judged) and abs(1 - len(judged) / len(lessons) - answers.ANSWERING) < 0.03


@pytest.fixture
def model(tmp_path: Path) -> Path:
    answers.make_model(tmp_path / "out" / "model", steps=1)
    return tmp_path / "out" / "model"


def test_answers_and_questions_are_short(model: Path) -> None:
    tokenizer = load_tokenizer(model)
    longest = f"dull late{f' {faults.FILLER}' * 6}"
    assert len(encode_prompt(tokenizer, faults.PROMPT)) < 10 and len(tokenizer(longest)["input_ids"]) < 16


def test_each_policy_asks_its_own_judge() -> None:
    found = {arm.name: (arm.uses, arm.config["rewards"][0]["judge"]) for arm in PLAN.arms if arm.uses}
    assert found == {
        f"{name}_policy": ({"rewards.0.judge": f"{name}_judge"}, f"{name} judge") for name in ("outcome", "hybrid")
    }
    assert [PLAN.arm(f"{name}_judge").config["reward"]["arm"] for name in ("outcome", "hybrid")] == [
        "outcome",
        "hybrid",
    ]


@pytest.mark.slow
def test_the_claim_trains_judges_and_policies_that_ask_them(
    model: Path,
    in_this_process: list[runs.ArmJob],  # noqa: F811
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(faults, "TRAINED", 240)  # every run reads all of them, and a step asks for a few
    monkeypatch.setattr(access, "LOCAL_JUDGE", (*fork_server.command(), "judge-local"))
    out = model.parent
    assert command.main(["judge_policy", "--seeds", "0", "--steps", "1", "--jobs", "1", "--out", str(out)]) == 0
    text = (out / "report.md").read_text()
    assert "4 missing" not in text and "| the policy that the second judge rewards | 1 |" in text
