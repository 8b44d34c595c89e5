"""The base of every record that crosses a process boundary."""

from pydantic import BaseModel, ConfigDict


class Record(BaseModel):
    """Frozen and strict about its keys: a misspelt field fails where it was written, not where it is missed.

    Numbers are finite: an undefined value is left out or None, because neither JSON nor a chart has a place for NaN.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)
