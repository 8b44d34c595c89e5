"""A websocket client for tests, without a server. (channels.testing would need daphne, which nothing else here does.)"""

import json

from asgiref.testing import ApplicationCommunicator

from tests.timeouts import SECONDS


class Socket(ApplicationCommunicator):
    def __init__(self, application, path: str, headers: list[tuple[bytes, bytes]]) -> None:
        scope = {"type": "websocket", "path": path, "query_string": b"", "headers": headers, "subprotocols": []}
        super().__init__(application, scope)

    async def connect(self) -> bool:
        """Whether the server accepted the connection."""
        await self.send_input({"type": "websocket.connect"})
        return (await self.receive_output(timeout=SECONDS))["type"] == "websocket.accept"

    async def hear(self, count: int) -> list[dict]:
        return [json.loads((await self.receive_output(timeout=SECONDS))["text"]) for _ in range(count)]

    async def disconnect(self) -> None:
        await self.send_input({"type": "websocket.disconnect", "code": 1000})
        await self.wait(SECONDS)
