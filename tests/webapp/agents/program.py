"""The official client of MCP in a process of its own. Each line of its input is an order in JSON, and it answers each with one line."""

import asyncio
import json
import sys
from typing import Any

import httpx2
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

PATIENCE_S = 300.0


async def main() -> None:
    order = await _order()
    while order:
        try:
            order = await _session(order)
        except* Exception as refused:
            _say({"refused": _words(refused)})
            order = await _order()


async def _session(order: dict[str, Any]) -> dict[str, Any] | None:
    """Connects as the order says, and carries out orders until the next one connects again."""
    headers = {"Authorization": f"Bearer {order['token']}"}
    async with (
        httpx2.AsyncClient(headers=headers, timeout=PATIENCE_S) as http,
        Client(streamable_http_client(order["connect"], http_client=http)) as client,
    ):
        _say({"version": client.protocol_version, "server": client.server_info.name})
        while (order := await _order()) and "connect" not in order:
            if "tool" in order:
                result = await client.call_tool(order["tool"], order["arguments"])
                _say({"failed": result.is_error, "text": result.content[0].text})
            else:
                listed = await client.list_tools()
                _say({"tools": [each.model_dump(by_alias=True) for each in listed.tools]})
    return order


async def _order() -> dict[str, Any] | None:
    line = await asyncio.to_thread(sys.stdin.readline)
    return json.loads(line) if line else None


def _words(error: BaseException) -> str:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return f"{type(error).__name__}: {error}"


def _say(told: dict[str, Any]) -> None:
    print(json.dumps(told), flush=True)


asyncio.run(main())
