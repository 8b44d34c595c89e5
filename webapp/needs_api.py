"""The API of everything that needs attention: the lines of the first page. Reading needs the role reviewer."""

from typing import Literal

from django.http import HttpRequest
from ninja import Router, Schema
from pydantic import Field

from webapp.accounts.access import require
from webapp.accounts.models import Role

from . import needs

router = Router(tags=["needs"])


class AttentionItemOut(Schema):
    tone: Literal["bad", "warn", "info", "good"]
    title: str
    text: str = Field(description="The reason, or what a person can do; may be empty")
    href: str = Field(description="The page where a person deals with it")


class NeedsOut(Schema):
    now: list[AttentionItemOut] = Field(description="Things that need somebody, the most urgent first")
    waiting: list[AttentionItemOut] = Field(description="Evaluations that wait in the line, in its order")
    news: list[AttentionItemOut] = Field(description="Work that ended well since yesterday")


@router.get("/needs", response=NeedsOut, summary="Things that need somebody, and work that ended well since yesterday")
def needs_of(request: HttpRequest) -> needs.Needs:
    return needs.rows_that_need_attention(require(request, Role.REVIEWER))
