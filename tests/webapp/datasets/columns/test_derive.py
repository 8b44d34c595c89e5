"""The small columns of an example match its texts."""

from hypothesis import given
from hypothesis import strategies as st

from webapp.datasets.columns.derive import EXCERPT, excerpt

PIECES = st.lists(
    st.sampled_from([" ", "  ", "\n", "\t", "\0", "\u00a0", "\u3000", "word", "天空", "x" * 290]), max_size=9
)


@given(PIECES.map("".join))
def test_an_excerpt_is_one_line_whatever_white_space_the_text_has(text):
    assert excerpt(text) == " ".join(text[: 2 * EXCERPT].replace("\0", " ").split())[:EXCERPT].rstrip()
