"""What a verifier or judge said about one criterion and one response."""

from typing import Literal

from .base import Record


class Verdict(Record):
    """`met` is None when no verdict could be had; `note` then says why. Missing is never counted as false."""

    criterion_id: str
    met: bool | None
    source: Literal["verifier", "judge", "human"] = "verifier"
    note: str = ""
    raw: str = ""
    cost: float | None = None
    """Of the judge's calls about it, in the unit of the endpoint's prices; None where it is not known or nothing was called."""
