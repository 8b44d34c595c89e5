"""The methods of `touchstone.api` call the server with these functions. The methods are generated; this module is written by hand."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, TypeVar, cast
from urllib.parse import quote
from uuid import uuid4

import httpx

from .http import Connection

Answer = TypeVar("Answer")
Query = Mapping[str, Any]


def quote_part(text: str) -> str:
    """A text as one part of an address."""
    return quote(text, safe="")


def new_key() -> str:
    """A key of one request: all its tries carry it, so that it takes effect once."""
    return uuid4().hex


class Group:
    """The operations of one part of the API. Each raises ApiError if the server refuses, and Away if it does not answer."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def _json(self, kind: type[Answer], method: str, path: str, **given: Any) -> Answer:
        """The answer. `kind` is its type, for type checkers alone."""
        return cast(Answer, self._any(method, path, **given))

    def _any(self, method: str, path: str, **given: Any) -> Any:
        return self._connection.read(self._asked(method, path, **given))

    def _nothing(self, method: str, path: str, **given: Any) -> None:
        self._asked(method, path, **given)

    def _pages(self, kind: type[Answer], path: str, query: Query) -> Iterator[Answer]:
        """Every row of a list, page by page."""
        return cast(Iterator[Answer], self._connection.all(path, **query))

    def _events(self, method: str, path: str, body: Any = None) -> Iterator[tuple[str, dict[str, Any]]]:
        return self._connection.events(path, body)

    def _file(self, to: Path, path: str, query: Query | None = None) -> Path:
        self._connection.fetch(f"/api/v1{path}", to, **(query or {}))
        return to

    def _asked(
        self,
        method: str,
        path: str,
        *,
        body: Any = None,
        query: Query | None = None,
        key: str | None = None,
        again: bool = False,
    ) -> httpx.Response:
        params = {name: value for name, value in (query or {}).items() if value is not None}
        return self._connection.ask(method, f"/api/v1{path}", key=key, again=again, json=body, params=params)

    def _sent(self, kind: type[Answer], path: str, file: Path, form: Query, again: bool = False) -> Answer:
        """Sends a file with the fields of a form."""
        return cast(Answer, self._connection.sent_file(path, file, again=again, **form))
