"""Numbers as pages show them."""

import pytest
from django.template import Context, Template


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0.8512, "0.85"),
        (1234.5, "1,234.50"),
        (0.0, "0.00"),
        (0.0012, "0.0012"),  # a length ratio; it was 1.2e-03
        (-0.00012345, "-0.00012"),
        (0.0000015, "0.0000015"),
        (0.00000015, "1.5e-07"),
        (1200, "1,200"),
        (None, "–"),
    ],
)
def test_a_small_number_is_written_without_a_power(value, shown):
    page = Template("{% load ui %}{{ value|figure:2 }}").render(Context({"value": value}))
    assert page == shown
