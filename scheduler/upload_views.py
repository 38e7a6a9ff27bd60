"""The upload handler over HTTP: bodies are read a chunk at a time, and every failure is an answer clients know."""

from __future__ import annotations

from typing import Final

import structlog
from django.http import HttpRequest, HttpResponse
from django.views.decorators.csrf import csrf_exempt

from portal.scanner import ProtocolError
from scheduler import receiving
from scheduler.receiving import UploadError
from scheduler.upload_protocol import DONE, REFUSED, TRY_AGAIN, FileUpload, parse_head, read_head, render_reply

log = structlog.get_logger(__name__)
MAX_IGNORED_NBYTES: Final = 64 * 1024 * 1024
"""So much of a refused body is read and dropped: a client that is still sending does not see the answer."""


@csrf_exempt
def upload(request: HttpRequest) -> HttpResponse:
    """POST file_upload_handler (BOINC protocol, files)."""
    if request.method != "POST":
        response = _reply(REFUSED, "This address is for BOINC clients, which POST their output files.", http_status=405)
        response.headers["Allow"] = "POST"
        return response
    if "HTTP_TRANSFER_ENCODING" in request.META:
        # The server hands a chunked body on as an empty one.
        return _reply(REFUSED, "Send the file with a Content-Length, not in chunks.", http_status=411)
    body = _Body(request)
    try:
        response = _answer(body)
    except ProtocolError as error:
        response = _reply(REFUSED, str(error))
    except UploadError as error:
        response = _reply(error.status, str(error))
    except OSError as error:
        # The client is gone, or the disk is ill: it comes again, and what is here stays.
        log.warning("upload_broken", reason=str(error))
        return _reply(TRY_AGAIN, "The upload was interrupted.")
    except Exception:
        log.exception("upload_failed")
        response = _reply(TRY_AGAIN, "The server failed to take the file. Your client will try again.")
    body.drop_rest()
    return response


class _Body:
    """A request's body, read once: ``length`` and ``nread`` in bytes."""

    def __init__(self, request: HttpRequest) -> None:
        self._request = request
        text = request.META.get("CONTENT_LENGTH") or "0"
        self.length = int(text) if text.isdecimal() and len(text) < 19 else 0
        self.nread = 0

    def read(self, nbytes: int) -> bytes:
        chunk = self._request.read(nbytes)
        self.nread += len(chunk)
        return chunk

    def drop_rest(self) -> None:
        left = min(self.length - self.nread, MAX_IGNORED_NBYTES)
        try:
            while left > 0 and (chunk := self.read(min(receiving.CHUNK_NBYTES, left))):
                left -= len(chunk)
        except OSError:
            return


def _answer(body: _Body) -> HttpResponse:
    head, start = read_head(body.read)
    asked = parse_head(head)
    if not isinstance(asked, FileUpload):
        return HttpResponse(
            render_reply(DONE, file_size_nbytes=receiving.received_nbytes(asked.name)), content_type="text/xml"
        )
    announced = body.length - (body.nread - len(start))
    if announced != asked.nbytes - asked.offset:
        raise ProtocolError("data", f"{announced} bytes, where nbytes − offset is {asked.nbytes - asked.offset}")

    def read(nbytes: int) -> bytes:
        nonlocal start
        if start:
            chunk, start = start[:nbytes], start[nbytes:]
            return chunk
        return body.read(nbytes)

    receiving.receive(asked, read)
    return _reply(DONE)


def _reply(status: int, message: str = "", http_status: int = 200) -> HttpResponse:
    response = HttpResponse(render_reply(status, message), content_type="text/xml", status=http_status)
    response.error_num = status  # type: ignore[attr-defined]  # counted and logged by the middleware
    return response
