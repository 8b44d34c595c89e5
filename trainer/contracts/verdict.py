"""The verdict of a verifier, a judge or a person about one criterion and one response."""

from typing import Literal

from .base import Record


class Verdict(Record):
    """`met` is None if there is no verdict; `note` then says why. A missing verdict never counts as false."""

    criterion_id: str
    met: bool | None
    source: Literal["verifier", "judge", "human"] = "verifier"
    note: str = ""
    raw: str = ""
    cost: float | None = None
    """The cost of the judge's calls, in the unit of the endpoint's prices; None if it is not known or no call was made."""
