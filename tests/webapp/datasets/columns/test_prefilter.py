"""A search in many texts at once finds everything that a search in each text would find."""

from hypothesis import given
from hypothesis import strategies as st

from trainer.contracts import Example
from webapp.datasets.columns import prefilter
from webapp.datasets.columns.derive import BOOSTERS, CONSTRAINTS, HEDGES, READ, columns
from webapp.datasets.encoding import arrow
from webapp.datasets.index.tokenizer import indexed_text

PIECES = (
    *BOOSTERS,
    *HEDGES,
    *CONSTRAINTS,
    "\n- ",
    "\n2. ",
    "- ",
    "# ",
    "| ",
    "**",
    "```",
    "thin\u212a",
    "\u0130",
    "ſ",
    "x",
    " ",
)
pieces = st.sampled_from(PIECES).flatmap(lambda each: st.sampled_from([each, each.upper(), each.title()]))
text = st.lists(pieces, max_size=8).map("".join)


def example(prompt, one, other):
    return Example.model_validate(
        {
            "key": "k",
            "prompt": [{"role": "user", "content": prompt}],
            "responses": [{"id": "a", "text": one}, {"id": "b", "text": other}],
            "preferences": [{"a": "a", "b": "b", "strength": -2}],
        }
    )


@given(st.lists(st.builds(example, text, text, text), max_size=5))
def test_what_is_known_of_an_example_is_the_same_with_it_and_without(examples):
    found = list(prefilter.signs_of(arrow.texts(map(indexed_text, examples))))
    assert [columns(each, signs=one) for each, one in zip(examples, found, strict=True)] == list(map(columns, examples))


def test_plain_texts_are_not_looked_through():
    (found,) = prefilter.signs_of(arrow.texts([indexed_text(example("Which colour is the sky?", "Blue.", "Green."))]))
    assert found == (False, False, False)


def test_a_sign_behind_what_is_read_of_a_long_text_does_no_harm():
    long = example("x" * READ + " exactly", "y" * READ + " certainly", "z")
    (found,) = prefilter.signs_of(arrow.texts([indexed_text(long)]))
    assert found.tone and found.constraints
    assert columns(long, signs=found) == columns(long)
