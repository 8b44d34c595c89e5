"""The values that property tests draw depend only on the test."""

from hypothesis import given
from hypothesis import strategies as st
from hypothesis.internal.conjecture import providers

import trainer.config  # noqa: F401 - modules of ours that have constants


@given(st.text())
def test_no_constant_of_our_modules_is_drawn(text):
    found = providers._get_local_constants()
    assert not any(found.set_for_type(kind) for kind in ("integer", "float", "bytes", "string"))
