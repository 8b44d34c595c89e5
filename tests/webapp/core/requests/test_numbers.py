"""Numbers in requests are read or refused, with any number of digits."""

import pytest

from webapp.core.requests.numbers import whole_number

ENDLESS = "9" * 5_000  # more digits than Python converts


def test_digits_are_read_up_to_the_number_of_them_that_is_asked_for():
    assert (whole_number("0"), whole_number("0042"), whole_number("9" * 18)) == (0, 42, 10**18 - 1)
    assert whole_number("123", digits=3) == 123
    assert whole_number("1234", digits=3) is None


@pytest.mark.parametrize("text", ["", "-1", "+1", "1.0", " 1", "1_000", "٣", "²", "x", "9" * 19, ENDLESS])
def test_anything_else_is_no_number(text):
    assert whole_number(text) is None


@pytest.mark.parametrize(
    ("address", "status"),
    [
        ("/experiments?experiment=", 200),
        ("/runs/compare?ids=", 404),
        ("/api/v1/runs/compare?ids=", 422),
        ("/projects/new?from=", 200),
        ("/evaluations/new?dataset=", 200),
    ],
)
def test_a_page_that_is_asked_for_an_endless_number_answers(as_researcher, address, status):
    assert as_researcher.get(address + ENDLESS).status_code == status


@pytest.mark.parametrize(
    "form", [{"rewards.__count": ENDLESS}, {"rewards.__count": "1", "action": f"remove:rewards.{ENDLESS}"}]
)
def test_a_form_with_an_endless_number_is_drawn_again(as_researcher, form):
    assert as_researcher.post("/runs/new", form).status_code in (200, 422)
