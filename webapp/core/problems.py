"""Errors that services raise if a request cannot be carried out; pages and the API each show them in their own way."""

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:  # confined children raise problems as well, and load no Django for it
    from django.http import HttpRequest

UNNAMED = {  # code and message of an error that has none of its own, by status
    400: ("bad_request", "The request cannot be read."),
    403: ("forbidden", "Not allowed."),
    404: ("not_found", "This address does not exist, or you may not see it."),
    405: (
        "method_not_allowed",
        "This address does not accept that method; the header Allow names the methods that it accepts.",
    ),
    500: ("internal", "An error happened on the server. Give the id when you report it."),
    503: ("unavailable", "The database does not answer. Try again."),
}


def error_body(
    request: "HttpRequest", code: str, message: str, fields: list[dict[str, str]] | None = None
) -> dict[str, Any]:
    """The format of every error of the API: a code for programs, a message for people, the wrong fields, and an id to quote."""
    return {"error": {"code": code, "message": message, "fields": fields or [], "id": getattr(request, "id", "")}}


@dataclass
class Problem(Exception):
    """`code` is stable and for programs, `message` is for people, `fields` says where: dotted path -> reason.

    `extra` goes beside the error in the API's body, for callers that can act on it.
    """

    message: str
    fields: dict[str, str] = field(default_factory=dict)
    code: str = "invalid"
    status: int = 422
    extra: dict[str, object] = field(default_factory=dict)

    def __str__(self) -> str:
        return self.message

    @property
    def sentence(self) -> str:
        """The message with the reasons at its fields, for a text in which other sentences follow."""
        reasons = "; ".join(reason.removesuffix(".") for reason in self.fields.values())
        return f"{self.message.removesuffix('.')}: {reasons}." if reasons else self.message


class Invalid(Problem):
    """The input is wrong, at the fields named."""


class Conflict(Problem):
    """The input is fine, but the object is not in a state that allows it (409)."""

    def __init__(self, message: str, code: str = "conflict", **extra: object) -> None:
        super().__init__(message, code=code, status=409, extra=extra)
