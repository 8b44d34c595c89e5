"""Entity tags (RFC 7644, 3.14): a client that changes a resource may say which version it has seen."""

from collections.abc import Callable
from typing import TypeVar

from scim2_models import PreconditionFailedException

Seen = TypeVar("Seen")
Altered = Callable[[Seen], Seen]  # from a resource to what becomes of it


def checked(expected: str, version: int) -> None:
    """Raises PreconditionFailedException if `expected`, an If-Match header, names other versions."""
    if expected and not named(expected, version):
        raise PreconditionFailedException(detail="The resource has changed since; read it again.")


def named(header: str, version: int) -> bool:
    """Whether an If-Match or If-None-Match header names the version."""
    tags = [each.strip().removeprefix("W/").strip('"') for each in header.split(",")]
    return "*" in tags or str(version) in tags
