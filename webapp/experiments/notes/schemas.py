"""Notes on tokens, as OpenAPI shows them."""

from datetime import datetime
from typing import Annotated, Literal

from ninja import Schema
from pydantic import ConfigDict, Field

from ..parameters import Step
from .services import MAX_TEXT

Number = Annotated[int, Field(ge=0, lt=2**31)]


class NoteIn(Schema):
    """Tokens of a response, by its place in the run, and what is said of them."""

    model_config = ConfigDict(
        extra="forbid",
        json_schema_extra={
            "example": {"step": 12, "group": 0, "index": 3, "start": 40, "end": 46, "text": "It repeats itself here."}
        },
    )

    step: Step
    phase: Literal["train", "eval"] = "train"
    group: Number
    index: Number
    start: Annotated[Number, Field(description="The first token, counted from 0")]
    end: Annotated[Number, Field(description="The token behind the last one")]
    quote: Annotated[
        str | None, Field(max_length=20_000, description="Their text as you see it: 409 if it is another")
    ] = None
    text: Annotated[str, Field(max_length=MAX_TEXT, description="Markdown")]


class NoteChange(Schema):
    model_config = ConfigDict(
        extra="forbid", json_schema_extra={"example": {"text": "It repeats itself.", "revision": 1}}
    )

    text: Annotated[str, Field(max_length=MAX_TEXT, description="Markdown")]
    revision: Annotated[int, Field(ge=1, lt=2**31, description="The one you have read: 409 if there is a newer one")]


class NoteOut(Schema):
    id: int
    step: int
    phase: str
    group: int
    index: int
    example_key: str = Field(description="The key of the prompt; empty if the response is no longer there")
    start: int
    end: int
    quote: str = Field(description="The text of the tokens when the note was written")
    holds: bool = Field(description="False: the tokens there are others now, and the note marks nothing")
    text: str
    revision: int
    author: str = Field(description="Empty: the account was erased")
    created_at: datetime
    changed_at: datetime | None
    may_change: bool
    may_delete: bool
    url: str = Field(description="The page that shows it")


class NoteList(Schema):
    items: list[NoteOut]
    next: str | None
