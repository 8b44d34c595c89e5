"""Traces by OpenTelemetry, if OTEL_EXPORTER_OTLP_ENDPOINT names a receiver: `pip install '.[tracing]'` installs what sends them.

Without that variable nothing is imported and a span is an empty block. Names follow OpenTelemetry's semantic conventions, 1.37 and
later: `gen_ai.provider.name` instead of `gen_ai.system`. Spans carry names, numbers and ids, never a user's text.
"""

import logging
import os
import threading
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from importlib import import_module
from typing import Any, Literal

from trainer.product import SLUG

logger = logging.getLogger(__name__)
ENDPOINTS = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
PARENT = "traceparent"  # W3C Trace Context: the header of HTTP and of tasks; a job finds it in its environment, in upper case
MISSING = "OTEL_EXPORTER_OTLP_ENDPOINT is set and no trace is sent, because a package is missing ({}): pip install '.[tracing]'"
Kind = Literal["INTERNAL", "SERVER", "CLIENT", "CONSUMER"]
Value = str | bool | int | float


class TraceSpan:
    """The span of a block while it lasts; without traces it does nothing."""

    def __init__(self, told: Any = None) -> None:
        self._told = told
        self._has_failed = False

    def name(self, name: str) -> None:
        if self._told is not None:
            self._told.update_name(name)

    def set(self, attributes: Mapping[str, Value | None]) -> None:
        """Set attributes; those that are None are left out."""
        if self._told is not None:
            self._told.set_attributes({name: value for name, value in attributes.items() if value is not None})

    def failed(self, kind: str) -> None:
        """Mark the block as failed. `kind` is a class of failures, such as "timeout" or "500": the message of a failure may quote a
        user's text. The first call counts.
        """
        if self._told is not None and not self._has_failed:
            self._has_failed = True
            self._told.set_attribute("error.type", kind)
            self._told.set_status(import_module("opentelemetry.trace").StatusCode.ERROR)


SILENT = TraceSpan()


class _Process:
    """The sender of one process; made at its first span, and so after a server has forked."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.service = SLUG
        self.parent: Any = None  # the parent of spans that have none in their own thread
        self.tracer: Any = None
        self.provider: Any = None
        self.tried = False

    def ready(self) -> Any:
        if not self.tried:
            with self.lock:
                if not self.tried:
                    self.tracer = self._tracer()
                    self.tried = True
        return self.tracer

    def _tracer(self) -> Any:
        try:
            exporter = import_module("opentelemetry.exporter.otlp.proto.http.trace_exporter").OTLPSpanExporter()
            sdk, export = import_module("opentelemetry.sdk.trace"), import_module("opentelemetry.sdk.trace.export")
            resource = import_module("opentelemetry.sdk.resources").Resource
        except ImportError as error:
            logger.warning(MISSING.format(error.name))
            return None
        named = {} if os.environ.get("OTEL_SERVICE_NAME") else {"service.name": self.service}
        self.provider = sdk.TracerProvider(resource=resource.create(named))
        self.provider.add_span_processor(export.BatchSpanProcessor(exporter))
        return self.provider.get_tracer(SLUG)


_process = _Process()


def is_on() -> bool:
    return any(os.environ.get(name) for name in ENDPOINTS)


def serve(service: str) -> None:
    """Set the name of this process in traces: `touchstone-web`, `touchstone-worker`, `touchstone-run`."""
    _process.service = service


def span(
    name: str, kind: Kind = "INTERNAL", attributes: Mapping[str, Value | None] | None = None, parent: str | None = None
) -> AbstractContextManager[TraceSpan]:
    """`with span("chat m", "CLIENT", {"gen_ai.request.model": "m"}) as told:` records how long the block took, and how it ended.

    The span belongs to the span around it, or to the one that `parent` (a traceparent) names. An exception that leaves the block marks
    it as failed, with only the exception's class.
    """
    if not is_on() or _process.ready() is None:
        return nullcontext(SILENT)
    return _told(name, kind, attributes or {}, parent)


@contextmanager
def _told(name: str, kind: Kind, attributes: Mapping[str, Value | None], parent: str | None) -> Iterator[TraceSpan]:
    trace = import_module("opentelemetry.trace")
    around = _context(parent) if parent else None
    if around is None and not trace.get_current_span().get_span_context().is_valid:
        around = _process.parent
    given = {name: value for name, value in attributes.items() if value is not None}
    with _process.tracer.start_as_current_span(
        name,
        context=around,
        kind=trace.SpanKind[kind],
        attributes=given,
        record_exception=False,
        set_status_on_exception=False,
    ) as found:
        told = TraceSpan(found)
        try:
            yield told
        except BaseException as error:
            told.failed(type(error).__name__)
            raise


def _context(parent: str) -> Any:
    module = import_module("opentelemetry.trace.propagation.tracecontext")
    return module.TraceContextTextMapPropagator().extract({PARENT: parent})


@contextmanager
def job(service: str, name: str, attributes: Mapping[str, Value | None] | None = None) -> Iterator[TraceSpan]:
    """The span of a whole process; it belongs to the TRACEPARENT of its environment. All other spans of the process belong to it,
    in any thread. Everything is sent before the block ends.
    """
    serve(service)
    with span(name, "CONSUMER", attributes, os.environ.get(PARENT.upper())) as told:
        if is_on() and _process.tracer is not None:
            _process.parent = import_module("opentelemetry.context").get_current()
        yield told
    _process.parent = None
    flush()


def flush() -> None:
    """Send the spans that wait: a process that is about to end has no other chance."""
    if _process.provider is not None:
        _process.provider.force_flush(5_000)


def carried() -> dict[str, str]:
    """`traceparent` of the present span, for a header or an environment; empty if there is none."""
    found: dict[str, str] = {}
    if is_on() and _process.tracer is not None:
        import_module("opentelemetry.trace.propagation.tracecontext").TraceContextTextMapPropagator().inject(found)
    return {PARENT: found[PARENT]} if PARENT in found else {}


def trace_id() -> str:
    """32 hexadecimal digits of the present trace; empty if there is none."""
    return carried().get(PARENT, "--").split("-")[1]


def job_environment() -> dict[str, str]:
    """Environment variables with which a job of the cluster continues the trace; empty without traces."""
    ours = {name: os.environ[name] for name in ENDPOINTS if os.environ.get(name)}
    return ours | {name.upper(): value for name, value in carried().items()}
