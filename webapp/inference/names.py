"""The names that a model or an endpoint may have."""

from webapp.core.text.texts import one_line

MAX_NAME = 120


def checked(name: str, thing: str) -> str:
    """`name` without needless blanks. Raises Invalid at `name`."""
    return one_line(name, MAX_NAME, f"The {thing} needs a name.")
