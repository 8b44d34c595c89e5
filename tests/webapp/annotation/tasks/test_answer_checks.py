"""The rules for a complete answer of each kind, and the sentences about missing parts."""

from typing import Any

import pytest

from webapp.annotation import kinds
from webapp.annotation.tasks import answer_checks, blinding, gold_answers
from webapp.core.problems import Invalid

TEXT = "naïve 👍🏽 text"  # 13 code points; there are more bytes and more UTF-16 units
EXAMPLE = {
    "key": "k",
    "prompt": [{"role": "user", "content": "?"}],
    "responses": [{"id": "one", "text": TEXT}, {"id": "two", "text": "short"}, {"id": "three", "text": "third"}],
    "rubric": {"criteria": [{"id": "c1", "text": "x", "points": 1}, {"id": "c2", "text": "y", "points": -1}]},
}
SUBJECTS: dict[str, Any] = {
    "pairwise": {"a": "one", "b": "two"},
    "rubric": {},
    "grading": {"response": "one"},
    "ranking": {"responses": ["one", "two", "three"]},
    "rating": {"response": "one"},
    "rationale": {"a": "one", "b": "two"},
}
SETTINGS = {"scales": [{"name": "Clarity", "low": 1, "high": 5}, {"name": "Tone", "low": 0, "high": 2}]}
ORDER = {"pairwise": [0, 1], "ranking": [0, 1, 2], "rationale": [0, 1], "rubric": []}
MET = {"criterion": "c1", "verdict": "met"}
NOT = {"criterion": "c2", "verdict": "not_met"}


def problems(kind: str, content: dict, **settings) -> dict[str, str]:
    given = kinds.Settings.model_validate(SETTINGS | settings)
    view = blinding.view(kind, given, SUBJECTS[kind], ORDER.get(kind, [0]), EXAMPLE, done=False)
    try:
        answer_checks.answer(kind, given, content, view)
    except Invalid as invalid:
        return invalid.fields
    return {}


def span(start, end, response="A"):
    return {"strength": 1, "reasons": [{"text": "x", "response": response, "start": start, "end": end}]}


@pytest.mark.parametrize(
    "kind, content, paths",
    [
        ("pairwise", {"strength": 0}, set()),
        ("pairwise", {"verdict": "both_bad"}, set()),
        ("pairwise", {"verdict": "both_bad", "strength": -1}, set()),
        ("pairwise", {"verdict": "cannot_assess", "strength": 1}, {"content.strength"}),
        ("pairwise", {}, {"content.strength"}),
        ("pairwise", {"strength": 1.5}, {"content.strength"}),
        ("pairwise", {"strength": 1, "unknown": 1}, {"content.unknown"}),
        ("pairwise", span(0, len(TEXT)), set()),
        ("pairwise", span(0, len(TEXT) + 1), {"content.reasons.0.end"}),
        ("pairwise", span(2, 2), {"content.reasons.0"}),
        ("pairwise", span(0, 1, "C"), {"content.reasons.0.response"}),
        ("pairwise", {"strength": 1, "reasons": [{"text": " "}]}, {"content.reasons.0.text"}),
        ("rubric", {"rubric": {"criteria": [{"id": "a", "text": "x", "points": 2}]}}, set()),
        ("rubric", {"rubric": {"criteria": []}}, {"content.rubric.criteria"}),
        ("rubric", {"rubric": {"criteria": [{"id": "a", "text": "x", "points": -2}]}}, {"content.rubric"}),
        (
            "rubric",
            {"rubric": {"criteria": [{"id": "a", "text": "x", "points": 2, "verifier": {"name": "nonsense"}}]}},
            {"content.rubric.criteria.0.verifier.name"},
        ),
        ("grading", {"grades": [MET, NOT]}, set()),
        ("grading", {"grades": [MET]}, {"content.grades"}),
        ("grading", {"grades": [MET, NOT, MET]}, {"content.grades.2.criterion"}),
        ("grading", {"grades": [MET, NOT, {"criterion": "c9", "verdict": "met"}]}, {"content.grades.2.criterion"}),
        ("grading", {"grades": [{**MET, "start": 0, "end": 99}, NOT]}, {"content.grades.0.end"}),
        ("grading", {"grades": [{**MET, "start": 3}, NOT]}, {"content.grades.0.end"}),
        ("ranking", {"tiers": [["B"], ["A", "C"]]}, set()),
        ("ranking", {"tiers": [["B"], ["A"]]}, {"content.tiers"}),
        ("ranking", {"tiers": [["B", "B"], ["A", "C"]]}, {"content.tiers"}),
        ("ranking", {"tiers": [["B"], ["A", "C"], []]}, {"content.tiers"}),
        ("ranking", {"tiers": [["B"], ["A", "C", "D"]]}, {"content.tiers"}),
        ("ranking", {"verdict": "cannot_assess"}, set()),
        ("ranking", {"verdict": "cannot_assess", "tiers": [["A"]]}, {"content.tiers"}),
        ("rating", {"ratings": {"Clarity": 5, "Tone": None}}, set()),
        ("rating", {"ratings": {"Clarity": 6, "Tone": 1}}, {"content.ratings.Clarity"}),
        ("rating", {"ratings": {"Clarity": 5}}, {"content.ratings.Tone"}),
        ("rating", {"ratings": {"Clarity": 5, "Tone": 1, "Wit": 3}}, {"content.ratings.Wit"}),
        ("rationale", {"source": "why", "reasons": [{"text": "x"}]}, set()),
        ("rationale", {"reasons": [{"text": "x"}]}, {"content.source"}),
        ("rationale", {"source": "why", "reasons": []}, {"content.reasons"}),
    ],
)
def test_an_answer_is_complete_or_says_where_it_is_not(kind, content, paths):
    found = problems(kind, content)
    assert set(found) == paths
    assert all(message and "{" not in message for message in found.values())


