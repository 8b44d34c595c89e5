"""A reward service to which the server of the run posts, with its secret, within its limits, and only to addresses that are allowed."""

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from time import monotonic

import httpx

from .parts import JSON, Away, Unscored

PATIENCE_S = 60.0  # longer than a server takes to restart
AGAIN_S = 1.0
_TIMEOUT = httpx.Timeout(60.0, connect=5.0)  # the server says that it is there more often than that


@dataclass(frozen=True)
class Relay:
    """The address at which the server takes responses, and the service's name in the config."""

    url: str
    token: str = field(repr=False)
    service: str


class RelayedService:
    """Answers as HttpService does. The server retries its calls to the service; this process only retries its calls to the server."""

    def __init__(self, relay: Relay) -> None:
        self._relay = relay
        self._client: httpx.AsyncClient | None = None

    async def answer(self, responses: Sequence[Mapping[str, JSON]], seconds: float | None = None) -> JSON:
        content = {"service": self._relay.service, "responses": list(responses)}
        body = json.dumps(content, ensure_ascii=False).encode("utf-8", "replace")
        heard = monotonic()
        while True:
            try:
                return _said(await self._posted(body))
            except httpx.HTTPError as error:
                if monotonic() - heard > PATIENCE_S:
                    raise Away(f"the server of the run does not answer: {type(error).__name__}: {error}") from None
            await asyncio.sleep(AGAIN_S)

    async def close(self) -> None:
        if self._client is not None:
            await self._client.aclose()
            self._client = None

    async def _posted(self, body: bytes) -> bytes:
        if self._client is None:
            headers = {"Authorization": f"Bearer {self._relay.token}", "Content-Type": "application/json"}
            self._client = httpx.AsyncClient(headers=headers, timeout=_TIMEOUT, trust_env=False)
        response = await self._client.post(self._relay.url, content=body)
        if response.status_code >= 500 or response.status_code in (408, 429):
            response.raise_for_status()
        if response.status_code in (400, 413):
            raise Unscored("the responses of a group are longer than the server takes at once")
        if response.status_code != 200:
            raise Away(f"the server does not ask it (HTTP {response.status_code}): {response.text[:300]}")
        return response.content


def _said(body: bytes) -> JSON:
    """The values, or the reason why there are none."""
    try:
        found = json.loads(body)
    except ValueError:  # the server went away in the middle of its answer
        raise httpx.ReadError("its answer was cut") from None
    if "away" in found:
        raise Away(str(found["away"]))
    if "unscored" in found:
        raise Unscored(str(found["unscored"]))
    return found["values"]
