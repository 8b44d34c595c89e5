"""The group `verifiers` of the API. Made by `python -m scripts.client` from the OpenAPI document of the server: do not edit."""

from __future__ import annotations

from typing import Any, NotRequired, TypedDict

from ..calling import Group, quote_part


class TryIn(TypedDict):
    text: str
    args: NotRequired[dict[str, Any]]


class TryOut(TypedDict):
    met: bool | None
    note: str


class VerifierExampleOut(TypedDict):
    text: str
    args: dict[str, Any]
    met: bool


class VerifierList(TypedDict):
    items: list[VerifierOut]
    next: str | None


class VerifierOut(TypedDict):
    name: str
    title: str
    help: str
    schema: dict[str, Any]
    examples: list[VerifierExampleOut]


class Verifiers(Group):
    def all(self) -> VerifierList:
        """Every verifier with its arguments and examples."""
        return self._json(VerifierList, "GET", "/verifiers")

    def try_verifier(self, name: str, body: TryIn) -> TryOut:
        """Run a verifier on a text."""
        return self._json(TryOut, "POST", f"/verifiers/{quote_part(name)}/try", body=body, again=True)
