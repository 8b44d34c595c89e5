"""A reward service on the network: a group of responses is sent as a signed POST, and numbers come back."""

import asyncio
import hashlib
import json
import random
import time
from collections.abc import Mapping, Sequence

from trainer.judges.chat import Target
from trainer.judges.client import LONGEST_RETRY_AFTER_S
from trainer.judges.connections import BadAddress, ConnectionRefused, Connections, TooLong
from trainer.judges.gate import Gate, SharedLimits
from trainer.judges.replies import retry_after
from trainer.product import USER_AGENT

from .parts import JSON, Away, Unscored
from .signing import signature

LONGEST_ANSWER = 8_000_000  # bytes
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 0.5, 30.0


class HttpService:
    """Requests are posted to `target.url` unchanged; `target.key` is the secret that signs. Limits and retries are those of the target.

    After a 4xx answer, or one that is not JSON, the responses are left out. After 408, 429, 5xx or no answer the request is tried again;
    in the end the service is away.
    """

    def __init__(self, target: Target, share: SharedLimits | None = None) -> None:
        self._target = target
        self._gate = Gate(target.concurrency, target.requests_per_minute, share)
        self._connections: Connections | None = None
        self._opening = asyncio.Lock()

    async def answer(self, responses: Sequence[Mapping[str, JSON]], seconds: float | None = None) -> JSON:
        body = json.dumps({"responses": list(responses)}, ensure_ascii=False).encode("utf-8", "replace")
        connections = await self._opened()
        message_id = f"msg_{hashlib.sha256(body).hexdigest()[:32]}"
        for attempt in range(1, self._target.retries + 2):
            try:
                return await self._attempt(connections, message_id, body)
            except _AskAgain as again:
                if attempt > self._target.retries:
                    raise Away(str(again)) from None
                pause = again.after_s
            if pause is None:
                pause = min(_FIRST_PAUSE_S * 2.0 ** (attempt - 1), _LONGEST_PAUSE_S) * random.uniform(0.5, 1)  # noqa: S311
            await asyncio.sleep(min(pause, LONGEST_RETRY_AFTER_S))
        raise AssertionError("unreachable: the last attempt returns or raises")

    async def close(self) -> None:
        if self._connections is not None:
            self._connections.close()
            await self._gate.__aexit__(None, None, None)
            self._connections = None

    async def _opened(self) -> Connections:
        async with self._opening:
            if self._connections is None:
                headers = {"Content-Type": "application/json", "User-Agent": USER_AGENT}
                try:
                    self._connections = Connections(
                        self._target.url, headers, longest=LONGEST_ANSWER, refuse=self._target.refuse
                    )
                except BadAddress as error:
                    raise Away(str(error)) from None
                await self._gate.__aenter__()
        return self._connections

    async def _attempt(self, connections: Connections, message_id: str, body: bytes) -> JSON:
        signed = signature(self._target.key, message_id, int(time.time()), body) if self._target.key else {}
        await self._gate.enter()
        try:
            answer = await connections.post(body, self._target.timeout_s, signed)
        except TimeoutError:
            raise _AskAgain(f"no complete answer within {self._target.timeout_s:g} s") from None
        except TooLong as error:
            raise Unscored(str(error)) from None
        except ConnectionRefused as error:
            raise Away(str(error)) from None
        except OSError as error:
            raise _AskAgain(str(error) or type(error).__name__) from None
        finally:
            self._gate.leave()
        if answer.status in (408, 429) or answer.status >= 500:
            raise _AskAgain(f"answered {answer.status}", retry_after(answer.headers.get("retry-after")))
        if answer.status in (401, 403, 404) or 300 <= answer.status < 400:
            raise Away(f"answered {answer.status}: check its address and its secret")
        if answer.status != 200:
            raise Unscored(f"answered {answer.status}")
        return _values(answer.body)


class _AskAgain(Exception):
    def __init__(self, message: str, after_s: float | None = None) -> None:
        super().__init__(message)
        self.after_s = after_s


def _values(body: bytes) -> JSON:
    """The values, from `{"values": [...]}` or from the list itself."""
    try:
        found = json.loads(body)
    except (ValueError, RecursionError):
        raise Unscored(f"answered something that is not JSON: {body[:60]!r}") from None
    return found["values"] if isinstance(found, dict) and "values" in found else found
