"""A model behind a socket: its tokens one by one, several clients in turn, and a clear message if it cannot answer."""

import json
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests import fork_server
from tests.timeouts import SECONDS
from trainer.contracts import Message, ModelSource
from trainer.inference.chat import encode_prompt
from trainer.inference.local import LocalSampler
from trainer.inference.models import load_model, load_tokenizer
from trainer.inference.sampling import SampleRequest
from trainer.serving import memory
from trainer.serving.command import load
from trainer.serving.pieces import Pieces
from trainer.serving.server import Failed, ServedModel, ServedScorer, Server


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "s.sock"


@pytest.fixture
def server(tiny_dir: Path, path: Path) -> Iterator[Server]:
    made = Server(path, idle_s=60)
    thread = threading.Thread(target=made.serve, args=(lambda: load(ModelSource(path=str(tiny_dir))),))
    thread.start()
    yield made
    made.end()
    thread.join(SECONDS)
    assert not thread.is_alive() and not path.exists()


def lines(connection: socket.socket) -> Iterator[dict[str, Any]]:
    with connection, connection.makefile() as file:
        yield from map(json.loads, file)


def send(path: Path, **request: Any) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.connect(str(path))
    connection.sendall(json.dumps(request).encode() + b"\n")
    return connection


def ask(path: Path, text: str = "hello", **request: Any) -> list[dict[str, Any]]:
    return list(lines(send(path, messages=[{"role": "user", "content": text}], **request)))


def sampled(tiny_dir: Path, **settings: Any):
    tokenizer = load_tokenizer(tiny_dir)
    prompt = encode_prompt(tokenizer, [Message(role="user", content="hello")])
    return LocalSampler(load_model(tiny_dir), tokenizer).sample([SampleRequest(prompt, **settings)])[0]


def test_the_tokens_are_those_of_the_sampler(server, path, tiny_dir):
    told = ask(path, max_new_tokens=20)
    expected = sampled(tiny_dir, max_new_tokens=20, temperature=0.0)
    tokens = [event["token"] for event in told if event["event"] == "token"]
    done = told[-1]
    assert done["event"] == "done" and tuple(tokens) == tuple(done["tokens"]) == expected.tokens
    assert "".join(event["text"] for event in told if event["event"] == "token") == done["text"] == expected.text
    assert (done["completion_tokens"], done["finish_reason"]) == (len(tokens), expected.finish_reason)


def test_a_seed_decides_what_is_drawn(server, path):
    def drawn(seed: int) -> str:
        return ask(path, temperature=1.0, seed=seed, max_new_tokens=16)[-1]["text"]

    assert drawn(1) == drawn(1) != drawn(2)


