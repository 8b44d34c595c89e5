"""A request through the event loop, with real middleware and a real application in memory."""

import asyncio
from pathlib import Path
from threading import Barrier, current_thread

import pytest
from asgiref.testing import ApplicationCommunicator
from django.http import FileResponse, HttpResponse, StreamingHttpResponse
from django.test import override_settings
from django.urls import path

from tests.timeouts import SECONDS
from webapp.core.requests.handler import ThreadedHandler

seen: list[str] = []
gate = asyncio.Event()
all_here = Barrier(3)


def name(request):
    seen.append(current_thread().name)
    return HttpResponse(f"{request.GET['n']} {request.body.decode()}")


async def pieces():
    for number in range(3):
        yield f"{number};".encode()
        await gate.wait()


def together(request):
    """Answers when three threads are here."""
    all_here.wait(SECONDS)
    return HttpResponse("together")


def made():
    for number in range(3):
        seen.append(current_thread().name)
        yield f"{number};"


urlpatterns = [
    path("name", name),
    path("together", together),
    path("stream", lambda request: StreamingHttpResponse(pieces())),
    path("made", lambda request: StreamingHttpResponse(made())),
    path("file", lambda request: FileResponse(Path(__file__).open("rb"))),  # noqa: SIM115 - the response closes it
    path("broken", lambda request: 1 / 0),  # type: ignore[arg-type,return-value]
]


async def known(scope):
    return False


@pytest.fixture
def handler():
    seen.clear()
    with override_settings(ROOT_URLCONF=__name__, MIDDLEWARE=["django.middleware.common.CommonMiddleware"]):
        yield ThreadedHandler(3, known)


async def ask(handler, target: str, body: bytes = b"", path: str = "/name") -> tuple[int, str]:
    scope = {"type": "http", "method": "POST", "path": path, "query_string": target.encode()}
    scope["headers"] = [(b"host", b"localhost")]
    app = ApplicationCommunicator(handler, scope)
    await app.send_input({"type": "http.request", "body": body})
    start = await app.receive_output(SECONDS)
    text = b""
    while True:
        part = await app.receive_output(SECONDS)
        text += part.get("body", b"")
        if not part.get("more_body"):
            break
    await app.wait(SECONDS)
    return start["status"], text.decode()


async def test_more_requests_than_threads_wait_and_are_all_answered(handler):
    got = await asyncio.gather(*(ask(handler, f"n={n}", b"body") for n in range(40)))
    assert got == [(200, f"{n} body") for n in range(40)]
    assert len(set(seen)) <= 3  # long-lived threads, not a new one for each request


async def three_threads_are_free(handler) -> bool:
    return await asyncio.gather(*(ask(handler, "", path="/together") for _ in range(3))) == [(200, "together")] * 3


async def test_a_stream_is_sent_piece_by_piece_and_holds_no_thread(handler):
    gate.clear()
    streams = [asyncio.create_task(ask(handler, "", path="/stream")) for _ in range(4)]
    assert await three_threads_are_free(handler) and not any(stream.done() for stream in streams)
    gate.set()
    assert await asyncio.gather(*streams) == [(200, "0;1;2;")] * 4


@override_settings(DEBUG_PROPAGATE_EXCEPTIONS=False)
@pytest.mark.filterwarnings("error")
async def test_what_is_made_or_read_piece_by_piece_is_so_in_a_thread(handler):
    assert await ask(handler, "", path="/made") == (200, "0;1;2;")
    assert len(seen) == 3 and current_thread().name not in seen
    status, text = await ask(handler, "", path="/file")
    assert status == 200 and text == Path(__file__).read_text()


async def test_a_view_that_breaks_gives_its_thread_back(handler):
    for _ in range(5):
        status, _ = await ask(handler, "", path="/broken")
        assert status == 500
    assert await three_threads_are_free(handler)


@pytest.mark.django_db  # closing a response calls the database layer
async def test_who_hangs_up_during_a_stream_ends_it(handler):
    ended = asyncio.Event()

    async def endless():
        try:
            while True:
                await asyncio.sleep(0.01)
                yield b"."
        finally:
            ended.set()

    response = StreamingHttpResponse(endless())
    messages: asyncio.Queue = asyncio.Queue()

    async def send(message):
        if message["type"] == "http.response.body":
            await messages.put({"type": "http.disconnect"})

    await asyncio.wait_for(handler._stream(response, messages.get, send), SECONDS)
    assert ended.is_set() and response.closed
