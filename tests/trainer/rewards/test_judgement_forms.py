"""Written judgements: each criterion has its own explanation, then comes a justification, then one decision."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainer.rewards.judgement_forms import read_judgement

TEXT = """--- Compliance Check ---
Identified Gatekeeper Criterion: Criterion 1: at most 50 words.

--- Analysis ---
**Response A:**
- Criterion 1 [Hard Rule]: Justification: It has 40 words.
- Criterion 2 [Principle]: Justification: It reasons
  step by step.

**Response B:**
- Criterion 1 [Hard Rule]: Justification: It has 80 words.
- Criterion 2 [Principle]: Justification: It only claims.

--- Final Judgment ---
Justification: Only A keeps the limit.
Winner: Response A
"""


def test_a_judgement_as_rubric_arm_prints_it() -> None:
    found = read_judgement(TEXT, 2)
    assert (found.ok, found.verdict, found.problems) == (True, "A", ())


def test_the_gatekeeper_is_no_part_of_the_form_and_thoughts_are_passed_over() -> None:
    assert read_judgement("<think>Winner: Response B</think>" + TEXT[TEXT.index("--- Analysis") :], 2).verdict == "A"
    assert read_judgement(TEXT.replace("Justification: It", "It").replace("**Winner:**", "winner:"), 2).ok


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("- Criterion 2 [Principle]: Justification: It only claims.\n", "", "response B: no word on criterion 2"),
        ("It only claims.", "", "response B: criterion 2 has no explanation"),
        ("It only claims.", "it has 80  words.", "response B: criterion 2 has the explanation of criterion 1"),
        (
            "Criterion 2 [Principle]: Justification: It only",
            "Criterion 3: It only",
            "response B: no word on criterion 2",
        ),
        ("It only claims.", "It only claims.\n- Criterion 2: Again.", "response B: criterion 2 is handled 2 times"),
        ("--- Final Judgment ---\n", "", "there is no final judgment"),
        ("Justification: Only A keeps the limit.\n", "", "the final judgment has no justification"),
        ("Winner: Response A", "", "there is no decision"),
        ("Winner: Response A", "Winner: Response A\nWinner: Response A", "there are 2 decisions"),
        ("Winner: Response A", "Winner: both", "the winner is neither"),
        ("Winner: Response A", "Winner: Response A\nOr is it?", "something follows the decision"),
        ("**Response B:**", "**Response C:**", "response A: criterion 1 is handled 2 times"),
    ],
)
def test_what_costs_the_format_reward(old, new, said) -> None:
    assert old in TEXT
    found = read_judgement(TEXT.replace(old, new), 2)
    assert not found.ok and found.problems[0].startswith(said)


def test_a_rubric_of_another_size_is_told() -> None:
    assert read_judgement(TEXT, 1).problems[0] == "response A: criterion 2 is not in the rubric, which has 1"
    assert read_judgement(TEXT, 9).problems[0] == "response A: no word on criterion 3, 4, 5, 6, 7 and 2 more"


def ours(**changed: object) -> str:
    criteria = [
        {"number": 1, "explanation": "A has 40 words, B 80", "a_meets": True, "b_meets": False},
        {"number": 2, "explanation": "Both reason", "a_meets": True, "b_meets": True},
    ]
    whole = {"criteria": criteria, "justification": "Only A keeps the limit.", "verdict": "A"}
    return json.dumps({**whole, **changed})


KEEPER = {"number": 1, "explanation": "the limit", "a_meets": True, "b_meets": False}


def test_our_own_form() -> None:
    assert read_judgement(ours(), 2).verdict == "A" and read_judgement(ours(), 2).ok
    assert read_judgement(json.dumps({"gatekeeper": KEEPER} | json.loads(ours())), 2).ok


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "the output is not JSON"),
        (ours(verdict="tie"), "verdict: "),
        (ours(justification=" "), "the justification is empty"),
        (ours(criteria=[]), "no word on criterion 1, 2"),
        (ours(criteria=3), "criteria: "),
        (ours(gatekeeper=KEEPER), "expected the keys gatekeeper, criteria, justification, verdict"),
        (ours(note="x"), "expected the keys criteria, justification, verdict"),
        (ours()[:-1] + ', "verdict": "B"}', "expected the keys"),
        ('{"verdict": "A", ' + ours()[1:].replace(', "verdict": "A"', ""), "expected the keys"),
    ],
)
def test_what_is_not_our_own_form(text, said) -> None:
    assert read_judgement(text, 2).problems[0].startswith(said)


def test_two_verdicts_are_no_decision() -> None:
    assert read_judgement(ours()[:-1] + ', "verdict": "B"}', 2).verdict is None


@given(
    st.text(max_size=80) | st.text(alphabet='[]{}":,1 Response ABCriterion Winner:\n', max_size=120), st.integers(1, 3)
)
def test_any_text_is_read_or_told(text, criteria) -> None:
    for form in (None, "rubric_arm", "touchstone"):
        found = read_judgement(text, criteria, form)
        assert not found.ok and found.verdict in (None, "A", "B")
