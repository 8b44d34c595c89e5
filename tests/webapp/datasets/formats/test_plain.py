"""The fast reader of plain pairs gives the same result as the validator, or none."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trainer.contracts import Example
from webapp.datasets.formats import fields, plain_pairs

text = st.text(max_size=20)
anything = st.one_of(st.none(), st.integers(), text, st.lists(text, max_size=2))
message = st.fixed_dictionaries(
    {"role": st.sampled_from(["user", "assistant", "system", "judge"]), "content": anything}
)


@st.composite
def rows(draw):
    data = {
        "key": draw(st.one_of(text, st.text(min_size=201, max_size=210), anything)),
        "prompt": draw(st.lists(message, max_size=3)),
        "meta": draw(st.one_of(st.dictionaries(text, anything, max_size=2), anything)),
        "responses": [{"id": "a", "text": draw(anything)}, {"id": "b", "text": draw(anything)}],
        "preferences": fields.CHOSEN,
    }
    for name in draw(st.sets(st.sampled_from(["source", "domain", "split", "tags"]))):
        data[name] = draw(anything)
    return data


@given(rows())
def test_it_is_the_record_that_the_validator_makes(data):
    short = plain_pairs.pair(data)
    if short is not None:
        full = Example.model_validate(data)
        assert short == full
        assert short.model_fields_set == full.model_fields_set
        assert plain_pairs.canonical(short).decode() == full.canonical()


def test_a_plain_pair_does_take_it():
    data = {"key": "k", "prompt": fields.messages("Hi", "prompt"), "meta": {}, **fields.pair("yes", "no")}
    assert plain_pairs.pair(data) == Example.model_validate(data)
    assert plain_pairs.canonical(plain_pairs.pair(data)).decode() == Example.model_validate(data).canonical()


finite = st.floats(allow_nan=False, allow_infinity=False)


@given(text, text, st.dictionaries(text, st.one_of(text, st.integers(), st.booleans(), finite), max_size=3))
def test_its_short_canonical_text_is_the_canonical_text(one, other, meta):
    data = {
        "key": "k",
        "prompt": [{"role": "user", "content": one}],
        "meta": meta,
        "source": other,
        **fields.pair(one, one + "!"),
    }
    made = plain_pairs.pair(data)
    made.__dict__["split"] = "train"
    assert plain_pairs.canonical(made).decode() == made.canonical()


@pytest.mark.parametrize("value", [float("inf"), float("nan")])
def test_a_number_that_json_lacks_is_refused_as_in_the_general_way(value):
    data = {"key": "k", "prompt": fields.messages("Hi", "prompt"), "meta": {"x": value}, **fields.pair("yes", "no")}
    with pytest.raises(ValueError, match="not JSON compliant"):
        plain_pairs.canonical(plain_pairs.pair(data))


def test_what_is_not_plain_is_left_to_the_validator():
    data = {"key": "k", "prompt": fields.messages("Hi", "prompt"), "meta": {}, **fields.pair("yes", "no")}
    assert plain_pairs.pair({**data, "tags": ["x"]}) is None
    assert plain_pairs.pair({**data, "preferences": []}) is None
    assert plain_pairs.pair({**data, "key": ""}) is None
