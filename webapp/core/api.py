"""The version of this installation over the API."""

from typing import Literal

from django.http import HttpRequest
from ninja import Router, Schema

from webapp.version import VERSION

from .database.schema import state

router = Router(tags=["installation"])


class InstallationOut(Schema):
    """`schema_state`: whether the database is the one this version was written for; `manage.py upgrade --check` says what
    is not."""

    version: str
    schema_state: Literal["current", "differs"]


@router.get("/version", response=InstallationOut, summary="The version of this installation")
def version(request: HttpRequest) -> dict[str, str]:
    return {"version": VERSION, "schema_state": state()}
