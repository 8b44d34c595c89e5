"""The connections against servers with different forms of HTTP."""

import asyncio
import ssl
import subprocess
from contextlib import asynccontextmanager
from typing import Any

import pytest

from tests.timeouts import SECONDS
from trainer.judges.connections import BadAddress, ConnectionRefused, Connections, TooLong, Unanswered

OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi"


@asynccontextmanager
async def speaking(*answers: bytes, closing=False, tls=None):
    """A server that gives `answers` in turn, on any number of connections. `server.asked` has the requests of each connection."""
    left = list(answers)

    async def serve(reader, writer):
        number = len(server.asked)
        server.asked.append([])
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
                server.asked[number].append((head, await reader.readexactly(length)))
                writer.write(left.pop(0) if left else OK)
                await writer.drain()
                if closing:
                    break
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        writer.close()

    server: Any = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=tls)
    server.asked = []
    server.url = f"http{'s' if tls else ''}://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    yield server
    server.close()


def to(server, **options):
    return Connections(server.url, {"Authorization": "Bearer k"}, longest=options.pop("longest", 1000), **options)


async def test_requests_one_after_the_other_share_a_connection():
    async with speaking() as server:
        connections = to(server)
        for data in (b"one", "zwö".encode()):
            assert (await connections.post(data, SECONDS)).body == b"hi"
        [(first, one), (_, two)] = server.asked[0]
    assert (one, two) == (b"one", "zwö".encode()) and len(server.asked) == 1
    assert first.startswith(b"POST /v1 HTTP/1.1\r\nHost: 127.0.0.1:") and b"\r\nAuthorization: Bearer k\r\n" in first


async def test_requests_at_once_have_a_connection_each():
    async with speaking() as server:
        connections = to(server)
        await asyncio.gather(*(connections.post(b"x", SECONDS) for _ in range(5)))
    assert len(server.asked) == 5


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nh\r\n1\r\ni\r\n0\r\n\r\n",
        b"HTTP/1.1 100 Continue\r\n\r\n" + OK,
        b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n" + OK,
        b"HTTP/1.0 200 OK\r\n\r\nhi",
    ],
    ids=["chunked", "continue", "hints", "until it closes"],
)
async def test_answers_are_read_however_they_are_framed(answer):
    async with speaking(answer, closing=True) as server:
        answer = await to(server).post(b"x", SECONDS)
    assert (answer.status, answer.body) == (200, b"hi")


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (b"", "closed without an answer"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhi", "in the middle of its answer"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nh\r\n", "in the middle of its answer"),
        (b"SSH-2.0-OpenSSH\r\n\r\n", "is no HTTP"),
        (b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n", "another protocol"),
    ],
    ids=["nothing", "cut", "cut chunks", "another protocol", "upgrade"],
)
async def test_half_an_answer_is_none(answer, words):
    async with speaking(answer, closing=True) as server:
        with pytest.raises(Unanswered, match=words):
            await to(server).post(b"x", SECONDS)


async def test_an_endless_answer_is_broken_off():
    async with speaking(b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * 5000) as server:
        with pytest.raises(TooLong, match="1,000 bytes"):
            await to(server).post(b"x", SECONDS)


async def test_a_connection_the_server_closes_is_not_used_again():
    async with speaking(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nhi") as server:
        connections = to(server)
        await connections.post(b"x", SECONDS)
        await connections.post(b"y", SECONDS)
    assert len(server.asked) == 2


async def test_the_answer_to_a_request_that_was_given_up_is_nobodys():
    async with speaking(OK, b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nla") as server:
        connections = to(server)
        await connections.post(b"w", SECONDS)  # the next one finds its connection, because making one may take longer
        with pytest.raises(TimeoutError):
            await connections.post(b"x", 0.05)
        asking = asyncio.create_task(connections.post(b"y", SECONDS))
        while len(server.asked) < 2:
            await asyncio.sleep(0.005)
        assert (await asking).body == b"hi"
        asking = asyncio.create_task(connections.post(b"z", SECONDS))
        await asyncio.sleep(0)
        asking.cancel()
        assert (await connections.post(b"z", SECONDS)).body == b"hi"


async def test_what_nobody_asked_for_is_no_answer():
    async with speaking(OK + b"HTTP/1.1 200 OK\r\nContent-Length: 4\r\n\r\nevil") as server:
        connections = to(server)
        assert [(await connections.post(b"x", SECONDS)).body for _ in range(3)] == [b"hi"] * 3


async def test_a_refused_address_is_never_connected_to():
    async with speaking() as server:
        with pytest.raises(ConnectionRefused, match="closed: 127.0.0.1"):
            await to(server, refuse=lambda address: f"closed: {address}").post(b"x", SECONDS)
    assert server.asked == []


async def test_a_certificate_that_nobody_vouches_for_is_not_believed(tmp_path):
    names = [str(tmp_path / name) for name in ("key.pem", "cert.pem")]
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj", "/CN=127.0.0.1", "-days", "1"]
    command += ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", names[0], "-out", names[1]]
    subprocess.run(command, check=True, capture_output=True)
    served = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    served.load_cert_chain(names[1], names[0])
    async with speaking(tls=served) as server:
        with pytest.raises(Unanswered, match="certificate verify failed"):
            await to(server).post(b"x", SECONDS)
        trusting = to(server)
        trusting._tls.load_verify_locations(names[1])
        assert (await trusting.post(b"x", SECONDS)).body == b"hi"
        trusting._host = "localhost"  # the certificate is for another name
        trusting.close()
        with pytest.raises(Unanswered, match="certificate"):
            await trusting.post(b"x", SECONDS)


@pytest.mark.parametrize("url", ["", "ftp://host/v1", "http:///v1", "http://host:99999/", "http://[::1/", "host/v1"])
def test_what_is_no_address_is_named(url):
    with pytest.raises(BadAddress):
        Connections(url, {}, longest=1)


def test_nothing_can_be_smuggled_into_the_head_of_a_request():
    connections = Connections("http://host/a b\u00e9?q=1 2", {}, longest=1)
    assert connections._head.startswith(b"POST /a%20b%C3%A9?q=1%202 HTTP/1.1\r\nHost: host\r\n")
    for value in ("Bearer a\r\nX: y", "Bearer \u00e9"):
        with pytest.raises(BadAddress):
            Connections("http://host/", {"Authorization": value}, longest=1)
