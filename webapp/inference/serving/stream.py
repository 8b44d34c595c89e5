"""The stream of a model's answer as server-sent events, and how much one person may ask for."""

import json
from collections.abc import AsyncIterator, Callable
from contextlib import aclosing
from typing import Any
from uuid import uuid4

from django.core.cache import cache
from django.http import StreamingHttpResponse

from webapp.core.problems import Conflict, Problem
from webapp.core.requests.limits import seconds_to_wait

from .. import queries
from ..folders import stored
from ..models import RegisteredModel
from . import process

AT_ONCE = 4  # answers that one person has under way: as many as stand side by side
PER_MINUTE = 120  # requests of one person
SLOT_S = 900  # after this time a place is free again, even if its stream never ended


class TooManyAnswers(Problem):
    """One person asks for too many answers at a time."""

    def __init__(self, message: str) -> None:
        super().__init__(message, code="busy", status=429)


def stream(model: RegisteredModel, user_id: int, request: dict[str, Any]) -> StreamingHttpResponse:
    """Raises Conflict for a model that writes no text, Problem 410 if its files are gone, TooManyAnswers."""
    if model.head != RegisteredModel.Head.LM:
        raise Conflict(f"{model.name} scores texts and cannot write texts.", code="not_a_writer")
    if gone := stored.missing_folder(model):
        raise Problem(f"The files of {model.name} are gone: there is no folder {gone}.", code="gone", status=410)
    if wait := seconds_to_wait(f"generate:{user_id}", PER_MINUTE):
        raise TooManyAnswers(f"You have asked {PER_MINUTE} times within a minute. Wait {wait} s.")
    free = _slot(user_id)
    response = StreamingHttpResponse(_Events(model, request, free), content_type="text/event-stream; charset=utf-8")
    response["Cache-Control"] = "no-store"
    response["X-Accel-Buffering"] = "no"  # a proxy in front would collect the tokens
    return response


class _Events:
    """The server closes it with the response, even if nothing was read."""

    def __init__(self, model: RegisteredModel, request: dict[str, Any], free: Callable[[], None]) -> None:
        self._asked = queries.source(model), model.digest, request, model.workspace_id
        self.close = free

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async with aclosing(process.answers(*self._asked)) as events:
            async for event in events:
                name = event.pop("event")
                yield f"event: {name}\ndata: {json.dumps(event, ensure_ascii=False)}\n\n".encode()


def _slot(user_id: int) -> Callable[[], None]:
    """Takes one of the person's places, and returns the function that gives it back. Raises TooManyAnswers."""
    mine = uuid4().hex
    for number in range(AT_ONCE):
        key = f"generating:{user_id}:{number}"
        if cache.add(key, mine, SLOT_S):
            return lambda: _free(key, mine)
    raise TooManyAnswers(f"You have {AT_ONCE} answers under way. Wait until one ends, or stop one.")


def _free(key: str, mine: str) -> None:
    if cache.get(key) == mine:
        cache.delete(key)
