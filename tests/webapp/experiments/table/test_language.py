"""A query is read exactly, and an error names the place of an unreadable part."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from webapp.experiments.table.language import QueryProblem, parse, quote_text


def parsed_terms(text: str) -> list[tuple]:
    return [
        (term.field and term.field.text, term.operator, [value.text for value in term.values], term.turned)
        for term in parse(text)
    ]


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("", []),
        ("  ", []),
        ("state:finished", [("state", ":", ["finished"], False)]),
        ("state:finished,failed", [("state", ":", ["finished", "failed"], False)]),
        ("config.optim.lr<1e-5", [("config.optim.lr", "<", ["1e-5"], False)]),
        ("eval/score>=0.4 x!=2", [("eval/score", ">=", ["0.4"], False), ("x", "!=", ["2"], False)]),
        ("max(eval/score)>-1", [("max(eval/score)", ">", ["-1"], False)]),
        ("-tag:old demo", [("tag", ":", ["old"], True), (None, "~", ["demo"], False)]),
        ('group:"two words"', [("group", ":", ["two words"], False)]),
        ('"odd: key"~x', [("odd: key", "~", ["x"], False)]),
        ("created>2026-11-01T10:30", [("created", ">", ["2026-11-01T10:30"], False)]),
        ('"run 7"', [(None, "~", ["run 7"], False)]),
        ('name:"say ""hi""",b x', [("name", ":", ['say "hi"', "b"], False), (None, "~", ["x"], False)]),
    ],
)
def test_terms(text, terms):
    assert parsed_terms(text) == terms


@pytest.mark.parametrize(
    ("text", "start", "end"),
    [
        ("state:", 5, 6),
        ("a:b state:", 9, 10),
        (":x", 0, 1),
        ('name:"open', 5, 10),
        ('name:"open""', 5, 12),
        ("-", 0, 1),
        ("- a", 0, 1),
        ("a!b", 1, 2),
        ("state:a,", 7, 8),
        ("x" * 1001, 1000, 1001),
        ("w " * 40, 60, 80),
    ],
)
def test_what_cannot_be_read_is_named_at_its_place(text, start, end):
    with pytest.raises(QueryProblem) as told:
        parse(text)
    assert (told.value.start, told.value.end) == (start, end)
    assert told.value.message


@given(st.text(max_size=60))
def test_any_text_is_read_or_refused_within_it(text):
    try:
        terms = parse(text)
    except QueryProblem as problem:
        assert 0 <= problem.start <= problem.end <= len(text)
        return
    assert all(0 <= term.start < term.end <= len(text) for term in terms)
    assert all(
        text[value.start : value.end].replace('"', "") == value.text.replace('"', "")
        for term in terms
        for value in term.values
    )


@given(st.text(min_size=1, max_size=40).filter(str.strip))
def test_what_is_quoted_comes_back_as_one_value(text):
    (term,) = parse(f"tag:{quote_text(text)}")
    assert [value.text for value in term.values] == [text]
