"""Written rubrics in each of the four forms: what is read, what is a problem, and what is only a note."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainer.judges.rubric_forms import WrittenItem, read_rubric

FORMS = ("mams", "rubric_arm", "openrubrics", "touchstone")


def mams(*items: object) -> str:
    return json.dumps(list(items))


def item(weight: object = 5, description: str = "Key Criterion: names the cause", **more: object) -> dict[str, object]:
    return {"title": "The cause", "description": description, "weight": weight, **more}


def test_mams_items_carry_weight_and_importance() -> None:
    found = read_rubric(mams(item(), item(-2, "Error Criterion: omits the source")), "mams")
    assert found.ok
    assert found.items == (
        WrittenItem("names the cause", "The cause", 5, importance="essential"),
        WrittenItem("omits the source", "The cause", -2, importance="pitfall"),
    )
    assert found.notes == ("2 items; asked for 7 to 20",)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "there is no criterion"),
        ("[]", "there is no criterion"),
        ("Here is the rubric: []", "the output is not JSON"),
        (f"```json\n{mams(item())}\n```", "the output is not JSON"),
        ('{"title": "x"}', "the output is not a JSON array"),
        ("[" * 100_000, "the output is not JSON"),
        (mams("x"), "item 1: expected exactly title, description, weight; found no object"),
        (
            mams(item(extra=1)),
            "item 1: expected exactly title, description, weight; found title, description, weight, extra",
        ),
        (mams(item(), {"title": "x", "weight": 1}), "item 2: expected exactly"),
        (mams(item(0)), "item 1: its weight is none of"),
        (mams(item(6)), "item 1: its weight is none of"),
        (mams(item(-3)), "item 1: its weight is none of"),
        (mams(item(2.5)), "item 1: its weight is none of"),
        (mams(item("5")), "item 1: its weight is none of"),
        (mams(item(True)), "item 1: its weight is none of"),
        ('[{"title": "x", "description": "y", "weight": NaN}]', "the output is not JSON"),
        (
            '[{"title": "x", "title": "z", "description": "y", "weight": 1}]',
            "the output is not JSON: a key is twice",
        ),
        (mams(item(description=" ")), "item 1: its description is not a text"),
        (mams(item(title=1)), "item 1: its title is not a text"),
        (mams(item(description="Key criterion: ")), "item 1: its description names a class and says nothing"),
        (mams(item(3, "Error Criterion: omits it")), "item 1: class error with weight 3"),
        (mams(item(-1)), "item 1: class key with weight -1"),
        (mams(item(-1, "omits it")), "the weights sum to -1"),
    ],
)
def test_what_is_no_mams_rubric(text, said) -> None:
    found = read_rubric(text, "mams")
    assert not found.ok and found.problems[0].startswith(said)


def test_classes_and_numbers_of_items_are_asked_for_and_not_rewarded() -> None:
    odd = [item(4), item(5, "names the cause"), item(2, "可选标准: 简洁"), *[item()] * 4]
    found = read_rubric(mams(*odd), "mams")
    assert found.ok and [note[:50] for note in found.notes] == [
        "item 1: class key has weight 5, not 4",
        "item 2: its description does not open with its cla",
    ]


def test_what_a_writer_thinks_aloud_is_no_part_of_its_rubric() -> None:
    assert read_rubric(f"<think>[1, 2]</think>\n{mams(item())}", "mams").ok


def test_rubric_arm_lists_hard_rules_and_principles() -> None:
    text = "1. The response has at most 50 words. [Hard Rule]\n\n2. The response reasons soundly. [Principle]\n"
    found = read_rubric(text, "rubric_arm")
    assert found.ok
    assert [(each.text, each.kind, each.importance, each.points) for each in found.items] == [
        ("The response has at most 50 words.", "hard", "essential", None),
        ("The response reasons soundly.", "principle", "important", None),
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("Sure! Here it is:\n1. The response is short. [Principle]", "line 1 is not an item"),
        ("1. The response is short.", "item 1 does not end with"),
        ("1. It is short. [Principle]", "item 1 does not begin with"),
        ("2. The response is short. [Principle]", "line 1 has number 2 where 1 comes next"),
        ("1. The response is short. [Principle]\n1. The response is kind. [Principle]", "line 2 has number 1 where 2"),
        ("   ", "there is no criterion"),
    ],
)
def test_what_is_no_rubric_of_rubric_arm(text, said) -> None:
    assert read_rubric(text, "rubric_arm").problems[0].startswith(said)


CHECKLIST = """
***
### 1. Hard Constraints
* [ ] **Number:** Does it have *exactly* five points?
***
### 2. Core Task Fulfillment
* [ ] **Topic:** Are all of them about water?
- [ ] Is it polite?
### 4. Pitfall Criteria (Explicit Violations)
* [ ] **Pitfall (brand):** It names a brand.
"""


def test_openrubrics_has_four_levels_of_which_some_may_be_empty() -> None:
    found = read_rubric(CHECKLIST, "openrubrics")
    assert found.ok
    assert [(each.title, each.text, each.kind, each.importance) for each in found.items] == [
        ("Number", "Does it have *exactly* five points?", "hard", "essential"),
        ("Topic", "Are all of them about water?", "principle", "important"),
        ("", "Is it polite?", "principle", "important"),
        ("Pitfall (brand)", "It names a brand.", "principle", "pitfall"),
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("* [ ] **Number:** Five points?", "a check stands under none"),
        ("### Style\n* [ ] Five points?", "a heading names none of the four levels: Style"),
        ("### Core\n* [ ] a?\n### Hard\n* [ ] b?", "level hard comes twice or too late"),
        ("### Core\n* [ ] a?\n### Core\n* [ ] b?", "level core comes twice"),
        ("### Core\n* [ ] **Number:**", "a check says nothing"),
        ("### Core\nFive points?", "neither a heading nor a check"),
        ("### Pitfalls\n* [ ] It names a brand.", "there are pitfalls only"),
        ("### Core", "there is no criterion"),
    ],
)
def test_what_is_no_checklist(text, said) -> None:
    assert read_rubric(text, "openrubrics").problems[0].startswith(said)


def ours(**changed: object) -> str:
    one = {"text": "Names the cause", "kind": "hard", "importance": "essential", "points": 5, **changed}
    return json.dumps({"items": [one]})


def test_our_own_form() -> None:
    found = read_rubric(ours(), "touchstone")
    assert found.ok and found.items == (WrittenItem("Names the cause", "", 5, "hard", "essential"),)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[]", "the output is not a JSON object"),
        ('{"items": [], "x": 1}', "the output is not a JSON object"),
        ('{"items": []}', "there is no criterion"),
        (ours(points=11), "item 1: points"),
        (ours(points="5"), "item 1: points"),
        (ours(kind="soft"), "item 1: kind"),
        (ours(title="x"), "item 1: unknown key title"),
        (ours(text="  "), "item 1: it has no words"),
        (ours(points=0), "item 1: 0 points"),
        (ours(points=-1), "item 1: importance essential with -1 points"),
        (ours(importance="pitfall", points=-1), "no item has points above 0"),
        ('{"items": [1]}', "item 1: "),
    ],
)
def test_what_is_not_our_own_form(text, said) -> None:
    assert read_rubric(text, "touchstone").problems[0].startswith(said)


def test_what_was_written_becomes_criteria_with_points() -> None:
    listed = "1. The response is short. [Hard Rule]\n2. The response is k\0ind. [Principle]"
    assert [(c.id, c.text, c.points, c.kind, c.importance) for c in read_rubric(listed, "rubric_arm").criteria] == [
        ("g1", "The response is short.", 5, "hard", "essential"),
        ("g2", "The response is k\N{REPLACEMENT CHARACTER}ind.", 3, "principle", "important"),
    ]
    weighted = read_rubric(mams(item(4, "Important: is kind"), item(-1, "Error: is rude")), "mams").criteria
    assert [(c.text, c.points, c.importance) for c in weighted] == [
        ("is kind", 4, "important"),
        ("is rude", -1, "pitfall"),
    ]
    assert read_rubric(ours(points=0), "touchstone").criteria == ()


@pytest.mark.parametrize("form", FORMS)
@given(st.text(max_size=80) | st.text(alphabet='[]{}":,1.#*- Th[]eponsHRulPcikc\n', max_size=120))
def test_any_text_is_read_or_told(form, text) -> None:
    found = read_rubric(text, form)
    assert found.ok == (not found.problems) and (found.items or not found.ok)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    "text", ["# " + " " * 200_000 + "x", "* [ ] **" + "* " * 100_000, "1. " + "[hard rule " * 20_000]
)
def test_long_lines_are_read_in_linear_time(form, text) -> None:
    assert not read_rubric(text, form).ok
