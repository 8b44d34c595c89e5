"""What a model or an endpoint may be called."""

from webapp.core.problems import Invalid

MAX_NAME = 120


def checked(name: str, thing: str) -> str:
    """`name` without needless blanks. Raises Invalid at `name`."""
    name = " ".join(name.split())
    if not name or len(name) > MAX_NAME:
        raise Invalid(f"The {thing} needs a name.", {"name": f"must have 1 to {MAX_NAME} characters"})
    return name
