"""The upload handler: reads a body chunk by chunk, and answers every failure in a form that clients understand."""

from __future__ import annotations

from functools import partial

import structlog

from portal.clients.effects import Call
from portal.clients.messages import ClientReply, ClientRequest
from portal.wire.scanner import ProtocolError
from scheduler.files import receive
from scheduler.files.certificates import is_size_key
from scheduler.files.uploads import UploadError
from scheduler.wire.uploads import DONE, REFUSED, TRY_AGAIN, FileUpload, parse_head, read_head, render_reply

log = structlog.get_logger(__name__)


async def answer(request: ClientRequest) -> ClientReply:
    """Answer POST file_upload_handler (BOINC protocol, files)."""
    try:
        return await _answer(request)
    except ProtocolError as error:
        return _reply(REFUSED, str(error))
    except UploadError as error:
        return _reply(error.status, str(error))
    except OSError as error:
        # The client is gone or too slow, or the disk has failed: the client retries, and the part that has arrived
        # stays.
        log.warning("upload_broken", reason=str(error))
        return _reply(TRY_AGAIN, "The upload was interrupted.")


async def _answer(request: ClientRequest) -> ClientReply:
    head = await read_head()
    asked = parse_head(head.text)
    if not isinstance(asked, FileUpload):
        if not is_size_key(asked.name, request.query):
            # Reveal nothing to a stranger, not even whether there is such a file.
            return _reply(DONE, file_size_nbytes=0)
        here = await Call(partial(receive.received_nbytes, asked.name))
        return _reply(DONE, file_size_nbytes=here)
    announced = request.length - head.nbytes
    if announced != asked.nbytes - asked.offset:
        raise ProtocolError("data", f"{announced} bytes, but nbytes − offset is {asked.nbytes - asked.offset}")
    await receive.receive(asked, head.start)
    return _reply(DONE)


def _reply(status: int, message: str = "", file_size_nbytes: int | None = None) -> ClientReply:
    text = render_reply(status, message, file_size_nbytes)
    return ClientReply(text.encode(), status, content_type="text/xml")
