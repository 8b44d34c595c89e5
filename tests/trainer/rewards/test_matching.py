"""A judge version that matches reasons or criteria, and one that tags flaws: its questions, the use of its answers, and the result for a
judgement that could not be matched.
"""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from trainer.config import ConfigInvalid, resolve
from trainer.config.recipes.judge import JudgeConfig
from trainer.config.rewards.tasks import FlawsPart, RationalePart
from trainer.config.rewards.writer import RubricRecallPart
from trainer.contracts import Criterion, Example, Message, Response
from trainer.rewards import Item, Services, scoring
from trainer.rewards.access import Access
from trainer.rewards.journal import Journal
from trainer.rewards.reason_matching import WordsMatcher
from trainer.rewards.written_rubrics import ComparedPair

from .judged import score

QUESTION = Message(role="user", content="How long do eggs boil?")
HUMAN = ["Names the minutes.", "Says when to start."]
BY_JUDGE = RationalePart(form="lines", matcher="judge", judge="j")
FLAWS = FlawsPart(form="lines", judge="j", on_missing="exclude", shadow=True)
_NUMBERED = re.compile(r"^\d+\. (.*)$", re.MULTILINE)


def judgement(*reasons: str, index: int = 0, human: list[str] = HUMAN, verdict: str = "A better") -> Item:
    said = "\n".join([*(f"- {reason}" for reason in reasons), f"Verdict: {verdict}"])
    facts = {
        "label": -1,
        "reasons": human,
        "example": "row",
        "prompt": [QUESTION.model_dump()],
        "answers": ["Nine minutes.", "Quite long."],
    }
    return Item(f"train/1/0/{index}", Example(key="row#0", prompt=(QUESTION,)), None, said, 10, 60, facts=facts)


def lists(body: dict[str, Any]) -> tuple[list[str], list[str]]:
    asked = body["messages"][-1]["content"]
    human, model = (re.search(rf"<{tag}>\n(.*?)\n</{tag}>", asked, re.S)[1] for tag in ("human", "judge"))
    return _NUMBERED.findall(human), _NUMBERED.findall(model)


def first_word(body: dict[str, Any]) -> str:
    """A matcher that calls two reasons the same if they begin with the same word."""
    human, model = lists(body)
    rows = [[float(h.split()[0] == m.split()[0]) for m in model] for h in human]
    return json.dumps({"rows": [{"human": place, "scores": row} for place, row in enumerate(rows, 1)]})


def test_a_judge_matches_reasons_and_its_matching_is_scored() -> None:
    items = [judgement("Names nine."), judgement("Is short.", "Says start.", index=1), judgement("Is short.", index=2)]
    found, server = score([BY_JUDGE], items, serve=first_word, kind="reason_matcher")
    assert [each.total for each in found] == [0.5, 0.25, 0.0]  # (1/1)/2; hit at the second place (1/2)/2; none
    shown = found[1].parts["rationale"].shown
    assert shown["matcher"] == "j" and shown["scores"] == [[0.0, 0.0], [0.0, 1.0]] and shown["hits"] == [False, True]
    assert found[1].parts["rationale"].usage.calls == 1 and server.requests == 3


def test_nobody_is_asked_where_there_is_nothing_to_match() -> None:
    items = [judgement("Names nine.", human=[]), judgement(index=1)]
    found, server = score([BY_JUDGE], items, serve=first_word, kind="reason_matcher")
    assert "gave no reasons" in found[0].excluded and found[1].total == 0.0 and server.requests == 0


def test_a_matching_that_cannot_be_read_leaves_out_the_judgement_with_the_reason() -> None:
    """If rows are missing, nothing is filled in with 0, and another judgement of the same group keeps its value."""

    def short(body: dict[str, Any]) -> str:
        _, model = lists(body)
        return json.dumps({"rows": [{"human": 1, "scores": [0.0]}]}) if model[0] == "Is short." else first_word(body)

    items = [judgement("Is short."), judgement("Names nine.", index=1)]
    found, _ = score([BY_JUDGE], items, serve=short, kind="reason_matcher")
    assert found[0].total is None and "the matcher gave no matching" in found[0].excluded
    assert found[0].parts["rationale"].shown["human"] == HUMAN and found[1].total == 0.5


def test_a_matcher_that_is_away_is_waited_for() -> None:
    async def up(server: Any, reason: str) -> None:
        assert "rationale" in reason
        server.fault = None

    def down(server: Any) -> None:
        server.fault = "down"

    found, _ = score(
        [BY_JUDGE], [judgement("Names nine.")], serve=first_word, kind="reason_matcher", wait=up, prepare=down
    )
    assert found[0].total == 0.5


def test_a_local_matcher_that_fails_leaves_out_what_it_was_to_match() -> None:
    class Broken:
        key = "words"

        def scores(self, lists: Any, of: str) -> Any:
            raise RuntimeError("no model")

    (found,) = run_local([judgement("Names nine.")], Broken())
    assert found.total is None and "no model" in found.excluded