def test_best_of_n_wants_exactly_one():
    assert problems("ranking", {"tiers": [["A"], ["B", "C"]]}, ranking="best") == {}
    assert problems("ranking", {"tiers": [["A", "B"], ["C"]]}, ranking="best") == {
        "content.tiers": "choose the one best response"
    }


@pytest.mark.parametrize("content", [None, 3, [], "text", {"reasons": 3}, {"strength": {"a": 1}}])
def test_nonsense_is_refused_and_breaks_nothing(content):
    assert problems("pairwise", content)


@pytest.mark.parametrize(
    "kind, given, known, right",
    [
        ("pairwise", {"strength": 1}, {"strength": 3}, True),
        ("pairwise", {"strength": -1}, {"strength": 3}, False),
        ("pairwise", {"strength": 0}, {"strength": 0}, True),
        ("pairwise", {"verdict": "both_bad"}, {"verdict": "both_bad"}, True),
        ("grading", {"grades": [MET, NOT]}, {"grades": [MET]}, True),
        ("grading", {"grades": [{**MET, "verdict": "not_met"}, NOT]}, {"grades": [MET, NOT]}, False),
        ("ranking", {"tiers": [["a"], ["c", "b"]]}, {"tiers": [["a"], ["b", "c"]]}, True),
        ("ranking", {"tiers": [["b"], ["a", "c"]]}, {"tiers": [["a"], ["b", "c"]]}, False),
        ("pairwise", {"verdict": "both_bad", "strength": 1}, {"verdict": "both_bad", "strength": None}, True),
        ("rating", {"ratings": {"Clarity": 4, "Tone": 1}}, {"ratings": {"Clarity": 5, "Tone": 1}}, True),
        ("rating", {"ratings": {"Clarity": 3, "Tone": 1}}, {"ratings": {"Clarity": 5, "Tone": 1}}, False),
        ("rating", {"ratings": {"Clarity": 5, "Tone": 1}}, {"ratings": {"Clarity": 5, "Tone": 2}}, False),
        # a scale that the project had when the answer became known, and has no more
        ("rating", {"ratings": {"Clarity": 5, "Tone": 1}}, {"ratings": {"Clarity": 5, "Style": 3}}, True),
        ("rating", {"ratings": {"Clarity": 5, "Tone": 1}}, {"ratings": {"Style": 3}}, None),
        ("rubric", {}, {}, None),
    ],
)
def test_gold_is_right_where_it_can_be_told(kind, given, known, right):
    settings = kinds.Settings.model_validate(SETTINGS)
    assert gold_answers.is_right(kind, settings, given, known) is right
