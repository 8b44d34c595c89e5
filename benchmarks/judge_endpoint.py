"""A small model of this machine behind OpenAI's chat API: `python -m benchmarks.judge_endpoint --model DIR`.

The name that a request gives as its `model` decides how it is answered. `writes`: the model writes its answer, which
may not be a usable one. `yes-no`: the built-in judge reads the probability of yes from one forward pass and gives
it as the JSON that a criterion judge is asked for. Requests that wait together are answered together. Prints its address.
"""

import argparse
import json
import queue
from concurrent.futures import Future
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

from trainer.contracts import Message
from trainer.judges.local import wording
from trainer.logit_judge.answering import Answering
from trainer.logit_judge.calls import USUAL, LocalCall

READS, WRITES = "yes-no", "writes"
AT_ONCE = 32
_GATHER_S = 0.05
_MOST_WRITTEN = 64
Reply = dict[str, Any]


@dataclass(frozen=True)
class WaitingCall:
    call: LocalCall
    reply: "Future[Reply]"


def call_of(body: dict[str, Any], number: int) -> LocalCall:
    """The call to the model for a chat request. Raises ValueError, KeyError."""
    messages = tuple(Message(role=message["role"], content=message["content"]) for message in body["messages"])
    if body["model"] == READS:
        return LocalCall(key=str(number), messages=messages, wording=wording(USUAL), reply="yes_no")
    if body["model"] != WRITES:
        raise ValueError(f"there is no model {body['model']!r}; there are {READS} and {WRITES}")
    longest = min(body.get("max_tokens") or _MOST_WRITTEN, _MOST_WRITTEN)
    drawn = {name: body[name] for name in ("temperature", "top_p", "seed") if body.get(name) is not None}
    return LocalCall(key=str(number), messages=messages, reply="text", max_tokens=longest, **drawn)


def completion(verdict: dict[str, Any]) -> Reply:
    """A chat completion. Raises ValueError with the model's reason if it cannot take the call."""
    if verdict["state"] != "done":
        raise ValueError(verdict["message"])
    if "text" in verdict:
        text, reason = verdict["text"], verdict["finish_reason"]
    else:
        said = {"explanation": f"Yes at {verdict['probability']:.2f}.", "met": verdict["met"]}
        text, reason = json.dumps(said), "stop"
    tokens = {"prompt_tokens": verdict["prompt_tokens"], "completion_tokens": verdict.get("completion_tokens", 1)}
    message = {"role": "assistant", "content": text}
    return {
        "object": "chat.completion",
        "choices": [{"index": 0, "message": message, "finish_reason": reason}],
        "usage": tokens,
    }


class EndpointServer:
    """Listens in threads and answers in the thread that calls `serve`."""

    def __init__(self, answering: Answering, port: int = 0) -> None:
        self._answering = answering
        self._waiting: queue.Queue[WaitingCall] = queue.Queue()
        self._http = ThreadingHTTPServer(("127.0.0.1", port), self._handler())
        self.url = f"http://127.0.0.1:{self._http.server_port}/v1"
        Thread(target=self._http.serve_forever, daemon=True).start()

    def serve(self) -> None:
        while True:
            self.answer_waiting()

    def answer_waiting(self) -> None:
        """Answer the requests that come within a moment of the first; waits for the first."""
        found = [self._waiting.get()]
        while len(found) < AT_ONCE:
            try:
                found.append(self._waiting.get(timeout=_GATHER_S))
            except queue.Empty:
                break
        for waiting, verdict in zip(found, self._answering.answer([each.call for each in found]), strict=True):
            try:
                waiting.reply.set_result(completion(verdict))
            except ValueError as error:
                waiting.reply.set_exception(error)

    def ask(self, body: dict[str, Any], number: int) -> Reply:
        """Ask from any thread. Raises ValueError, KeyError."""
        waiting = WaitingCall(call_of(body, number), Future())
        self._waiting.put(waiting)
        return waiting.reply.result()

    def close(self) -> None:
        self._http.shutdown()
        self._http.server_close()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        ask = self.ask

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                try:
                    body = json.loads(self.rfile.read(int(self.headers.get("Content-Length", 0))))
                    self._send(200, ask(body, id(self)))
                except (ValueError, KeyError, TypeError) as error:
                    self._send(400, {"error": {"message": str(error), "code": "invalid_request_error"}})

            def _send(self, status: int, answer: Reply) -> None:
                data = json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, format: str, *args: Any) -> None:
                """Nothing, because the client counts the calls."""

        return Handler


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.judge_endpoint",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--model", type=Path, default=Path("var/models/smollm2-135m-instruct"))
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    options = parser.parse_args()
    server = EndpointServer(Answering(options.model), options.port)
    print(server.url, flush=True)
    server.serve()


if __name__ == "__main__":
    main()