def run_local(items: list[Item], matcher: Any) -> list[Any]:
    import asyncio

    async def never(reason: str) -> None:
        raise AssertionError(reason)

    part = RationalePart(form="lines", matcher="words")
    return asyncio.run(scoring.score([part], items, Services(matchers={"words": matcher}), never))


def test_what_a_judge_matched_is_not_asked_again_when_a_run_is_resumed(tmp_path: Path) -> None:
    for asked in (1, 0):
        journal = Journal(tmp_path / "journal")
        found, server = score(
            [BY_JUDGE], [judgement("Names nine.")], serve=first_word, kind="reason_matcher", journal=journal
        )
        journal.close()
        assert found[0].total == 0.5 and server.requests == asked


def tagger(body: dict[str, Any]) -> str:
    """Calls every reason generic that says “nice”, and leaves out a reason that says “hidden”."""
    asked = body["messages"][-1]["content"]
    reasons = _NUMBERED.findall(re.search(r"<reasons>\n(.*?)\n</reasons>", asked, re.S)[1])
    tagged = [
        {
            "number": number,
            "explanation": "",
            "rests_on": "generic" if "nice" in reason else "evidence",
            "flaws": ["F2", "F5"] if "nice" in reason else [],
        }
        for number, reason in enumerate(reasons, 1)
        if "hidden" not in reason
    ]
    return json.dumps({"reasons": tagged})


def test_a_judge_tags_flaws_and_what_it_passes_over_has_no_tags() -> None:
    items = [judgement("It is nice.", "Says nine minutes.", "Is hidden."), judgement(index=1)]
    found, server = score([FLAWS], items, serve=tagger, kind="flaws")
    part = found[0].parts["flaws"]
    assert part.value == 0.5  # one of the two tagged ones
    assert part.shown["tags"] == [
        {"rests_on": "generic", "flaws": ["F2", "F5"]},
        {"rests_on": "evidence", "flaws": []},
        None,
    ]
    assert found[1].parts["flaws"].value is None and server.requests == 1
    asked = server.bodies[0]["messages"][-1]["content"]
    assert asked.index("Nine minutes.") < asked.index("Quite long.") and "A better" in asked


def test_training_does_not_wait_for_tags() -> None:
    def down(server: Any) -> None:
        server.fault = "down"

    found, _ = score([FLAWS], [judgement("It is nice.")], serve=tagger, kind="flaws", prepare=down)
    assert found[0].parts["flaws"].value is None and found[0].parts["flaws"].away


def test_a_judge_matches_criteria_of_rubrics_too() -> None:
    pair = ComparedPair(
        example="row",
        conversation=(QUESTION,),
        chosen=Response(id="a", text="Nine."),
        rejected=Response(id="b", text="Long."),
        human=(Criterion(id="c1", text="names the minutes", points=5), Criterion(id="c2", text="is kind", points=1)),
    )
    text = json.dumps([{"title": "Minutes", "description": "Key: gives a number of minutes", "weight": 5}])
    item = Item("train/1/0/0", Example(key="row#0", prompt=(QUESTION,)), None, text, 5, 60, facts=pair.facts)
    part = RubricRecallPart(matcher="judge", judge="j", shadow=True)

    def serve(body: dict[str, Any]) -> str:
        return json.dumps({"matches": [{"generated": 1, "reference": 1}]})

    found, _ = score([part], [item], serve=serve, kind="rubric_matcher")
    assert found[0].parts["recall"].value == 0.5 and found[0].parts["recall"].shown["matches"] == [[0, 0]]
    unread, _ = score([part], [item], serve=lambda body: "nothing", kind="rubric_matcher")
    assert unread[0].parts["recall"].value is None and unread[0].parts["recall"].shown["matches"] is None


@pytest.mark.parametrize(("recipe", "kind"), [("judge", "reason matcher"), ("rubric_writer", "rubric matcher")])
def test_who_matches_is_named_and_of_the_right_kind(recipe: str, kind: str) -> None:
    with pytest.raises(ConfigInvalid, match=r"reward\.matching_judge: name the judge"):
        resolve(recipe, {"reward": {"matcher": "judge"}})
    config: Any = resolve(recipe, {"reward": {"matcher": "judge", "matching_judge": "M v1"}})
    part = config.asking("reward.matching_judge")
    assert part.asks_judge == "M v1" and part.judge_kinds == (kind.replace(" ", "_"),)
    problems = list(Access().problems(config.composition.parts, {"reward.matching_judge": part}))
    assert [(problem.path, problem.message) for problem in problems] == [
        ("reward.matching_judge", "no judge 'M v1' was given to the run")
    ]


def test_another_matcher_asks_no_judge() -> None:
    config = JudgeConfig.model_validate({"reward": {"matcher": "words", "matching_judge": "M v1"}})
    assert not any(part.asks_judge for part in config.composition.parts)
    assert run_local([judgement("Names the minutes.")], WordsMatcher())[0].total == 0.5
