"""`{% query %}` makes the query string of an address that is too long for a line of a template."""

from django.template import Context, Template


def drawn(text: str, **context: object) -> str:
    return Template("{% load ui %}" + text).render(Context(context))


def test_parameters_are_quoted_and_those_without_a_value_are_left_out():
    text = '?{% query field=field.key pair=pair names=named|yesno:"1," %}'
    assert drawn(text, field={"key": "a&b c"}, pair="x", named=True) == "?field=a%26b+c&amp;pair=x&amp;names=1"
    assert drawn(text, field=None, pair=None, named=False) == "?"


def test_a_number_that_is_zero_is_a_value():
    assert drawn("{% query first=first %}", first=0) == "first=0"
