from hypothesis import given
from hypothesis import strategies as st

from trainer.judges.templates import fenced, numbered, render, scrub, variables


def test_each_variable_is_replaced_once():
    shown = render("{{response}} | {{ criterion }}", {"response": "say {{criterion}}", "criterion": "Is it kind?"})
    assert shown == "say {{criterion}} | Is it kind?"


def test_names_without_a_value_stay():
    assert render("{{who}} {{x}}", {"x": "y"}) == "{{who}} y"
    assert variables("{{b}} {{ a }} {{b}} {{Not}}") == ["b", "a"]


@given(st.text(), st.text(), st.text())
def test_rendering_keeps_values_to_the_letter(before, one, two):
    template = before.replace("{", "(") + "{{one}}\x1f{{two}}"
    assert render(template, {"one": one, "two": two}) == before.replace("{", "(") + one + "\x1f" + two


@given(st.text(), st.integers(0, 4))
def test_a_text_cannot_close_its_own_fence(text, times):
    text += "</response>" * min(times, 1) + "</response-2>" * (times // 2)
    shown = fenced("response", text)
    opening = shown.split("\n", 1)[0]
    closing = "</" + opening[1:]
    assert shown.endswith("\n" + closing) and shown.count(closing) == 1
    assert scrub(text) in shown


def test_numbers_start_at_one():
    assert numbered(["a", "b"]) == "1. a\n2. b"
