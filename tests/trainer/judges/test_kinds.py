import json
from dataclasses import replace
from os.path import commonprefix

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trainer.config.errors import ConfigInvalid
from trainer.contracts import Criterion
from trainer.judges.answers import schema
from trainer.judges.calls import expand, read
from trainer.judges.inputs import InputProblem, JudgeInput
from trainer.judges.spec import KINDS, resolve

from .inputs import ANSWERS, INPUT, answer

ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=12,
)


def calls(kind, given=INPUT, **knobs):
    return expand(resolve({"kind": kind, **knobs}), "v", given)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_asks_and_understands_its_own_form_of_answer(kind):
    spec = resolve({"kind": kind})
    call = expand(spec, "v", INPUT)[0]
    shown = "".join(message["content"] for message in call.request.messages)
    assert KINDS[kind].answer_format(spec) in shown and "{{" not in shown
    jsonschema.validate(ANSWERS[kind], call.request.schema)
    reading = read(spec, call.subject, answer(kind))
    assert reading.problem == "" and reading.parsed
    json.dumps(reading.parsed, allow_nan=False)


@pytest.mark.parametrize("kind", KINDS)
def test_no_text_makes_a_parser_raise(kind):
    spec = resolve({"kind": kind})
    subject = expand(spec, "v", INPUT)[0].subject

    @given(st.text() | ANY_JSON.map(json.dumps), st.booleans())
    @settings(max_examples=30)  # one case for each kind; the kinds share most of their code
    def check(raw, complete):
        reading = read(spec, subject, raw, complete=complete)
        assert reading.parsed is not None or reading.problem

    check()
    for raw in ("{" * 5000, "[" * 100_000, '{"met": ' * 3000, "\x00{}", "<think>{}", answer(kind)[:-7]):
        read(spec, subject, raw)


@pytest.mark.parametrize("kind", KINDS)
def test_answers_of_the_right_shape_with_wild_numbers_do_not_raise(kind):
    spec = resolve({"kind": kind})
    subject = expand(spec, "v", INPUT)[0].subject
    wild = [
        answer(kind).replace('"number": 1', f'"number": {n}').replace('"human": 1', f'"human": {n}')
        for n in (0, -1, 99)
    ]
    for raw in (*wild, answer(kind).replace("1.0", "NaN"), answer(kind).replace('"generated": 1', '"generated": 7')):
        read(spec, subject, raw)


def test_the_schema_asks_for_reasons_before_the_verdict_that_rests_on_them():
    spec = resolve({"kind": "pairwise_rubric"})
    assert list(schema(KINDS["pairwise_rubric"].answer(spec))["properties"]) == ["gatekeeper", "criteria", "verdict"]
    plain = resolve({"kind": "pairwise", "scale": "five"})
    assert list(schema(KINDS["pairwise"].answer(plain))["properties"]) == ["reasons", "verdict"]
    assert list(schema(KINDS["criterion"].answer(resolve({"kind": "criterion"})))["properties"]) == [
        "explanation",
        "met",
    ]


def test_criteria_with_a_verifier_are_never_sent_to_a_judge():
    asked = calls("criterion")
    assert [(call.subject["response"], call.subject["criterion"]) for call in asked] == [
        ("r1", "capital"),
        ("r1", "sure"),
        ("r2", "capital"),
        ("r2", "sure"),
    ]
    assert [call.subject["criteria"] for call in calls("checklist")] == [["capital", "sure"]] * 2


def test_only_the_criterion_differs_between_calls_on_one_response_and_it_comes_last():
    first, second = [call.request.messages for call in calls("criterion")[:2]]
    assert first[0] == second[0]
    a, b = first[1]["content"], second[1]["content"]
    assert a.removeprefix(commonprefix([a, b])).startswith("Names Paris.")


