"""The reward of a written rubric: its effect on a pair, its quality, its form. Missing values are not punished."""

import asyncio
import json
import re
from typing import Any

import numpy as np
import pytest

from trainer.config.rewards.writer import (
    RubricChoicePart,
    RubricFormPart,
    RubricPreferencePart,
    RubricQualityPart,
    RubricRecallPart,
)
from trainer.contracts import Criterion, Example, Message, Response
from trainer.rewards import Composed, Item, Services
from trainer.rewards.kinds.writing import matched, recall
from trainer.rewards.mams import mams_reward
from trainer.rewards.reason_matching import WordsMatcher
from trainer.rewards.written_rubrics import ComparedPair, words_score

from .judged import score

QUESTION = (Message(role="user", content="Is it safe?"),)
HUMAN = (Criterion(id="c1", text="names the source", points=5), Criterion(id="c2", text="counts words", points=1))
GOOD = [{"title": "Source", "description": "Key: names the source", "weight": 5}]
FAULTY = [*GOOD, {"title": "Unsure", "description": "Error: sounds unsure", "weight": -1}]
_RESPONSE = re.compile(r"<response>\n(.*?)\n</response>", re.DOTALL)
_ITEM = re.compile(r"^\d+\. (.*)$", re.MULTILINE)


def pair(**changed: Any) -> ComparedPair:
    sides = {"chosen": Response(id="a", text="The source is Bell."), "rejected": Response(id="b", text="I am unsure.")}
    return ComparedPair(**{"example": "row", "conversation": QUESTION, "human": HUMAN} | sides | changed)


def item(text: Any, index: int = 0, cut: bool = False, **changed: Any) -> Item:
    asked = Example(key="row#0", prompt=(Message(role="user", content="Write a rubric."),))
    said = text if isinstance(text, str) else json.dumps(text)
    return Item(f"train/1/0/{index}", asked, None, said, 60, 60, cut=cut, facts=pair(**changed).facts)


def part(name: str, composed: Composed) -> Any:
    return composed.parts[name]


def rater(body: dict[str, Any]) -> str:
    """Rates an item 10 if its last word is in the answer, otherwise 1."""
    asked = body["messages"][-1]["content"]
    answer = _RESPONSE.findall(asked)[0]
    items = _ITEM.findall(asked.split("<criteria>")[1])
    rated = [
        {"number": n, "explanation": "", "rating": 10 if item.split()[-1] in answer else 1}
        for n, item in enumerate(items, 1)
    ]
    return json.dumps({"ratings": rated})


def chooser(body: dict[str, Any]) -> str:
    """Compares by the first criterion: an answer with its last word wins."""
    asked = body["messages"][-1]["content"]
    first, second = (re.search(rf"Response {side}:\n<response>\n(.*?)\n</response>", asked)[1] for side in "AB")
    word = _ITEM.findall(asked.split("<rubric>")[1])[0].split()[-1]
    wins = {(True, False): "A", (False, True): "B"}.get((word in first, word in second), "tie")
    kept = {"explanation": "", "a_meets": word in first, "b_meets": word in second}
    return json.dumps({"gatekeeper": {"number": 1, **kept}, "criteria": [{"number": 1, **kept}], "verdict": wins})


LIKERT = RubricPreferencePart(judge="j")
CHOICE = RubricChoicePart(judge="j")
QUALITY = RubricQualityPart(judge="j")


def test_a_rubric_that_ranks_as_people_do_has_1_and_another_minus_1() -> None:
    turned = [{"title": "Unsure", "description": "Key: is unsure", "weight": 5}]
    blind = [{"title": "Bird", "description": "Key: names a bird", "weight": 5}]
    items = [item(GOOD), item(turned, 1), item(blind, 2), item(FAULTY, 3)]
    found, server = score([LIKERT], items, serve=rater, kind="likert")
    assert [part("preference", each).value for each in found] == [1.0, -1.0, -1.0, 1.0]
    assert part("preference", found[0]).shown["scores"] == [1.0, 0.0]
    assert part("preference", found[2]).why == "the preferred answer scores 0, level with the other's 0"
    # (5 x 1 - 1 x 0) / 4 = 1.25: a likert score by points, in which faults count by their amount
    assert part("preference", found[3]).shown["scores"] == [1.25, -0.25]
    assert part("preference", found[3]).shown["grades"] == [{"g1": 1.0, "g2": 0.0}, {"g1": 0.0, "g2": 1.0}]
    assert len(server.bodies) == 8 and part("preference", found[0]).usage.calls == 2


