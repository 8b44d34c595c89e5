"""What services raise when a request cannot be carried out; pages and the API each show it in their own way."""

from dataclasses import dataclass, field


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


class Invalid(Problem):
    """The input is wrong, at the fields named."""


class Conflict(Problem):
    """The input is fine, but the object is not in a state that allows it (409)."""

    def __init__(self, message: str, code: str = "conflict", **extra: object) -> None:
        super().__init__(message, code=code, status=409, extra=extra)
