"""One POST, to receivers that behave badly."""

import socket
import threading

import pytest

from webapp.core.network import destinations
from webapp.webhooks import post, targets


def test_what_was_checked_is_what_is_connected_to(receiver, monkeypatch, settings):
    """DNS rebinding: the name is looked up once, and a private address in that answer is refused."""
    port = targets.port(targets.parse(receiver.url))
    asked = []

    def lookup(host, port, **options):
        asked.append(host)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port))]

    monkeypatch.setattr(destinations, "getaddrinfo", lookup)
    assert post.post(f"http://rebinding.example:{port}/", {}, b"{}").status == 200
    assert asked == ["rebinding.example"]
    assert receiver.heard[0][1]["host"] == f"rebinding.example:{port}"

    settings.WEBHOOK_NETWORKS = ()
    with pytest.raises(targets.DestinationRefused, match=r"rebinding\.example is 127\.0\.0\.1"):
        post.post(f"https://rebinding.example:{port}/", {}, b"{}")
    assert len(receiver.heard) == 1


def test_a_redirect_is_an_answer_and_not_followed(receiver):
    def redirect(handler):
        handler.send_response(307)
        handler.send_header("Location", receiver.url)
        handler.end_headers()

    receiver.answers = [redirect, 200]
    answer = post.post(receiver.url, {}, b"{}")
    assert (answer.status, answer.location) == (307, receiver.url)
    assert len(receiver.heard) == 1


def test_a_receiver_that_dribbles_is_cut_off(receiver):
    """A byte now and then keeps every single read within its limit. The whole exchange has a separate limit, without which the answer would
    be complete after five seconds.
    """
    stop = threading.Event()

    def dribble(handler):
        handler.send_response(200)
        handler.end_headers()
        for _ in range(100):
            if stop.wait(0.05):
                return
            try:
                handler.wfile.write(b".")
            except OSError:
                return

    receiver.answers = [dribble]
    with pytest.raises(post.NoAnswer, match=r"within 0\.4 s"):
        post.post(receiver.url, {}, b"{}", timeout_s=0.4)
    stop.set()


def test_of_a_long_answer_only_the_beginning_is_read(receiver):
    def flood(handler):
        handler.send_response(200)
        handler.end_headers()
        try:
            for _ in range(2000):
                handler.wfile.write(b"\0" + b"x" * 10_000)
        except OSError:
            pass

    receiver.answers = [flood]
    answer = post.post(receiver.url, {}, b"{}")
    assert len(answer.excerpt) == post.EXCERPT
    assert answer.excerpt.startswith("␀x")


def test_a_closed_port_is_no_answer(receiver):
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        with pytest.raises(post.NoAnswer):
            post.post(f"http://127.0.0.1:{unused.getsockname()[1]}/", {}, b"{}")


def test_a_receiver_without_a_valid_certificate_hears_nothing(receiver):
    with pytest.raises(post.NoAnswer):
        post.post(receiver.url.replace("http://", "https://"), {}, b"{}")
    assert receiver.heard == []
