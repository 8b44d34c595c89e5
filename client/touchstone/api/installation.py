"""The group `installation` of the API. Made by `python -m scripts.client` from the OpenAPI document of the server: do not edit."""

from __future__ import annotations

from typing import Literal, TypedDict

from ..calling import Group


class InstallationOut(TypedDict):
    """`schema_state`: whether the database is the one this version was written for; `manage.py upgrade --check`
    says what is not.
    """

    version: str
    schema_state: Literal["current", "differs"]


class Installation(Group):
    def version(self) -> InstallationOut:
        """The version of this installation."""
        return self._json(InstallationOut, "GET", "/version")
