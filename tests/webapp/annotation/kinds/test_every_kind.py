"""Rules for every kind of task. A new kind is tested here after it has two answers below."""

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from trainer.contracts import Example
from webapp.annotation import kinds
from webapp.annotation.agreement import consensus
from webapp.annotation.kinds import KINDS
from webapp.annotation.kinds.table import GivenAnswer
from webapp.annotation.review import consolidation
from webapp.annotation.tasks import answer_checks, blinding, gold_candidates

from ..answers import grades, preference, ranking, ratings, rubric, trace_steps

WIDGETS = Path(__file__).parents[4] / "webapp" / "static" / "js" / "annotate" / "kinds"
REASON = {"text": "shorter", "response": "r1", "start": 0, "end": 5}
STEPS = [
    {"kind": "reasoning", "text": "Look it up."},
    {"kind": "call", "tool": "search", "text": "{}"},
    {"kind": "result", "role": "tool", "tool": "search", "text": "scattering"},
    {"text": "It scatters."},
]
EXAMPLE = Example.model_validate(
    {
        "key": "q",
        "prompt": [{"role": "user", "content": "Why is the sky blue?"}],
        "responses": [
            {"id": f"r{n}", "text": f"answer number {n}", "origin": "model", "steps": STEPS if n == 0 else []}
            for n in range(3)
        ],
        "rubric": {"criteria": [{"id": "c1", "text": "Names scattering.", "points": 3}]},
        "preferences": [{"a": "r0", "b": "r1", "strength": 2, "rater": "old", "reasons": [REASON]}],
    }
).model_dump(mode="json")
SETTINGS = kinds.Settings.model_validate({"scales": [{"name": "Tone"}], "dimensions": ["Style"]})
FIRST_PAIR = {"a": "r0", "b": "r1"}
# {kind: two different answers, in the subject's frame}
ANSWERS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "pairwise": ({**preference(-2, Style=1), "reasons": [REASON]}, preference(3, Style=-1)),
    "rubric": (rubric("Names scattering."), rubric("Is short.")),
    "grading": (grades(c1="met"), grades(c1="not_met")),
    "ranking": (ranking("r0", "r1 r2"), ranking("r2", "r0", "r1")),
    "rating": (ratings(Tone=4), ratings(Tone=1)),
    "rationale": (
        {"source": "shorter", "reasons": [REASON], "note": ""},
        {"source": "kind", "reasons": [{**REASON, "text": "kind"}], "note": ""},
    ),
    "best_worst": (
        {"verdict": "chosen", "best": "r0", "worst": "r2", "note": ""},
        {"verdict": "chosen", "best": "r1", "worst": "r0", "note": ""},
    ),
    "trace_steps": (trace_steps("correct", "correct", None, "correct"), trace_steps("correct", "incorrect")),
}


def subject_of(kind: str) -> dict[str, Any]:
    return KINDS[kind].subjects(EXAMPLE)[0]


def groups_of(kind: str, answers: list[dict[str, Any]]) -> list[list[tuple[int, int]]]:
    """Items with equal text count as the same."""
    found: dict[str, list[tuple[int, int]]] = {}
    for place, content in enumerate(answers):
        for index, item in enumerate(KINDS[kind].items(content)):
            found.setdefault(item["text"], []).append((place, index))
    return list(found.values())


def test_every_kind_has_answers_to_try_it_with():
    assert set(ANSWERS) == set(KINDS)


def test_kinds_load_without_django():
    """Runs in this process, and not in the confined child that tries a rubric's verifiers."""
    code = "import sys, webapp.annotation.kinds; sys.exit('django.db.models' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=WIDGETS.parents[4], check=False).returncode == 0


@pytest.mark.parametrize("kind", KINDS)
def test_a_widget_draws_it(kind):
    code = (WIDGETS / f"{kind}.js").read_text()
    assert re.search(r"^export default function mount\(root, ", code, re.MULTILINE)
    assert re.search(r"^export const keys = ", code, re.MULTILINE)
    assert re.search(r"^export const begin = ", code, re.MULTILINE)
    assert re.search(r"^export function describe\(", code, re.MULTILINE)


