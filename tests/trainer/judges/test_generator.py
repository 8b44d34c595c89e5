"""Rubric generators: the instructions ask for each form, and each form is read as the same rubric."""

import json

import pytest

from trainer.judges.calls import again, expand, read
from trainer.judges.kinds.generator import ADVICE, FORMS
from trainer.judges.rubric_forms import read_rubric
from trainer.judges.spec import KINDS, digest, resolve

from .inputs import INPUT, STORED_GENERATOR

MAMS = [
    {"title": "Capital", "description": "Key: names Paris", "weight": 5},
    {"title": "Unsure", "description": "Error: sounds unsure", "weight": -1},
]
ANSWERED = {
    "mams": json.dumps(MAMS),
    "rubric_arm": "1. The response names Paris. [Hard Rule]\n2. The response is sure of itself. [Principle]",
    "openrubrics": "### Hard constraints\n- [ ] **Capital**: names Paris\n### Pitfalls\n- [ ] **Unsure**: sounds unsure",
}


def generator(form, **knobs):
    return resolve({"kind": "rubric_generator", "form": form, **knobs})


@pytest.mark.parametrize("form", ANSWERED)
def test_a_form_of_text_is_asked_for_without_a_schema_and_read(form):
    spec = generator(form)
    call = expand(spec, "v", INPUT)[0]
    assert FORMS[form] in call.request.messages[0]["content"] and "{{" not in call.request.messages[0]["content"]
    assert call.request.schema is None and KINDS["rubric_generator"].schema(spec) is None
    block = f"```json\n{ANSWERED[form]}\n```"
    for raw in (ANSWERED[form], f"<think>hm</think>{ANSWERED[form]}", block, f"<think>hm</think>\n\n{block}\n"):
        reading = read(spec, call.subject, raw)
        assert reading.problem == ""
        assert [item["kind"] for item in reading.parsed["items"]][0] == ("principle" if form == "mams" else "hard")
        assert all(item["points"] and item["text"] for item in reading.parsed["items"])


@pytest.mark.parametrize("form", ANSWERED)
def test_what_is_cut_or_is_no_rubric_is_missing(form):
    spec = generator(form)
    assert read(spec, {}, ANSWERED[form], complete=False).parsed is None
    assert "cut" in read(spec, {}, ANSWERED[form], complete=False).problem
    for raw in ("", "I would rather not.", "[[[["):
        reading = read(spec, {}, raw)
        assert reading.parsed is None and reading.problem


def test_items_that_can_be_read_are_used_and_the_rest_is_told():
    spec = generator("rubric_arm")
    reading = read(spec, {}, "Sure!\n" + ANSWERED["rubric_arm"])
    assert len(reading.parsed["items"]) == 2 and reading.problem.startswith("line 1 is not an item")
    only = generator("mams", max_items=1, min_items=1)
    assert read(only, {}, ANSWERED["mams"]).problem == "2 items; asked for 1 to 1"


def test_faults_alone_are_no_rubric():
    reading = read(generator("mams"), {}, json.dumps(MAMS[1:]))
    assert reading.parsed is None and "positive points" in reading.problem


def test_whoever_answers_in_text_is_not_asked_for_json_again():
    request = expand(generator("rubric_arm"), "v", INPUT)[0].request
    assert "JSON" not in again(request, "no", "line 1 is not an item").messages[-1]["content"]
    ours = expand(generator("touchstone"), "v", INPUT)[0].request
    assert "JSON object only" in again(ours, "no", "it is empty").messages[-1]["content"]


@pytest.mark.parametrize("form", ("openrubrics", "rubric_arm"))
def test_the_form_that_is_shown_is_itself_in_the_form(form):
    """The instructions show an example. Its lines can be read in the form; the text around them is for the reader."""
    shown = [line for line in FORMS[form].splitlines() if line.startswith(("1.", "2.", "#", "-"))]
    assert read_rubric("\n".join(shown), form).ok


# the key for STORED_GENERATOR, endpoint 7 and INPUT, written down by the program before generators had `form`
STORED_DIGEST = "65b3f91f1778358b1a817ab33243edfc274a2b69e04ba8cba4218f6d7f8ef0c3"
STORED_KEY = "3d800ee3d263b43db6f840aee19b5d309c00e57824a64f5a7aedd76ced1bc34a"


def test_a_version_from_before_there_were_forms_asks_what_it_asked():
    spec = resolve(STORED_GENERATOR)
    (call,) = expand(spec, STORED_DIGEST, INPUT)
    assert call.key == STORED_KEY  # stored verdicts are found again under this key
    assert digest(spec, "7") == STORED_DIGEST  # saving it again gives the same digest


@pytest.mark.parametrize("form", FORMS)
def test_a_form_is_part_of_what_a_version_is(form):
    named = {**STORED_GENERATOR, "form": form}
    assert (digest(resolve(named), "7") == STORED_DIGEST) == (form == "touchstone")


@pytest.mark.parametrize("form", FORMS)
def test_our_own_form_is_explained_beside_its_shape(form):
    asked = expand(generator(form), "v", INPUT)[0].request.messages[0]["content"]
    assert FORMS[form] in asked and (ADVICE["touchstone"] in asked) == (form == "touchstone")
