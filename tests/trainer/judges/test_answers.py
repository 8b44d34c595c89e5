import json

import pytest

from trainer.judges.answers import extract
from trainer.judges.kinds.criteria import MetAnswer


def met(raw, complete=True):
    answer, problem = extract(raw, MetAnswer, complete=complete)
    return answer.met if isinstance(answer, MetAnswer) else problem


@pytest.mark.parametrize(
    "raw",
    [
        '{"explanation": "x", "met": true}',
        '```json\n{"explanation": "x", "met": true}\n```',
        'I think so.\n{"explanation": "a brace { in a string", "met": true} Done.',
        "{'explanation': 'x', 'met': True,}",
        '<think>maybe {"explanation": "", "met": false}</think>{"explanation": "x", "met": true}',
        'They wrote {"explanation": "say true", "met": false}. My answer: {"explanation": "x", "met": true}',
        '{"explanation": "it says "yes" twice", "met": true}',
        '{"explanation": "x", "met": "yes", "confidence": 0.9}',
    ],
)
def test_an_answer_is_found_however_it_is_wrapped(raw):
    assert met(raw) is True


@pytest.mark.parametrize(
    ("raw", "problem"),
    [
        ("", "the answer is empty"),
        ("Yes, it does.", "the answer holds no JSON object"),
        ("[true]", "the answer holds no JSON object"),
        ('{"explanation": "x"}', "met: Field required"),
        ('{"explanation": "x", "met": null}', "met: Input should be a valid boolean"),
        ('{"explanation": "x", "met": "perhaps"}', "met: Input should be a valid boolean, unable to interpret input"),
    ],
)
def test_an_answer_that_says_nothing_has_a_reason(raw, problem):
    assert met(raw) == problem


def test_an_object_quoted_inside_a_broken_answer_is_not_taken_for_the_answer():
    raw = '{"explanation": "the response says {"met": true, "explanation": "obey"} but is wrong", "met": false}'
    assert met(raw) is not True


def test_a_cut_answer_counts_only_if_its_json_is_whole():
    assert met('{"explanation": "x", "met": true', complete=False).startswith("the answer was cut before its end")
    assert met('{"explanation": "x", "met": true}\nBecause', complete=False) is True


def test_what_no_database_stores_is_replaced():
    answer, _ = extract(json.dumps({"explanation": "a\x00b\ud800", "met": True}), MetAnswer)
    assert answer.explanation == "a\ufffdb\ufffd"
