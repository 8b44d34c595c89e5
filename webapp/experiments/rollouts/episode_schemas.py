"""Bodies of the API of episodes."""

from ninja import Schema
from pydantic import Field


class TurnOut(Schema):
    number: int
    title: str = Field(description="Who did what, such as `Policy calls search`")
    author: str = Field(description="`policy` or `env`")
    kind: str = Field(description="`text`, `reasoning`, `call` or `result`")
    tool: str
    call: str = Field(description="The id by which a result names its call; empty if none was recorded")
    failed: bool
    tokens: int
    seconds: float | None
    reward: float | None = Field(description="The reward of the turn by itself; null if nobody recorded it")
    size: int = Field(description="Characters of its text")
    excerpt: str = Field(description="The beginning of its text")


class TurnList(Schema):
    items: list[TurnOut]
    next: str | None
    total: int = Field(description="All turns of the episode")


class TurnTextOut(Schema):
    number: int
    part: int
    text: str
    next: int | None = Field(description="The part that follows; null at the end of the text")


class HitOut(Schema):
    number: int
    words: str = Field(description="The words around the first place")


class HitList(Schema):
    items: list[HitOut]
    more: bool = Field(description="Whether more turns may have it")
