"""A server that takes OpenTelemetry's spans over HTTP, as a collector does, and keeps them decoded."""

from __future__ import annotations

import threading
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from types import TracebackType
from typing import Any, Self

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


@dataclass(frozen=True, slots=True)
class ReceivedSpan:
    """Identifiers in hexadecimal digits; ``parent``: empty for the first of a trace."""

    service: str
    name: str
    trace: str
    id: str
    parent: str
    attributes: dict[str, str]
    events: tuple[dict[str, str], ...]
    elapsed_ns: int


def _texts(attributes: Any) -> dict[str, str]:
    return {each.key: str(getattr(each.value, each.value.WhichOneof("value"))) for each in attributes}


class TraceReceiver:
    """Use it as a context manager; ``url`` is what OTEL_EXPORTER_OTLP_ENDPOINT should be."""

    def __init__(self) -> None:
        self.spans: list[ReceivedSpan] = []
        self.bodies: list[bytes] = []
        receiver = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                receiver._take(self.rfile.read(int(self.headers["Content-Length"])))
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def _take(self, body: bytes) -> None:
        self.bodies.append(body)
        for group in ExportTraceServiceRequest.FromString(body).resource_spans:
            service = _texts(group.resource.attributes)["service.name"]
            for scope in group.scope_spans:
                self.spans += [
                    ReceivedSpan(
                        service=service,
                        name=span.name,
                        trace=span.trace_id.hex(),
                        id=span.span_id.hex(),
                        parent=span.parent_span_id.hex(),
                        attributes=_texts(span.attributes),
                        events=tuple(_texts(event.attributes) for event in span.events),
                        elapsed_ns=span.end_time_unix_nano - span.start_time_unix_nano,
                    )
                    for span in scope.spans
                ]

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, tb: TracebackType | None) -> None:
        self._server.shutdown()
        self._server.server_close()