def test_several_are_answered_in_turns(server, path):
    first, second = (send(path, messages=[{"role": "user", "content": str(i)}], max_new_tokens=200) for i in range(2))
    order: list[int] = []

    def follow(i: int, connection: socket.socket) -> None:
        for event in lines(connection):
            if event["event"] == "token":
                order.append(i)

    threads = [threading.Thread(target=follow, args=each) for each in enumerate((first, second))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(SECONDS)
    assert order.index(1) < 200 and sum(a != b for a, b in zip(order, order[1:], strict=False)) > 20


def test_who_hangs_up_is_not_answered_to_the_end(server, path):
    connection = send(path, messages=[{"role": "user", "content": "x"}], max_new_tokens=1500)
    connection.recv(100)
    connection.close()
    deadline = time.monotonic() + SECONDS
    while not server.idle and time.monotonic() < deadline:
        time.sleep(0.05)
    assert server.idle


@pytest.mark.parametrize(
    ("request_", "field"),
    [
        ({"messages": []}, "messages"),
        ({"messages": [{"role": "user", "content": "x"}], "max_new_tokens": 0}, "max_new_tokens"),
        ({"messages": [{"role": "user", "content": "x"}], "temperature": -1}, "temperature"),
        ({"prompt": "x"}, "prompt"),
    ],
)
def test_a_request_that_does_not_fit_is_refused_at_its_field(server, path, request_, field):
    (told,) = lines(send(path, **request_))
    assert told["code"] == "invalid" and field in told["message"]


def test_a_line_that_is_no_json_is_refused(server, path):
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.connect(str(path))
    connection.sendall(b"[1\n")
    (told,) = lines(connection)
    assert told["code"] == "invalid"


def test_a_prompt_that_is_too_long_is_said(server, path):
    told = ask(path, "x" * 2000, max_new_tokens=200)[-1]
    assert told["code"] == "too_long" and "2,048" in told["message"]


def test_who_waits_for_the_model_hears_that_it_loads(path, tiny_dir):
    made, go = Server(path, idle_s=60), threading.Event()

    def slow() -> ServedModel | ServedScorer:
        go.wait(SECONDS)
        return load(ModelSource(path=str(tiny_dir)))

    thread = threading.Thread(target=made.serve, args=(slow,))
    thread.start()
    told = lines(send(path, messages=[{"role": "user", "content": "x"}], max_new_tokens=1))
    assert next(told)["event"] == "loading"
    go.set()
    assert [event["event"] for event in told] == ["start", "token", "done"]
    made.end()
    thread.join(SECONDS)


def test_a_model_that_cannot_be_loaded_is_told_to_who_asked(path, tmp_path):
    made, go, failed = Server(path, idle_s=60), threading.Event(), []

    def broken() -> ServedModel | ServedScorer:
        go.wait(SECONDS)
        return load(ModelSource(path=str(tmp_path / "nothing")))

    def serve() -> None:
        try:
            made.serve(broken)
        except Failed as problem:
            failed.append(problem)

    thread = threading.Thread(target=serve)
    thread.start()
    told = lines(send(path, messages=[{"role": "user", "content": "x"}]))
    assert next(told)["event"] == "loading"
    go.set()
    (error,) = told
    assert error["code"] == "failed" and "no config.json" in error["message"]
    thread.join(SECONDS)
    assert failed and not path.exists()


def test_an_idle_server_yields_its_place_and_a_busy_one_does_not(server, path, monkeypatch):
    def endless(model, ask, caller):
        while True:  # a model of two layers has written its tokens before anybody can ask
            caller.tell("token", text="x")
            yield

    monkeypatch.setattr(ServedModel, "answer", endless)
    busy: Any = lines(send(path, messages=[{"role": "user", "content": "x"}], max_new_tokens=1500))
    while next(busy)["event"] != "token":
        pass
    assert [event["event"] for event in lines(send(path, op="yield"))] == ["busy"]
    busy.close()
    deadline = time.monotonic() + SECONDS
    while not server.idle and time.monotonic() < deadline:
        time.sleep(0.05)
    assert [event["event"] for event in lines(send(path, op="yield"))] == ["leaving"]


def test_it_ends_when_nobody_asks(path, tiny_dir):
    made = Server(path, idle_s=0.1)
    made.serve(lambda: load(ModelSource(path=str(tiny_dir))))
    assert not path.exists()


def test_the_process_ends_with_who_started_it(tiny_dir, path):
    command = [*fork_server.command(), "model-server", "--model", str(tiny_dir), "--socket", str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        deadline = time.monotonic() + SECONDS
        while not path.exists() and time.monotonic() < deadline:
            time.sleep(0.05)
        assert ask(path, max_new_tokens=2)[-1]["event"] == "done"
        process.stdin.close()
        assert process.wait(SECONDS) == 0


def test_a_model_that_does_not_fit_is_not_loaded(tiny_dir, monkeypatch):
    monkeypatch.setattr(memory, "free_bytes", lambda: 1_000_000)
    with pytest.raises(Failed, match=r"needs about 0\.6 GB of memory and 0\.0 GB are free") as caught:
        load(ModelSource(path=str(tiny_dir)))
    assert caught.value.code == "memory"


class Letters:
    """A tokenizer with bytes as tokens."""

    def decode(self, tokens: list[int], skip_special_tokens: bool) -> str:
        return bytes(tokens).decode(errors="replace")


def streamed_pieces(text: str, stop: tuple[str, ...] = ()) -> list[str]:
    pieces, tokens = Pieces(Letters(), stop), text.encode()
    found = [pieces.next(tokens[: n + 1]) for n in range(len(tokens) - 1)]
    whole = text
    for ending in stop:
        whole = whole.partition(ending)[0]
    return [*found, pieces.last(whole)]


def test_half_a_character_is_held_back():
    assert streamed_pieces("aü€b") == ["a", "", "ü", "", "", "€", "b"]


def test_the_beginning_of_a_stop_text_is_held_back():
    assert streamed_pieces("a#b##", ("##",)) == ["a", "", "#b", "", ""]
    assert "".join(streamed_pieces("x\n\nUs", ("\n\nUser:",))) == "x\n\nUs"


def test_a_reward_model_scores_and_writes_nothing(tiny_dir: Path, tmp_path: Path, path: Path) -> None:
    from trainer.inference.models import load_scalar
    from trainer.inference.reward_models import RewardModel

    folder = tmp_path / "scalar"
    load_scalar(tiny_dir, seed=3).save_pretrained(folder)
    load_tokenizer(tiny_dir).save_pretrained(folder)
    source = ModelSource(path=str(folder), head="scalar")
    server = Server(path, idle_s=60)
    thread = threading.Thread(target=server.serve, args=(lambda: load(source),))
    thread.start()
    try:
        asked: dict[str, Any] = {
            "messages": [{"role": "user", "content": "Name a colour."}],
            "answers": ["Red.", "x" * 5000],
        }
        *_, told = lines(send(path, op="score", **asked))
        (expected, why) = RewardModel(folder).scores([Message(role="user", content="Name a colour.")], asked["answers"])
        assert told == {"event": "done", "scores": [pytest.approx(expected), None], "problems": ["", why]}
        *_, refused = lines(send(path, messages=asked["messages"]))
        assert refused["event"] == "error" and "cannot write" in refused["message"]
    finally:
        server.end()
        thread.join(SECONDS)