def test_whoever_scores_an_answer_does_not_see_the_other_nor_which_was_preferred() -> None:
    _, server = score([LIKERT], [item(GOOD)], serve=rater, kind="likert")
    asked = [json.dumps(body) for body in server.bodies]
    assert sum("Bell" in each for each in asked) == 1 and not any("Bell" in each and "unsure" in each for each in asked)
    assert not any(word in each for each in asked for word in ("chosen", "rejected", "preferred"))


@pytest.mark.parametrize("text", ["", "I would rather not.", "[]", '[{"title": "x"}]', json.dumps(FAULTY[1:])])
def test_a_rubric_that_cannot_be_read_is_the_writers_failure_and_asks_nobody(text: str) -> None:
    parts = [LIKERT, RubricFormPart()]
    (found,), server = score(parts, [item(text)], serve=rater, kind="likert")
    assert [part(name, found).value for name in ("preference", "format")] == [-1.0, -1.0]
    assert not server.bodies and part("preference", found).why
    (rated,), _ = score([QUALITY], [item(text)], serve=rater, kind="rubric_quality")
    (chosen,), _ = score([CHOICE], [item(text)], serve=chooser, kind="pairwise_rubric")
    assert part("quality", rated).value == 0.0 and part("choice", chosen).value == 0.0
    assert sum(part(name, found).value for name in ("preference", "format")) == mams_reward(None, None, None, False)


@pytest.mark.parametrize("part_of", [LIKERT, QUALITY, CHOICE], ids=lambda each: each.kind)
def test_a_judge_that_cannot_be_read_leaves_the_rubric_out(part_of: Any) -> None:
    kind = {"preference": "likert", "quality": "rubric_quality", "choice": "pairwise_rubric"}[part_of.name]
    (found,), _ = score([part_of], [item(GOOD)], serve=lambda body: "hm", kind=kind)
    assert found.total is None and part(part_of.name, found).value is None
    assert "JSON" in found.excluded


def test_one_rating_that_is_missing_leaves_the_rubric_out() -> None:
    def one(body: dict[str, Any]) -> str:
        return json.dumps({"ratings": json.loads(rater(body))["ratings"][:1]})

    (found,), _ = score([LIKERT], [item(FAULTY)], serve=one, kind="likert")
    assert found.total is None and "no score of the preferred answer" in found.excluded


def test_criteria_one_by_one_score_by_points_met() -> None:
    by = RubricPreferencePart(judge="j", by="criterion")
    (found,), server = score([by], [item(FAULTY)])
    assert part("preference", found).shown["scores"] == [1.0, -0.2] and len(server.bodies) == 4
    # a rubric whose points sum to less than 0 has a score here, but no score of ratings
    heavy = [{**GOOD[0], "weight": 1, "description": "Optional: names the source"}, *[FAULTY[1] | {"weight": -2}]]
    (refused,), _ = score([LIKERT], [item(heavy)], serve=rater, kind="likert")
    (scored,), _ = score([by], [item(heavy)])
    assert part("preference", refused).value == -1.0 and "sum" in part("preference", refused).why
    assert part("preference", scored).shown["scores"] == [1.0, -2.0]


def test_a_judge_that_compares_by_the_rubric_decides_or_ties() -> None:
    blind = [{"title": "Bird", "description": "Key: names a bird", "weight": 5}]
    turned = [{"title": "Unsure", "description": "Key: is unsure.", "weight": 5}]
    items = [item(GOOD), item(GOOD, 1, first="rejected"), item(blind, 2), item(turned, 3)]
    found, server = score([CHOICE], items, serve=chooser, kind="pairwise_rubric")
    assert [part("choice", each).value for each in found] == [1.0, 1.0, 0.0, 0.0]
    assert [part("choice", each).why for each in found[2:]] == ["it called a tie", "it chose the other"]
    assert part("choice", found[1]).shown["label"] == "B"
    stubborn, _ = score(
        [CHOICE],
        [item(GOOD)],
        serve=lambda body: json.dumps({**json.loads(chooser(body)), "verdict": "A"}),
        kind="pairwise_rubric",
    )
    assert part("choice", stubborn[0]).value == 0.0 and part("choice", stubborn[0]).why == "its two orders disagree"


