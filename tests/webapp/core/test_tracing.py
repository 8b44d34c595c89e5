"""Traces, sent to a receiver of OTLP in this test: from a request through its task into the job, with calls of judges. If tracing is off,
nothing is sent.
"""

import json
import logging
import os
import subprocess
import sys
import threading
from importlib import import_module
from typing import Any

import pytest
from django.conf import settings as configured
from django.http import HttpResponse
from django.test import Client, RequestFactory

from benchmarks.chatserver import ChatServer
from tests.answering import Answering, address, serve
from tests.webapp.core.monitoring.test_logs import line
from tests.webapp.experiments.conftest import (  # noqa: F401 - fixtures
    launch,
    model,
    ray,  # noqa: F401 - a fixture
    run,
    version,
)
from trainer import tracing
from trainer.judges.client import ChatClient, ChatRequest, EndpointProblem, Target
from trainer.judges.sampling import Sampling
from webapp.celery import app
from webapp.core.requests.middleware import RequestIdMiddleware
from webapp.core.tasks import _send

KEY, SAID = "sk-very-secret-key", "Is the sky blue?"


class Handler(Answering):
    """GET answers with prepared content, POST keeps the body. Both are by path."""

    server: Any

    def do_GET(self):
        self.write(json.dumps(self.server.prepared).encode())

    def do_POST(self):
        self.server.came.append((self.path, self.sent()))
        self.write(b'{"acked": 1000000}')


class Receiver:
    """`spans()`: the spans that were sent so far, by name."""

    def __init__(self, http: Any) -> None:
        self.http, self.url = http, address(http)
        self.http.came, self.http.prepared = [], {}

    def bodies(self) -> list[bytes]:
        return [body for path, body in self.http.came if path == "/v1/traces"]

    def spans(self) -> dict[str, dict]:
        tracing.flush()
        request = import_module("opentelemetry.proto.collector.trace.v1.trace_service_pb2").ExportTraceServiceRequest
        return {
            span.name: span_facts(span, resource.resource)
            for body in self.bodies()
            for resource in request.FromString(body).resource_spans
            for scope in resource.scope_spans
            for span in scope.spans
        }


def values(pairs) -> dict:
    return {pair.key: getattr(pair.value, pair.value.WhichOneof("value")) for pair in pairs}


def span_facts(span, resource) -> dict:
    return {
        "trace": span.trace_id.hex(),
        "id": span.span_id.hex(),
        "parent": span.parent_span_id.hex(),
        "service": values(resource.attributes)["service.name"],
        "failed": span.status.code == 2,
        **values(span.attributes),
    }


@pytest.fixture
def receiver(monkeypatch):
    with serve(Handler) as http:
        found = Receiver(http)
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", found.url)
        monkeypatch.setattr(tracing, "_process", tracing._Process())
        yield found
        if tracing._process.provider:
            tracing._process.provider.shutdown()


def program(text: str, **env: str) -> subprocess.CompletedProcess:
    given = {name: value for name, value in os.environ.items() if not name.startswith("OTEL_")}
    return subprocess.run(
        [sys.executable, "-c", text], env=given | env, cwd=configured.BASE_DIR, capture_output=True, text=True
    )


USED = """
import sys
from trainer import tracing
with tracing.span("chat m", "CLIENT", {"x": 1}) as span:
    span.set({"y": 2})
    span.name("other")
    span.failed("timeout")
print(tracing.carried(), tracing.job_environment(), repr(tracing.trace_id()))
"""


def test_without_a_receiver_nothing_is_loaded_or_told():
    done = program(USED + "print([name for name in sys.modules if name.startswith('opentelemetry')])")
    assert done.stdout.splitlines() == ["{} {} ''", "[]"], done.stderr


def test_a_missing_package_is_one_sentence_and_work_goes_on():
    absent = "import sys\nsys.modules['opentelemetry.exporter.otlp.proto.http.trace_exporter'] = None\n"
    done = program(absent + USED + USED, OTEL_EXPORTER_OTLP_ENDPOINT="http://127.0.0.1:9")
    assert done.returncode == 0 and done.stdout.count("''") == 2
    [sentence] = done.stderr.splitlines()
    assert "no trace is sent" in sentence and "pip install '.[tracing]'" in sentence


@pytest.mark.django_db
def test_a_request_is_a_span_named_by_its_route(receiver, team):
    answer = Client(headers={"traceparent": f"00-{'a' * 32}-{'b' * 16}-01"}).get("/runs/17?q=secret-words")
    Client().get("/healthz")
    Client().get("/static/js/http.js")
    [(name, span)] = receiver.spans().items()
    assert (name, span["http.route"]) == ("GET /runs/<int:run_id>", "/runs/<int:run_id>")
    assert (span["http.response.status_code"], span["touchstone.request_id"]) == (302, answer["X-Request-Id"])
    assert span["parent"] == "" and span["trace"] != "a" * 32, "strangers do not say where a trace belongs"
    assert b"secret-words" not in b"".join(receiver.bodies())


