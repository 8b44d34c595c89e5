"""Arguments are checked at the place where they are written. No text makes a verifier raise an error or run for long."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trainer.contracts import VerifierSpec
from trainer.verifiers import REGISTRY, VerifierError, check_spec, verify

SPECS = [VerifierSpec(name=v.name, args=shown.args) for v in REGISTRY.values() for shown in v.examples]


def met(name: str, text: str, **args: object) -> bool | None:
    return verify(VerifierSpec(name=name, args=args), text).met


@pytest.mark.parametrize(
    ("name", "args", "field", "part"),
    [
        ("word_cuont", {}, "name", "unknown verifier 'word_cuont'"),
        ("word_count", {}, "args", "give min, max or exactly"),
        ("word_count", {"min": 3, "max": 2}, "args", "min 3 is larger than max 2"),
        ("word_count", {"exactly": 3, "max": 5}, "args", "either exactly"),
        ("word_count", {"maximum": 5}, "args.maximum", "unknown key"),
        ("word_count", {"max": "5"}, "args.max", "integer"),
        ("word_count", {"max": True}, "args.max", "integer"),
        ("word_count", {"min": -1}, "args.min", "greater than or equal"),
        ("must_contain", {"texts": []}, "args.texts", "at least 1"),
        ("must_contain", {"texts": [""]}, "args.texts.0", "at least 1"),
        ("must_contain", {"texts": ["a"], "match": "some"}, "args.match", "'any' or 'all'"),
        ("regex", {"pattern": "("}, "args", "not a valid pattern"),
        ("regex", {"pattern": "(?:(?:a{1000}){1000}){1000}"}, "args", "counted repeats"),
        ("language", {"code": "xx"}, "args.code", "Input should be"),
        ("casing", {}, "args.style", "required"),
    ],
)
def test_a_bad_spec_names_its_field(name, args, field, part):
    with pytest.raises(VerifierError) as caught:
        check_spec(VerifierSpec(name=name, args=args))
    assert caught.value.field == field
    assert part in caught.value.message


@given(
    text=st.text(st.characters(exclude_categories=()), max_size=300) | st.text("a.!?- *1)(\n\"'{}[]é我", max_size=300)
)
@settings(max_examples=100, deadline=None)
def test_no_text_makes_a_verifier_raise(text):
    for spec in SPECS:
        assert verify(spec, text).met in (True, False, None)


HOSTILE = (
    "a",
    ".",
    "!)",
    "- ",
    "* ",
    "1. ",
    "\n",
    "(",
    "a.",
    "a'",
    "1,",
    "[",
    '{"a":',
    "?",
    "我",
    "。”",
    "é ",
    "#",
    "``",
    "_*",
)


@pytest.mark.parametrize("unit", HOSTILE)
def test_time_stays_linear_on_long_monotonous_text(unit):
    text = unit * (40_000 // len(unit)) + "x"
    for spec in SPECS:
        started = time.process_time()
        verify(spec, text)
        assert time.process_time() - started < 3, spec.name


def test_a_pattern_that_backtracks_for_ever_gives_no_verdict():
    finding = verify(VerifierSpec(name="regex", args={"pattern": "(a|aa)+$"}), "a" * 200 + "b")
    assert finding.met is None
    assert "gave up" in finding.note


def test_notes_say_what_was_found_and_what_was_asked():
    assert verify(VerifierSpec(name="word_count", args={"min": 2, "max": 3}), "one").note == (
        "1 word; asked: at least 2, at most 3"
    )


def test_typographic_apostrophes_match_plain_ones():
    assert met("must_contain", "I don’t know", texts=["don't"])
    assert met("starts_with", "I’m here", texts=["I'm"])


def test_whole_words_are_bounded_only_where_letters_meet():
    assert met("must_contain", "Hi!there", texts=["!"], whole_word=True)
    assert not met("must_contain", "classes", texts=["class"], whole_word=True)
    assert met("must_contain", "subclass class", texts=["class"], whole_word=True)
    assert not met("starts_with", "Nothing", texts=["No"])
    assert met("starts_with", "No, thanks", texts=["No"])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('```json\n{"a": 1}\n```', True),
        ('{"a": NaN}', False),
        ('["a"]', False),
        ('{"a": 1} and more', False),
        ("[" * 100_000, False),
        ('{"a": ' + "9" * 10_000 + "}", False),
    ],
)
def test_json_must_be_one_object(text, expected):
    assert met("valid_json", text, required=["a"]) is expected


def test_json_may_forbid_other_keys():
    assert not met("valid_json", '{"a": 1, "b": 2}', required=["a"], only_required=True)


def test_steps_that_start_over_are_not_consecutive():
    assert not met("numbered_steps", "1. a\n2. b\n1. c", min=2)


@pytest.mark.parametrize("name", ["word_length", "repeats", "casing", "language", "valid_json"])
def test_an_empty_text_earns_nothing(name):
    spec = next(spec for spec in SPECS if spec.name == name)
    assert verify(spec, " \n").met is False


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("The train leaves at nine and arrives before noon.", "en"),
        ("Der Zug fährt um neun Uhr ab und kommt vor Mittag an.", "de"),
        ("Поезд отправляется в девять часов утра.", "ru"),
        ("火车九点出发。", "zh"),
        ("電車は九時に出ます。", "ja"),
        ("기차는 아홉 시에 출발합니다.", "ko"),
    ],
)
def test_languages_are_told_apart(text, code):
    assert met("language", text, code=code)