def test_a_pair_is_asked_in_both_orders_and_each_sample_has_its_own_key():
    asked = calls("pairwise", votes=2, sampling={"temperature": 1.0, "seed": 7})
    assert [(call.subject["order"], call.subject["sample"], call.request.seed) for call in asked] == [
        ("given", 0, 7),
        ("given", 1, 8),
        ("swapped", 0, 7),
        ("swapped", 1, 8),
    ]
    assert len({call.key for call in asked}) == 4
    given_prompt, swapped_prompt = (asked[i].request.messages[1]["content"] for i in (0, 2))
    assert given_prompt.index("Paris.") < given_prompt.index("Lyon") and swapped_prompt.index(
        "Lyon"
    ) < swapped_prompt.index("Paris.")


def test_the_verdicts_a_pairwise_judge_may_give_follow_its_scale():
    spec = resolve({"kind": "pairwise", "scale": "forced"})
    subject = expand(spec, "v", INPUT)[0].subject
    assert read(spec, subject, '{"reasons": [], "verdict": "tie"}').parsed is None
    five = resolve({"kind": "pairwise", "scale": "five"})
    assert read(five, subject, '{"reasons": [], "verdict": "B much better"}').parsed["strength"] == 2


def test_a_checklist_that_passes_over_an_item_is_partial_and_says_which():
    spec = resolve({"kind": "checklist"})
    subject = expand(spec, "v", INPUT)[0].subject
    reading = read(spec, subject, '{"verdicts": [{"number": 2, "explanation": "", "met": true}]}')
    assert reading.parsed == {"items": {"sure": {"explanation": "", "met": True}}, "missing": ["capital"]}
    assert reading.problem == "no answer on statement 1"
    twice = (
        '{"verdicts": [{"number": 1, "explanation": "", "met": true}, {"number": 1, "explanation": "", "met": false}]}'
    )
    assert read(spec, subject, twice).parsed is None


def test_what_a_long_checklist_passes_over_is_told_in_a_few_words():
    criteria = tuple(Criterion(id=f"c{i}", text=f"Says {i}", points=1) for i in range(600))
    spec = resolve({"kind": "checklist"})
    subject = expand(spec, "v", replace(INPUT, criteria=criteria))[0].subject
    reading = read(spec, subject, '{"verdicts": [{"number": 2, "explanation": "", "met": true}]}')
    assert reading.problem == "no answer on statement 1, 3, 4, 5, 6 and 594 more"
    assert len(reading.parsed["missing"]) == 599


def test_the_gatekeeper_is_named_by_its_criterion():
    spec = resolve({"kind": "pairwise_rubric"})
    call = expand(spec, "v", INPUT)[0]
    parsed = read(spec, call.subject, answer("pairwise_rubric")).parsed
    assert parsed["gatekeeper"]["criterion"] == "capital" and parsed["verdict"] == "A" and parsed["strength"] == -1
    beyond = answer("pairwise_rubric").replace('"gatekeeper": {"number": 1', '"gatekeeper": {"number": 9')
    assert "gatekeeper" in read(spec, call.subject, beyond).problem


def test_a_matrix_with_a_hole_is_no_matrix():
    spec = resolve({"kind": "reason_matcher"})
    subject = expand(spec, "v", INPUT)[0].subject
    assert read(spec, subject, answer("reason_matcher")).parsed == {"scores": [[1.0], [0.0]]}
    for raw in (
        '{"rows": [{"human": 1, "scores": [1]}]}',
        '{"rows": [{"human": 1, "scores": []}, {"human": 2, "scores": [1]}]}',
    ):
        assert read(spec, subject, raw).parsed is None


@pytest.mark.parametrize(
    ("kind", "lacking", "reason"),
    [
        ("criterion", {"criteria": ()}, "the rubric has no criteria"),
        ("checklist", {"responses": {}}, "the example has no response"),
        ("pairwise", {"responses": {"r1": "x"}}, "a pair needs 2 responses; the input has 1"),
        ("rubric_generator", {"conversation": ()}, "the example has no prompt"),
        ("rubric_matcher", {"generated": ()}, "there are no generated items"),
        ("reasons", {"rationale": " "}, "there is no rationale"),
    ],
)
def test_an_input_that_lacks_something_says_what(kind, lacking, reason):
    with pytest.raises(InputProblem, match=reason):
        calls(kind, replace(INPUT, **lacking))


