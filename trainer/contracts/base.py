"""The base of every record that crosses a process boundary."""

from pydantic import BaseModel, ConfigDict


class Record(BaseModel):
    """A record is frozen, and unknown keys are errors: a misspelt field fails where it is written, not where it is missing later.

    Numbers are finite. An undefined value is left out or None, because neither JSON nor a chart can show NaN.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)
