"""Where websockets of unknown addresses end."""

from channels.generic.websocket import AsyncWebsocketConsumer

NOTHING_HERE = 4404  # of the range that RFC 6455 leaves to applications


class Nowhere(AsyncWebsocketConsumer):  # type: ignore[misc]  # channels has no types
    """Refuses the connection; without it the server would log a failure of its own for whatever a stranger types."""

    async def connect(self) -> None:
        await self.close(NOTHING_HERE)
