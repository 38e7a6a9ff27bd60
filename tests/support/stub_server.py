"""A server of another site, in a thread of the test process."""

from __future__ import annotations

import threading
from http.server import HTTPServer
from types import TracebackType
from typing import Self


class StubServer:
    """A context manager that serves what `serve` was given."""

    def serve(self, server: HTTPServer) -> None:
        """Have requests answered by this server from ``__enter__`` on."""
        self._server = server
        self._thread = threading.Thread(target=server.serve_forever, args=(0.1,), daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()
