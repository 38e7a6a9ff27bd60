"""OpenTelemetry traces, off by default: where a page's or a task's time goes, over processes.

The libraries' own instrumentation makes the spans, and the standard ``OTEL_…`` variables configure them
(docs/reference/settings.md). What leaves the process is limited to the attributes named here: the libraries' others
have addresses with their queries, and rows that PostgreSQL quotes in its errors.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any, Final

from django.http import HttpRequest, HttpResponse
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.instrumentation.celery import CeleryInstrumentor
from opentelemetry.instrumentation.django import DjangoInstrumentor
from opentelemetry.instrumentation.psycopg import PsycopgInstrumentor
from opentelemetry.sdk.resources import SERVICE_NAME, Resource
from opentelemetry.sdk.trace import Event, ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

from portal.ops.logs import loggable_path

SENT_ATTRIBUTES: Final = frozenset(
    {
        "celery.action",
        "celery.retries",
        "celery.state",
        "celery.task_name",
        "cobblestone.error_num",
        "cobblestone.path",
        "cobblestone.request_id",
        "db.name",
        "db.statement",
        "db.system",
        "exception.type",
        "http.method",
        "http.route",
        "http.status_code",
        "messaging.destination",
        "messaging.message.id",
        "net.peer.name",
        "net.peer.port",
    }
)
MAX_VALUE_CHARS: Final = 4_000


class LimitedExporter(SpanExporter):
    """Passes spans on with only what `SENT_ATTRIBUTES` names: of an exception its type, but no message and no stack."""

    def __init__(self, exporter: SpanExporter) -> None:
        self._exporter = exporter

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        return self._exporter.export([_limited(span) for span in spans])

    def shutdown(self) -> None:
        self._exporter.shutdown()

    def force_flush(self, timeout_millis: int = 30_000) -> bool:
        return self._exporter.force_flush(timeout_millis)


def _limited(span: ReadableSpan) -> ReadableSpan:
    return ReadableSpan(
        name=span.name,
        context=span.context,
        parent=span.parent,
        resource=span.resource,
        attributes=_sent(span.attributes),
        events=[Event(event.name, _sent(event.attributes), event.timestamp) for event in span.events],
        links=span.links,
        kind=span.kind,
        instrumentation_scope=span.instrumentation_scope,
        # The description of an error quotes the exception.
        status=trace.Status(span.status.status_code),
        start_time=span.start_time,
        end_time=span.end_time,
    )


def _sent(attributes: Any) -> dict[str, Any]:
    found = {name: value for name, value in (attributes or {}).items() if name in SENT_ATTRIBUTES}
    return {name: value[:MAX_VALUE_CHARS] if isinstance(value, str) else value for name, value in found.items()}


def start(process: str) -> None:
    """Send this process's spans from now on; ``process``: what it is, as "pages"."""
    resource = Resource.create({SERVICE_NAME: f"cobblestone-{process}"})
    provider = TracerProvider(resource=resource)
    provider.add_span_processor(BatchSpanProcessor(LimitedExporter(OTLPSpanExporter())))
    trace.set_tracer_provider(provider)
    DjangoInstrumentor().instrument(response_hook=_name_page, excluded_urls="healthz,readyz,metrics")
    PsycopgInstrumentor().instrument()
    celery: Any = CeleryInstrumentor
    celery().instrument()


def _name_page(span: trace.Span, request: HttpRequest, _response: HttpResponse) -> None:
    """The path as the log has it, without what may be secret in it."""
    span.set_attribute("cobblestone.path", loggable_path(request))


def record_rpc(path: str, error_num: int, request_id: str, elapsed_secs: float) -> None:
    """A span for the request of a BOINC client that has just been answered. Its statements serve many requests at
    once, so they have spans of their own.
    """
    end_ns = time.time_ns()
    attributes: dict[str, str | int] = {
        "cobblestone.path": path,
        "cobblestone.error_num": error_num,
        "cobblestone.request_id": request_id,
    }
    span = trace.get_tracer(__name__).start_span(
        f"client {path}",
        kind=trace.SpanKind.SERVER,
        attributes=attributes,
        start_time=end_ns - round(elapsed_secs * 1e9),
    )
    span.end(end_ns)
