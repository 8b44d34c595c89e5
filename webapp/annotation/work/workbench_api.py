"""Requests of the workbench besides tasks: the person's keys, and texts as formatted text."""

from typing import Annotated

from django.http import HttpRequest
from ninja import Path, Router, Schema
from pydantic import Field

from webapp.accounts.access import require
from webapp.core.problems import Invalid
from webapp.core.requests.openapi import StrictIn
from webapp.core.text.markdown import MAX_CHARACTERS, line, markdown, preview

from .. import access
from . import shortcut_keys

router = Router(tags=["annotation"])
Id = Annotated[int, Path(ge=1, le=2**63 - 1)]


class Keys(StrictIn):
    keys: dict[str, str] = Field(description='Own keys, {action: key}: {"submit": "Mod+Enter", "flag": "x"}')


class Texts(StrictIn):
    texts: list[str] = Field(max_length=64, description="Markdown with formulas between dollar signs")
    inline: bool = Field(False, description="As text within a line: a criterion, a reason")
    preview: bool = Field(
        False, description="The beginning of each text, as one line for a list; has precedence over `inline`"
    )


class Formatted(Schema):
    html: list[str] = Field(description="Safe HTML, one per text; formulas as their source in span.math")


@router.patch("/projects/{project_id}/keys", response=Keys, summary="Choose your own keys for a project's workbench")
def set_keys(request: HttpRequest, project_id: Id, payload: Keys) -> object:
    membership = require(request)
    project = access.project_work(membership, project_id)
    return {"keys": shortcut_keys.set_keys(membership, project, payload.keys)}


@router.post("/render", response=Formatted, summary="Markdown as safe HTML, as the pages show it")
def render(request: HttpRequest, payload: Texts) -> object:
    require(request)
    if sum(map(len, payload.texts)) > 2 * MAX_CHARACTERS:
        raise Invalid("The texts are too long together.", {"texts": f"more than {2 * MAX_CHARACTERS:,} characters"})
    draw = preview if payload.preview else line if payload.inline else markdown
    return {"html": [str(draw(text)) for text in payload.texts]}