def test_a_judge_of_rubrics_sees_the_rubric_and_no_answer() -> None:
    said = json.dumps({"problems": ["narrow"], "explanation": "It asks little.", "score": 2.5})
    (found,), server = score([QUALITY], [item(GOOD)], serve=lambda body: said, kind="rubric_quality")
    assert part("quality", found).value == 2.5 and part("quality", found).why == "It asks little."
    asked = json.dumps(list(server.bodies))
    assert "names the source" in asked and "Bell" not in asked and "unsure" not in asked


def test_the_sum_of_the_parts_is_the_published_reward() -> None:
    parts = [RubricPreferencePart(by="words", weight=2.0), RubricFormPart()]
    wrong = [*GOOD, {"title": "", "description": "x", "weight": 1}]
    found, _ = score(parts, [item(GOOD), item(wrong, 1), item("no", 2)])
    published = [mams_reward(1, 0, None, True, 2.0, 0.0), mams_reward(1, 0, None, False, 2.0, 0.0)]
    assert [each.total for each in found] == [*published, mams_reward(None, None, None, False, 2.0, 0.0)] == [2, 1, -3]


def test_the_form_says_what_is_wrong_and_what_could_be_read() -> None:
    found, _ = score([RubricFormPart()], [item(GOOD), item("no", 1)])
    assert part("format", found[0]).shown["notes"] and part("format", found[0]).shown["readable"]
    told = part("format", found[1])
    assert told.shown["criteria"] == 0 and not told.shown["readable"] and told.why == told.shown["problems"][0]


def test_a_list_that_was_cut_has_not_its_form_and_json_says_by_itself_whether_it_is_whole() -> None:
    listed = "1. The response names the source. [Hard Rule]"
    whole, cut = item(listed), item(listed, 1, cut=True)  # both are as long as the limit, and one has ended by itself
    found, _ = score([RubricFormPart(form="rubric_arm")], [whole, cut])
    assert [part("format", each).value for each in found] == [0.0, -1.0]
    (json_found,), _ = score([RubricFormPart()], [item(GOOD, cut=True)])
    assert part("format", json_found).value == 0.0


def test_recall_counts_people_s_criteria_and_is_undefined_without_any() -> None:
    both = [*GOOD, {"title": "Words", "description": "Important: sings", "weight": 3}]
    items = [item(GOOD), item(both, 1), item("no", 2), item(GOOD, 3, human=())]
    services = Services(matchers={"words": WordsMatcher()})
    found = asyncio.run(recall(RubricRecallPart(matcher="words"), items, services))
    assert [each.value for each in found] == [0.5, 0.5, 0.0, None]
    assert [each.shown["matches"] for each in found] == [[[0, 0]], [[0, 0]], [], []]
    assert [each["text"] for each in found[1].shown["written"]] == ["names the source", "sings"]
    assert [each["text"] for each in found[2].shown["human"]] == ["names the source", "counts words"]
    assert found[3].why == "people have written no rubric for it"


def test_an_item_may_match_several_and_the_border_itself_is_no_match() -> None:
    assert matched(np.array([[0.9, 0.5], [0.6, 0.2]])) == [(0, 0), (0, 1)]
    assert matched(np.zeros((2, 0))) == []


def test_words_are_counted_as_shares_and_faults_against() -> None:
    criteria = (Criterion(id="x", text="names Bell", points=2), Criterion(id="y", text="unsure", points=-1))
    assert words_score(criteria, "Bell said") == (1.0, [0.5, 0.0])
    assert words_score(criteria, "bell names, UNSURE") == (1.0, [1.0, 1.0])
    with pytest.raises(ValueError, match="sum to -1"):
        words_score(criteria[1:], "x")


def test_a_response_to_no_pair_is_missing_with_the_reason() -> None:
    lost = Item("train/1/0/0", item(GOOD).example, None, "[]", 5, 60)
    (found,), _ = score([LIKERT, RubricFormPart()], [lost], serve=rater, kind="likert")
    assert found.total is None and "no pair" in found.excluded