def test_lines_of_the_log_name_the_trace(receiver):
    record = logging.makeLogRecord({"name": "webapp", "levelname": "INFO", "msg": "hello"})
    assert "trace" not in line(record)
    with tracing.span("around"):
        record = logging.makeLogRecord({"name": "webapp", "levelname": "INFO", "msg": "hello"})
        found = line(record)["trace"]
    assert found == receiver.spans()["around"]["trace"] and len(found) == 32


def test_a_request_its_task_and_its_job_are_one_trace(receiver, run, ray, eager, monkeypatch):  # noqa: F811
    ask = RequestIdMiddleware(lambda request: HttpResponse(str(_send("workers.runs.launch", (run.id,)))))
    ask(RequestFactory().post("/runs/new"))
    environment = ray.jobs[f"run-{run.id}-1"]["body"]["runtime_env"]["env_vars"]
    assert environment["OTEL_EXPORTER_OTLP_ENDPOINT"] == receiver.url and "TRACEPARENT" in environment
    receiver.http.prepared = {
        "run_id": run.id, "name": "n", "recipe": "policy", "config": {"stepz": 3}, "attempt": 1, "resume": False, "last_seq": 0,
        "models": {}, "run_dir": str(configured.VAR), "examples_digest": "0" * 64, "examples_url": receiver.url,
    }  # fmt: skip
    environment["TOUCHSTONE_URL"] = receiver.url
    done = program("import sys\nfrom trainer.ray_jobs.entry import job\nsys.exit(job([]))", **environment)
    assert done.returncode == 1, done.stderr
    spans = receiver.spans()
    request, task, job = (spans[name] for name in ("POST", "process workers.runs.launch", "run policy"))
    assert request["trace"] == task["trace"] == job["trace"]
    assert (request["parent"], task["parent"], job["parent"]) == ("", request["id"], task["id"])
    assert task["touchstone.request_id"] == request["touchstone.request_id"]
    assert (job["service"], job["failed"], job["touchstone.run.id"]) == ("touchstone-run", True, str(run.id))


def test_a_task_that_fails_says_so_and_what_beat_asks_for_is_no_trace(receiver):
    @app.task(name="tests.break", shared=False)
    def breaks():
        raise ValueError("words of somebody")

    try:
        app.tasks["tests.break"].apply()
        with tracing.span("around"):
            app.tasks["tests.break"].apply(headers=tracing.carried())
    finally:
        del app.tasks["tests.break"]
    spans = receiver.spans()
    assert set(spans) == {"around", "process tests.break"}
    failed = spans["process tests.break"]
    assert (failed["failed"], failed["error.type"], failed["parent"]) == (True, "ValueError", spans["around"]["id"])
    assert b"words of somebody" not in b"".join(receiver.bodies())


def test_spans_of_other_threads_belong_to_the_job(receiver, monkeypatch):
    monkeypatch.setenv("TRACEPARENT", f"00-{'a' * 32}-{'b' * 16}-01")
    with tracing.job("touchstone-run", "run x"):
        with tracing.span("beside"):
            pass
        thread = threading.Thread(target=in_a_span)
        thread.start()
        thread.join()
    spans = receiver.spans()
    assert (spans["run x"]["trace"], spans["run x"]["parent"]) == ("a" * 32, "b" * 16)
    assert spans["elsewhere"]["parent"] == spans["beside"]["parent"] == spans["run x"]["id"]


def in_a_span() -> None:
    with tracing.span("elsewhere"):
        pass


async def test_a_call_of_a_judge_tells_model_and_tokens_and_no_text(receiver):
    request = ChatRequest(({"role": "user", "content": SAID},), Sampling(temperature=0.5, max_tokens=64, seed=7))
    async with ChatServer(key=KEY) as server:
        target = Target(url=server.url, model="judge", key=KEY, retries=0)
        async with ChatClient(target) as client:
            reply = await client.chat(request)
        async with ChatClient(Target(url=server.url, model="refused", key="another key", retries=0)) as client:
            with pytest.raises(EndpointProblem):
                await client.chat(request)
    spans = receiver.spans()
    call = spans["chat judge"]
    assert call["gen_ai.operation.name"] == "chat" and call["gen_ai.request.model"] == "judge"
    assert (call["gen_ai.request.temperature"], call["gen_ai.request.max_tokens"]) == (0.5, 64)
    assert call["gen_ai.usage.input_tokens"] == reply.prompt_tokens
    assert call["gen_ai.usage.output_tokens"] == reply.completion_tokens
    assert call["server.address"] == "127.0.0.1" and not call["failed"]
    assert (spans["chat refused"]["failed"], spans["chat refused"]["error.type"]) == (True, "refused")
    names = import_module("opentelemetry.semconv._incubating.attributes.gen_ai_attributes")
    known = {value for name, value in vars(names).items() if name.startswith("GEN_AI_")}
    assert {name for name in call if name.startswith("gen_ai.")} <= known
    for text in (SAID, reply.text, KEY, "another key"):
        assert text.encode() not in b"".join(receiver.bodies())
