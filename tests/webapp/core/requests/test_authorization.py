"""The token of a request is read in the same way on every route."""

import pytest

from webapp.core.requests.authorization import bearer_token


@pytest.mark.parametrize(
    "header, token",
    [
        ("Bearer ts_abc", "ts_abc"),
        ("bearer   ts_abc ", "ts_abc"),
        ("BEARER a b", "a b"),
        ("Basic dXNlcjpwYXNz", ""),
        ("Bearer", ""),
        ("ts_abc", ""),
        ("", ""),
        (None, ""),
    ],
)
def test_the_token_of_a_header(header, token):
    assert bearer_token(header) == token