@pytest.mark.parametrize("kind", KINDS)
def test_an_answer_goes_to_the_shown_frame_and_back_and_fits_what_was_shown(kind):
    subject = subject_of(kind)
    order = list(reversed(range(len(kinds.subject_sides(subject)))))
    seen = blinding.view(kind, SETTINGS, subject, order, EXAMPLE, done=False)
    kinds.TaskView.model_validate(seen)
    for content in ANSWERS[kind]:
        given = kinds.to_shown(kind, content, subject, order)
        assert not re.search(r'"r\d"', str(given).replace("'", '"'))
        stored = kinds.to_subject(kind, answer_checks.answer(kind, SETTINGS, given, seen), subject, order)
        assert KINDS[kind].judgement(stored) == KINDS[kind].judgement(content)


@pytest.mark.parametrize("kind", KINDS)
def test_equal_answers_agree_and_stand_and_different_ones_do_not(kind):
    one, two = ANSWERS[kind]
    same = groups_of(kind, [one, one])
    assert consensus.agreement(kind, [one, one], same) == 1
    assert KINDS[kind].judgement(consensus.unanimous(kind, [one, one], same)) == KINDS[kind].judgement(one)
    assert KINDS[kind].judgement(consensus.majority(kind, [one, one], same)) == KINDS[kind].judgement(one)
    apart = groups_of(kind, [one, two])
    assert consensus.agreement(kind, [one, two], apart) < 1
    assert consensus.unanimous(kind, [one, two], apart) is None


@pytest.mark.parametrize("kind", KINDS)
def test_a_reviewer_who_keeps_all_that_one_person_said_gets_their_answer(kind):
    one, two = ANSWERS[kind]
    answers = [GivenAnswer(7, one), GivenAnswer(8, two)]
    groups = [[((7, 8)[place], index) for place, index in group] for group in groups_of(kind, [one, two])]
    subject = subject_of(kind)
    rows = consolidation.rows(kind, SETTINGS, subject, EXAMPLE, answers, groups)
    theirs = {row.id for row in rows if 7 in row.given or any(answer == 7 for answer, _, _ in row.items)}
    decisions = {row.id: {"action": "keep", "answer": 7} if row.id in theirs else {"action": "drop"} for row in rows}
    content, trace = consolidation.assemble(kind, subject, answers, rows, decisions)
    assert KINDS[kind].judgement(KINDS[kind].answer.model_validate(content).model_dump()) == KINDS[kind].judgement(one)
    assert len(trace) == len(rows)


@pytest.mark.parametrize("kind", KINDS)
def test_a_known_answer_tells_right_from_wrong_unless_it_is_matched_by_meaning(kind):
    one, two = ANSWERS[kind]
    bare = gold_candidates.bare(kind, one)
    wanted = (None, None) if KINDS[kind].by_meaning else (True, False)
    assert (KINDS[kind].right(SETTINGS, one, bare), KINDS[kind].right(SETTINGS, two, bare)) == wanted
    assert "note" not in bare


@pytest.mark.parametrize("kind", KINDS)
def test_answers_are_told_in_words_columns_and_preferences_that_an_example_takes(kind):
    subject = subject_of(kind)
    for content in ANSWERS[kind]:
        assert KINDS[kind].says(content) and KINDS[kind].words(content, subject)
        assert all(name and words for name, words in KINDS[kind].facts(content, subject))
        columns = KINDS[kind].columns(SETTINGS)
        assert columns and all(value(content) is not None for value in columns.values())
        made = KINDS[kind].preferences(content, subject, EXAMPLE, "someone@project-1")
        assert bool(made) >= KINDS[kind].compares
        Example.model_validate({**EXAMPLE, "preferences": made})


@pytest.mark.parametrize("kind", KINDS)
def test_an_example_without_anything_to_judge_makes_no_task(kind):
    empty = {"key": "q", "prompt": EXAMPLE["prompt"], "responses": []}
    assert bool(KINDS[kind].subjects(empty)) == (KINDS[kind].needs == ("examples",))
