"""Annotators as a web server meets them; run as a separate process by `benchmarks.annotation`.

Reads one JSON object from stdin: `{"host", "port", "project", "people": [{"cookie", "csrf"}], "seconds", "think_s"}`.
Each person claims two tasks and then submits one after the other, as the page does: one request submits and brings the
next task, while the one after it is held already. Between two tasks is a think time of about `think_s` (exponential), or
none. A person's requests share one connection. Prints one JSON object: milliseconds of each submission and the second at which it was
sent, errors, and the ids of all acknowledged answers, with their person.
"""

import asyncio
import json
import random
import sys
import time
from typing import Any

ANSWER: dict[str, Any] = {
    "verdict": "compared",
    "strength": 2,
    "reasons": [{"text": "It answers the question that was asked."}],
}
Reply = tuple[int, dict[str, Any]]


class AnnotatorBrowser:
    """One browser: its session and its connection."""

    def __init__(self, config: dict[str, Any], index: int) -> None:
        self.config, self.index = config, index
        self.session: dict[str, str] = config["people"][index]
        self.took: list[float] = []
        self.sent: list[float] = []  # seconds since the process began to work
        self.errors: list[str] = []
        self.answers: list[tuple[int, int]] = []  # (answer, person)
        self.reader: asyncio.StreamReader | None = None
        self.writer: asyncio.StreamWriter | None = None

    async def post(self, path: str, body: dict[str, Any]) -> Reply:
        if self.writer is None or self.reader is None:
            self.reader, self.writer = await asyncio.open_connection(self.config["host"], self.config["port"])
        data = json.dumps(body).encode()
        head = (
            f"POST /api/v1{path} HTTP/1.1\r\nHost: {self.config['host']}:{self.config['port']}\r\n"
            f"Cookie: {self.session['cookie']}\r\nX-CSRFToken: {self.session['csrf']}\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(data)}\r\n\r\n"
        )
        try:
            self.writer.write(head.encode() + data)
            answer = await self.reader.readuntil(b"\r\n\r\n")
        except (asyncio.IncompleteReadError, ConnectionError):
            # the server closes a connection that was idle for long: a browser then opens a new one
            self.reader, self.writer = await asyncio.open_connection(self.config["host"], self.config["port"])
            self.writer.write(head.encode() + data)
            answer = await self.reader.readuntil(b"\r\n\r\n")
        lines = answer.decode("latin-1").split("\r\n")
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines[1:])}
        content = await self.reader.readexactly(int(headers.get("content-length", 0)))
        return int(lines[0].split()[1]), json.loads(content or b"{}")

    async def work(self, started: float, until: float, draw: random.Random) -> None:
        think = self.config["think_s"]
        if think:
            await asyncio.sleep(draw.random() * think)  # people do not all sit down in the same second
        status, queue = await self.post(f"/projects/{self.config['project']}/claim", {"hold": 2})
        while status == 200 and queue["items"] and time.monotonic() < until:
            seat = queue["items"][0]
            if think:
                thinking = draw.expovariate(1 / think)
                if time.monotonic() + thinking >= until:
                    return  # the person still thinks when the time is over: otherwise all would submit at the end
                await asyncio.sleep(thinking)
            self.sent.append(round(time.monotonic() - started, 1))
            sent = time.perf_counter()
            body = {"content": ANSWER, "revision": seat["draft_revision"], "seconds": 12.5, "hold": 2}
            status, reply = await self.post(f"/assignments/{seat['id']}/submit", body)
            self.took.append((time.perf_counter() - sent) * 1000)
            if status == 200:
                self.answers.append((reply["answer"]["id"], self.index))
                queue = reply["queue"]
            else:
                self.errors.append(f"{status}: {json.dumps(reply)[:300]}")
                status = 200


async def main(config: dict[str, Any]) -> dict[str, Any]:
    people = [AnnotatorBrowser(config, index) for index in range(len(config["people"]))]
    started = time.monotonic()
    until = started + config["seconds"]
    draw = random.Random(7)  # noqa: S311
    results = await asyncio.gather(*(person.work(started, until, draw) for person in people), return_exceptions=True)
    elapsed = time.monotonic() - started
    broken = [repr(result) for result in results if isinstance(result, BaseException)]
    return {
        "elapsed": elapsed,
        "took": [round(ms, 2) for person in people for ms in person.took],
        "sent": [second for person in people for second in person.sent],
        "errors": [error for person in people for error in person.errors] + broken,
        "answers": [answer for person in people for answer in person.answers],
    }


async def rush(config: dict[str, Any]) -> dict[str, Any]:
    """Everybody claims at the same moment; returns how many tasks each got."""
    people = [AnnotatorBrowser(config, index) for index in range(len(config["people"]))]
    replies = await asyncio.gather(*(p.post(f"/projects/{config['project']}/claim", {"hold": 1}) for p in people))
    return {
        "got": [len(reply.get("items", ())) for _, reply in replies],
        "errors": [reply for status, reply in replies if status != 200],
    }


if __name__ == "__main__":
    given = json.load(sys.stdin)
    print(json.dumps(asyncio.run(rush(given) if given.get("rush") else main(given))))