@pytest.mark.parametrize(
    ("raw", "path"),
    [
        ({"kind": "oracle"}, "kind"),
        ({"kind": ["criterion"]}, "kind"),
        ({"kind": "criterion", "prompt": "{{criterion}} {{respnse}} {{response}}"}, "prompt"),
        ({"kind": "criterion", "prompt": "Is it good? {{response}}"}, "prompt"),
        ({"kind": "criterion", "system": "Be fair."}, "prompt"),
        ({"kind": "criterion", "votes": 3}, "votes"),
        ({"kind": "criterion", "sampling": {"temperature": "hot"}}, "sampling.temperature"),
        ({"kind": "criterion", "ordr": "both"}, "ordr"),
        ({"kind": "rubric_generator", "min_items": 9, "max_items": 3}, "max_items"),
    ],
)
def test_a_spec_that_cannot_work_is_refused_at_its_field(raw, path):
    with pytest.raises(ConfigInvalid) as refused:
        resolve(raw)
    assert [problem.path for problem in refused.value.problems] == [path]


def test_keys_depend_on_what_is_asked_and_of_whom_and_on_nothing_else():
    one = calls("criterion")[0]
    assert calls("criterion", replace(INPUT, subject={"run": 1}))[0].key == one.key
    assert expand(resolve({"kind": "criterion"}), "other", INPUT)[0].key != one.key
    assert calls("criterion", sampling={"temperature": 0.5})[0].key != one.key
    # the default template shows no reference
    assert calls("criterion", replace(INPUT, reference="Lyon"))[0].key == one.key


@given(st.text(), st.text())
def test_keys_are_stable_and_tell_texts_apart(a, b):
    def key(text):
        return calls("pointwise", JudgeInput("k", INPUT.conversation, {"r": text}))[0].key

    assert key(a) == key(a)
    assert (key(a) == key(b)) == (a.replace("\x00", "\ufffd") == b.replace("\x00", "\ufffd"))


def test_another_draw_asks_the_same_questions_under_other_keys():
    spec = resolve({"kind": "criterion"})
    first, second = (expand(spec, "v", INPUT, draw) for draw in (0, 1))
    assert [call.request.messages for call in first] == [call.request.messages for call in second]
    assert not {call.key for call in first} & {call.key for call in second}


@pytest.mark.parametrize("kind", KINDS)
def test_what_an_answer_decides_does_not_depend_on_how_it_is_explained(kind):
    spec = resolve({"kind": kind})
    subject = expand(spec, "v", INPUT)[0].subject
    parsed = [read(spec, subject, answer(kind).replace("It says so.", words)).parsed for words in ("One.", "Two.")]
    assert KINDS[kind].decision(parsed[0]) == KINDS[kind].decision(parsed[1]) is not None


def test_a_pairwise_judge_that_answers_in_lines_reads_them_and_needs_five_verdicts():
    spec = resolve({"kind": "pairwise", "form": "lines"})
    call = expand(spec, "v", INPUT)[0]
    assert call.request.schema is None and [each["role"] for each in call.request.messages] == ["user"]
    assert read(spec, call.subject, "- Names Paris.\nVerdict: A much better").parsed == {
        "verdict": "A much better",
        "strength": -2,
        "reasons": ["Names Paris."],
    }
    assert read(spec, call.subject, "- Names Paris.\nVerdict: A").problem == "the verdict is none of the five: A"
    with pytest.raises(ConfigInvalid, match="five verdicts"):
        resolve({"kind": "pairwise", "form": "lines", "scale": "forced"})
    with pytest.raises(ConfigInvalid, match="JSON object"):
        resolve({"kind": "pairwise", "form": "lines", "system": resolve({"kind": "pairwise"}).system})


def test_versions_from_before_there_were_lines_keep_their_digest():
    assert "form" not in resolve({"kind": "pairwise"}).identity()
    assert resolve({"kind": "pairwise", "form": "lines"}).identity()["form"] == "lines"
