"""Postgres text cannot hold a NUL, but models do sample them: they are stored as the sign for it."""

import re

# an even number of backslashes before it makes it an escape
_ESCAPED = re.compile(rb"(?<!\\)((?:\\\\)*)\\u0000")
_VISIBLE = rb"\1\\u2400"


def show_nul(body: bytes) -> bytes:
    """A JSON text in which every escaped NUL is the sign ␀."""
    return _ESCAPED.sub(_VISIBLE, body) if b"\\u0000" in body else body
