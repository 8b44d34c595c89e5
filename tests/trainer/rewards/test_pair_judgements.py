"""Judgements of two answers: the question, the reading of the answer, and the parts of the reward."""

import asyncio
import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainer.config.recipes.judge import JudgeConfig
from trainer.config.rewards.parts import Composition, parsed
from trainer.contracts import Example, Message
from trainer.judges.calls import expand
from trainer.judges.inputs import JudgeInput
from trainer.judges.kinds.pairwise import PairwiseSpec
from trainer.rewards import Composed, Item, Services, scoring
from trainer.rewards.pair_judgements import VERDICTS, question, read_pair_judgement
from trainer.rewards.reason_matching import WordsMatcher, bordered

PROMPT = (Message(role="user", content="How long do eggs boil?"),)
HUMAN = ["Names the minutes.", "Says when to start counting."]


def item(response: str, reasons: list[str] | None = None, label: int = -1) -> Item:
    facts = {
        "label": label,
        "reasons": HUMAN if reasons is None else reasons,
        "example": "row",
        "prompt": [{"role": "user", "content": "How long do eggs boil?"}],
        "answers": ["Nine minutes.", "Quite long."],
    }
    return Item("train/1/0/0", Example(key="row", prompt=PROMPT), None, response, 10, 60, facts=facts)


def composed(config: dict[str, Any], *items: Item) -> list[Composed]:
    async def never(reason: str) -> None:
        raise AssertionError(reason)

    wanted: Composition = JudgeConfig.model_validate(
        {"data": {"form": "lines"}, "reward": {"matcher": "words", **config}}
    ).composition
    services = Services(matchers={"words": WordsMatcher()})
    expression = parsed(wanted.parts, wanted.expression)
    return asyncio.run(scoring.score(wanted.parts, items, services, never, None, expression))


RIGHT = "- Names the minutes.\n- Is polite.\nVerdict: A better"
WRONG = RIGHT.replace("A better", "B much better")


def test_the_question_in_json_is_that_of_a_pairwise_judge_with_five_verdicts():
    asked = question(PROMPT, "Nine minutes.", "Long.", "json")
    call = expand(
        PairwiseSpec(scale="five", order="given"), "", JudgeInput("", PROMPT, {"a": "Nine minutes.", "b": "Long."})
    )[0]
    assert [message.model_dump() for message in asked] == [dict(each) for each in call.request.messages]


def test_the_short_question_shows_the_answers_in_the_given_order():
    (message,) = question(PROMPT, "Nine minutes.", "Long.", "lines")
    assert message.content.index("Nine minutes.") < message.content.index("Long.")
    assert all(words in message.content for words in VERDICTS)


@pytest.mark.parametrize(
    ("text", "reasons", "strength", "well_formed"),
    [
        ("- one\n- two\nVerdict: A much better", ("one", "two"), -2, True),
        ("1. one\n2) two\n**Verdict:** tie.", ("one", "two"), 0, True),
        ("<think>- no\nVerdict: tie</think>- one\nVerdict: B better", ("one",), 1, True),
        ("Well.\n- one\nVerdict: B better", ("one",), 1, False),
        ("Verdict: B better\n- one", ("one",), 1, False),
        ("Verdict: B better", (), 1, False),
        ("- one\nVerdict: Response 2", ("one",), None, False),
        ("- one\nVerdict: A better\nVerdict: B better", ("one",), None, False),
        ("- one", ("one",), None, False),
        ("", (), None, False),
    ],
)
def test_lines_are_read(text: str, reasons: tuple[str, ...], strength: int | None, well_formed: bool):
    found = read_pair_judgement(text, "lines")
    assert (found.reasons, found.strength, found.well_formed) == (reasons, strength, well_formed)
    assert bool(found.problem) == (strength is None)


def test_json_is_read_as_a_judge_is_read():
    whole = json.dumps({"reasons": ["one", " "], "verdict": "A better"})
    assert read_pair_judgement(whole, "json") == read_pair_judgement(whole, "json", cut=True)
    assert read_pair_judgement(whole, "json").reasons == ("one",) and read_pair_judgement(whole, "json").well_formed
    around = read_pair_judgement(f"Sure: {whole}", "json")
    assert around.strength == -1 and not around.well_formed
    turned = read_pair_judgement(json.dumps({"verdict": "tie", "reasons": ["one"]}), "json")
    assert turned.strength == 0 and not turned.well_formed, "reasons that follow the verdict did not lead to it"
    named = read_pair_judgement(json.dumps({"reasons": ["one"], "verdict": "Response B"}), "json")
    assert named.strength is None and "verdict" in named.problem
    assert read_pair_judgement(whole[:-3], "json", cut=True).strength is None


@given(st.text(max_size=200), st.booleans())
def test_no_text_raises(text: str, cut: bool):
    for form in ("json", "lines"):
        found = read_pair_judgement(text, form, cut)
        assert found.strength in (None, *VERDICTS.values()) and (found.strength is not None or not found.well_formed)


def test_the_border_of_a_matcher_is_one_half():
    scores = bordered(np.array([-0.5, 0.0, 0.2, 0.4, 0.7, 1.0, 1.1]), 0.4)
    assert scores.tolist() == pytest.approx([0.0, 0.0, 0.25, 0.5, 0.75, 1.0, 1.0])
    with pytest.raises(ValueError, match="no room"):
        bordered(np.zeros((1, 1)), 1.0)


def test_the_arms_pay_for_verdict_reasons_or_both():
    # one of two human reasons, found first: AP = (1/1) / 2
    for arm, right, wrong in (("outcome", 1.0, 0.0), ("rationale", 0.5, 0.5), ("hybrid", 0.5, 0.0)):
        found = composed({"arm": arm}, item(RIGHT), item(WRONG))
        assert [each.total for each in found] == [right, wrong], arm
        assert [each.components["form"] for each in found] == [1.0, 1.0]


def test_a_reason_that_comes_late_is_worth_less():
    late = "- Is polite.\n- Names the minutes.\nVerdict: A better"
    assert [each.total for each in composed({"arm": "rationale"}, item(late))] == [0.25]


def test_the_form_is_paid_besides():
    loose = composed({"arm": "hybrid", "form": 0.5}, item(RIGHT), item(f"Well.\n{RIGHT}"))
    assert [each.total for each in loose] == [1.0, 0.5]


def test_what_cannot_be_read_is_wrong_and_not_left_out():
    (found,) = composed({"arm": "outcome"}, item("- Names the minutes.\nVerdict: the first"))
    assert found.total == 0.0 and "none of the five" in found.parts["outcome"].why
    (silent,) = composed({"arm": "hybrid"}, item("Verdict: A better"))
    assert silent.total == 0.0 and "no reasons" in silent.parts["rationale"].why


def test_without_human_reasons_there_is_nothing_to_measure_on():
    excluded, outcome = composed({"arm": "hybrid"}, item(RIGHT, [])), composed({"arm": "outcome"}, item(RIGHT, []))
    assert excluded[0].total is None and "gave no reasons" in excluded[0].excluded
    assert outcome[0].total == 1.0 and outcome[0].parts["rationale"].value is None


def test_what_was_matched_can_be_seen():
    (found,) = composed({"arm": "hybrid"}, item(RIGHT))
    shown = found.parts["rationale"].shown
    assert shown["human"] == HUMAN and shown["reasons"] == ["Names the minutes.", "Is polite."]
    assert np.shape(shown["scores"]) == (2, 2) and shown["human_of"][0] == 0 and shown["hits"] == [True, False]
    assert 0.5 <= shown["rc"] <= 1.0
    assert found.parts["outcome"].shown["verdict"] == -1
