"""Relays the calls of a run to a reward service, because only the server has the secret and knows where it may connect.

The alternative was to give a run the address and a derived secret. Then every service would have to derive it too, common checks of
signatures would not work, and runs would connect to the addresses of the workspace from any machine.
"""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

from channels.db import database_sync_to_async
from pydantic import Field, JsonValue

from trainer.config.rewards.parts import MOST_PARTS
from trainer.contracts.base import Record
from trainer.judges.chat import EndpointProblem, Target
from trainer.rewards.http_service import HttpService
from trainer.rewards.parts import Away, Unscored
from webapp.core.problems import Conflict, Problem
from webapp.inference.endpoints.sharing import EndpointShare
from webapp.inference.endpoints.targets import reward_target
from webapp.inference.models import Endpoint

from ..models import Run

MOST_RESPONSES = 1024
BEAT_S = 10.0


class Responses(Record):
    """`responses` as the service gets them: see docs/rewards.md."""

    service: str = Field(max_length=120)
    responses: tuple[dict[str, JsonValue], ...] = Field(min_length=1, max_length=MOST_RESPONSES)


def named(config: Any) -> list[str]:
    """The services that a run's config names, each once."""
    parts = config.get("rewards", [])[:MOST_PARTS]
    return list(dict.fromkeys(part["endpoint"] for part in parts if part.get("kind") == "http"))


def endpoint(workspace_id: int, name: str) -> Endpoint | None:
    """The reward service of this name that is in use."""
    rows = Endpoint.objects.filter(workspace_id=workspace_id, kind=Endpoint.Kind.REWARD, archived_at=None)
    return rows.filter(name=name).first()


def target(run: Run, service: str) -> tuple[int, Target] | str:
    """The endpoint's id and how it is asked, or why it cannot be for now. Raises Problem if this run may not ask it."""
    if run.is_over:
        raise Problem("The run is over.", code="over", status=409)
    if service not in named(run.config):
        raise Problem(f"The run does not name a service {service!r}.", code="service", status=409)
    row = endpoint(run.experiment.workspace_id, service)
    if row is None:
        return f"the workspace has no reward service {service!r} any more, or it is archived"
    try:
        return row.pk, reward_target(row)
    except (Conflict, EndpointProblem) as problem:
        return str(problem)


async def answer(asked: tuple[int, Target] | str, responses: tuple[dict[str, JsonValue], ...]) -> AsyncIterator[bytes]:
    """`{"values": ..}`, `{"away": why}` or `{"unscored": why}` as JSON; before it, a blank is sent now and then while the service works.
    Waiting holds no thread."""
    if isinstance(asked, str):
        yield json.dumps({"away": asked}).encode()
        return
    working = asyncio.create_task(_ask(*asked, responses))
    try:
        while not (await asyncio.wait({working}, timeout=BEAT_S))[0]:
            yield b" "
        yield json.dumps(working.result()).encode()
    finally:
        working.cancel()


async def _ask(endpoint_id: int, asked: Target, responses: tuple[dict[str, JsonValue], ...]) -> dict[str, Any]:
    try:
        async with _service(endpoint_id, asked) as service:
            return {"values": await service.answer(responses)}
    except Away as away:
        return {"away": str(away)}
    except Unscored as unscored:
        return {"unscored": str(unscored)}


@dataclass
class _Open:
    service: HttpService
    users: int = 0


_OPEN: dict[tuple[int, int, str], _Open] = {}
"""Connections by loop, endpoint and what it is asked with: all requests of this process share connections and limits. Only the thread
of the loop touches it."""


@asynccontextmanager
async def _service(endpoint_id: int, asked: Target) -> AsyncIterator[HttpService]:
    """The service: the first caller opens it, and the last one closes it."""
    place = (id(asyncio.get_running_loop()), endpoint_id, repr(asked) + str(hash(asked.key)))
    held = _OPEN.setdefault(place, _Open(HttpService(asked, _Share(endpoint_id))))
    held.users += 1
    try:
        yield held.service
    finally:
        held.users -= 1
        if not held.users:
            del _OPEN[place]
            await held.service.close()


class _Share(EndpointShare):
    """The limits hold for all processes of the server; the database is asked on Django's own threads."""

    def __init__(self, endpoint_id: int) -> None:
        super().__init__(endpoint_id, executor=None)

    async def _beside(self, function: Any, *arguments: Any) -> Any:
        return await database_sync_to_async(function)(*arguments)
