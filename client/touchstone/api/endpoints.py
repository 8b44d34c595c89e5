"""The group `endpoints` of the API. Made by `python -m scripts.client` from the OpenAPI document of the server: do not edit."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, NotRequired, TypedDict

from ..calling import Group


class EndpointChange(TypedDict):
    """Fields that are left out stay as they are. An empty `secret` removes the key."""

    name: NotRequired[str]
    url: NotRequired[str]
    model: NotRequired[str]
    registered_model: NotRequired[int | None]
    secret: NotRequired[str]
    concurrency: NotRequired[int]
    requests_per_minute: NotRequired[int | None]
    timeout_s: NotRequired[float]
    retries: NotRequired[int]
    price_prompt: NotRequired[float | str | None]
    price_completion: NotRequired[float | str | None]
    archived: NotRequired[bool]


class EndpointCheckOut(TypedDict):
    """`state` goes from queued over running to finished or failed; then `result`, or `code` and `problem`, say
    more.
    """

    id: int
    kind: str
    state: str
    result: dict[str, Any]
    code: str
    problem: str
    created_at: str
    finished_at: str | None


class EndpointDetail(TypedDict):
    id: int
    name: str
    kind: str
    url: str
    model: str
    registered_model_id: int | None
    has_secret: bool
    concurrency: int
    requests_per_minute: int | None
    timeout_s: float
    retries: int
    price_prompt: str | None
    price_completion: str | None
    capabilities: dict[str, Any]
    created_at: str
    first_used_at: str | None
    archived_at: str | None
    troubles: list[TroubleOut]
    recorded: int


class EndpointIn(TypedDict):
    kind: NotRequired[Literal["chat", "local", "recorded", "reward"]]
    name: str
    url: NotRequired[str | None]
    model: NotRequired[str | None]
    registered_model: NotRequired[int | None]
    secret: NotRequired[str | None]
    concurrency: NotRequired[int | None]
    requests_per_minute: NotRequired[int | None]
    timeout_s: NotRequired[float | None]
    retries: NotRequired[int | None]
    price_prompt: NotRequired[float | str | None]
    price_completion: NotRequired[float | str | None]


class EndpointOut(TypedDict):
    """`secret` is never shown; `has_secret` tells whether there is one. Prices are per million tokens."""

    id: int
    name: str
    kind: str
    url: str
    model: str
    registered_model_id: int | None
    has_secret: bool
    concurrency: int
    requests_per_minute: int | None
    timeout_s: float
    retries: int
    price_prompt: str | None
    price_completion: str | None
    capabilities: dict[str, Any]
    created_at: str
    first_used_at: str | None
    archived_at: str | None


class OutputOut(TypedDict):
    key: str
    text: str


class RecordedOut(TypedDict):
    added: int
    unchanged: int


class TroubleOut(TypedDict):
    code: str
    count: int
    message: str
    last_at: str


class UseOut(TypedDict):
    """The tokens and the cost of the verdicts of one version of a judge; null if no verdict says."""

    judge_id: int
    judge: str
    version: int
    verdicts: int
    prompt_tokens: int | None
    cached_tokens: int | None
    completion_tokens: int | None
    cost: str | None


class Endpoints(Group):
    def all(self, *, archived: bool | None = None, page_size: int | None = None) -> Iterator[EndpointOut]:
        """The endpoints of this workspace, newest first."""
        return self._pages(EndpointOut, "/endpoints", query={"archived": archived, "limit": page_size})

    def create(self, body: EndpointIn) -> EndpointDetail:
        """Create an endpoint."""
        return self._json(EndpointDetail, "POST", "/endpoints", body=body)

    def get(self, endpoint_id: int) -> EndpointDetail:
        """One endpoint, with its last problems."""
        return self._json(EndpointDetail, "GET", f"/endpoints/{endpoint_id}")

    def change(self, endpoint_id: int, body: EndpointChange) -> EndpointDetail:
        """Change, archive or restore an endpoint. If the address gets another host, the key must be given again.
        Once verdicts rest on it, the model stays.
        """
        return self._json(EndpointDetail, "PATCH", f"/endpoints/{endpoint_id}", body=body)

    def test(self, endpoint_id: int) -> EndpointCheckOut:
        """Test an endpoint with one small request. Answers at once; follow `GET endpoints/{id}/checks/{check}`."""
        return self._json(EndpointCheckOut, "POST", f"/endpoints/{endpoint_id}/test")

    def probe(self, endpoint_id: int) -> EndpointCheckOut:
        """Find out what the endpoint can do. Log-probabilities, output by JSON schema, prefix cache; about 6,000
        tokens. Follow `GET endpoints/{id}/checks/{check}`.
        """
        return self._json(EndpointCheckOut, "POST", f"/endpoints/{endpoint_id}/probe")

    def check(self, endpoint_id: int, check_id: int) -> EndpointCheckOut:
        """A test or probe."""
        return self._json(EndpointCheckOut, "GET", f"/endpoints/{endpoint_id}/checks/{check_id}")

    def use(self, endpoint_id: int, *, page_size: int | None = None) -> Iterator[UseOut]:
        """Judges that ask an endpoint, with their tokens and costs."""
        return self._pages(UseOut, f"/endpoints/{endpoint_id}/use", query={"limit": page_size})

    def recorded(self, endpoint_id: int, *, page_size: int | None = None) -> Iterator[OutputOut]:
        """The outputs that a recorded endpoint replays."""
        return self._pages(OutputOut, f"/endpoints/{endpoint_id}/recorded", query={"limit": page_size})

    def add_recorded(self, endpoint_id: int, file: Path) -> RecordedOut:
        """Add recorded outputs. JSON Lines `{"key": .., "text": ..}`. A bad line refuses the whole file; a key
        keeps its text for good.
        """
        return self._sent(RecordedOut, f"/endpoints/{endpoint_id}/recorded", file, {})
