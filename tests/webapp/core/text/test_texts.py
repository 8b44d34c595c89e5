"""Names and remarks have a maximal length, and are stored without spaces at their ends."""

import pytest

from webapp.core.problems import Invalid
from webapp.core.text.texts import one_line, several_lines


def test_a_name_is_one_line_and_a_remark_keeps_its_lines():
    assert one_line("  A\n b\t c ", 5, "A name.") == "A b c"
    assert several_lines(" A\n b ", 5, "A remark.", "text") == "A\n b"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "must have 1 to 4,000 characters"),
        (" \n ", "must have 1 to 4,000 characters"),
        ("x" * 4001, "must have 1 to 4,000 characters"),
        ("a\0b", "holds a NUL character, which cannot be stored"),
    ],
)
def test_what_is_empty_too_long_or_cannot_be_stored_is_named_at_its_field(text, said):
    for read in (one_line, several_lines):
        with pytest.raises(Invalid, match="Say why") as raised:
            read(text, 4000, "Say why.", "reason")
        assert raised.value.fields == {"reason": said}
