"""Closes websockets of unknown addresses."""

from channels.generic.websocket import AsyncWebsocketConsumer

NOTHING_HERE = 4404  # of the range that RFC 6455 leaves to applications


class UnknownWebsocketConsumer(AsyncWebsocketConsumer):  # type: ignore[misc]  # channels has no types
    """Refuses the connection. Without it the server would log an error of its own for every address that a stranger types."""

    async def connect(self) -> None:
        await self.close(NOTHING_HERE)
