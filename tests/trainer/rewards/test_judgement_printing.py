"""Demonstrations of judgements: a written judgement is read with the same meaning."""

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainer.judges.rubric_printing import Unwritable
from trainer.rewards.judgement_forms import Form, read_judgement
from trainer.rewards.judgement_printing import Handled, Reasoned, write_judgement

WORDS = st.lists(st.text("abcXYZ09äé.,'-", min_size=1, max_size=8), min_size=1, max_size=6).map(" ".join)
ANY = st.text(max_size=40)
FORMS: list[Form] = ["rubric_arm", "touchstone"]


def judgements(words: st.SearchStrategy[str], unique: bool) -> st.SearchStrategy[Reasoned]:
    handled = st.builds(Handled, words, words, st.booleans(), st.booleans())
    alike = (lambda each: each.first.lower(), lambda each: each.second.lower())
    lists = st.lists(handled, min_size=1, max_size=5, unique_by=alike if unique else None).map(tuple)
    return st.builds(Reasoned, lists, words, st.sampled_from(["A", "B"]))


@pytest.mark.parametrize("form", FORMS)
@given(data=st.data())
def test_what_is_written_is_read_with_its_verdict_and_in_its_form(form: Form, data: st.DataObject) -> None:
    said = data.draw(judgements(WORDS, unique=True))
    read = read_judgement(write_judgement(said, form), len(said.criteria), form)
    assert read.ok and read.verdict == said.verdict


@pytest.mark.parametrize("form", FORMS)
@given(data=st.data())
def test_whatever_the_words_it_is_read_so_or_refused(form: Form, data: st.DataObject) -> None:
    said = data.draw(judgements(ANY, unique=False))
    try:
        text = write_judgement(said, form)
    except Unwritable:
        return
    read = read_judgement(text, len(said.criteria), form)
    assert read.ok and read.verdict == said.verdict


SAID = Reasoned(
    (Handled("It says\nyes.", "It says no.", True, False), Handled("Short.", "Short.", True, True)), "By it.", "A"
)


def test_each_form_says_everything() -> None:
    assert write_judgement(SAID, "rubric_arm").splitlines() == [
        "Response A",
        "Criterion 1: It says yes.",
        "Criterion 2: Short.",
        "Response B",
        "Criterion 1: It says no.",
        "Criterion 2: Short.",
        "Final Judgment",
        "Justification: By it.",
        "Winner: Response A",
    ]
    assert json.loads(write_judgement(SAID, "touchstone")) == {
        "criteria": [
            {"number": 1, "explanation": "A: It says yes. B: It says no.", "a_meets": True, "b_meets": False},
            {"number": 2, "explanation": "Short.", "a_meets": True, "b_meets": True},
        ],
        "justification": "By it.",
        "verdict": "A",
    }


def test_what_has_no_form_is_refused_with_the_reason() -> None:
    unknown = replace(SAID, criteria=(Handled("One.", "Two.", True, None), SAID.criteria[1]))
    assert write_judgement(unknown, "rubric_arm")
    with pytest.raises(Unwritable, match="not known which answer"):
        write_judgement(unknown, "touchstone")
    twice = replace(SAID, criteria=(SAID.criteria[1], SAID.criteria[1]))
    for form in FORMS:
        with pytest.raises(Unwritable, match="explanation of criterion 1"):
            write_judgement(twice, form)
        with pytest.raises(Unwritable, match="justification"):
            write_judgement(replace(SAID, justification=" "), form)
