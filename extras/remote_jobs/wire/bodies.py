"""The request in a body: the form field ``request`` in either encoding, or the bare XML. Pure."""

from __future__ import annotations

import re
from typing import Final
from urllib.parse import unquote_to_bytes

from extras.remote_jobs.wire.xml_tree import XmlError

FIELD: Final = b"request"
_BOUNDARY: Final = re.compile(r'boundary="?([^";,]{1,70})"?')
_NAME: Final = re.compile(rb'^content-disposition:[^\r\n]*;\s*name="?request"?\s*(;|$)', re.IGNORECASE | re.MULTILINE)


def request_of(content_type: str, body: bytes) -> bytes:
    """Return the XML text of a request; empty if the form has none. Raises XmlError for an invalid form."""
    kind = content_type.partition(";")[0].strip().lower()
    if kind == "multipart/form-data":
        return _of_parts(content_type, body)
    # Two programs send bare XML with the content type of a form.
    if kind in ("application/xml", "text/xml") or body.lstrip()[:1] == b"<":
        return body
    for pair in body.split(b"&"):
        name, _, value = pair.partition(b"=")
        if name == FIELD:
            return unquote_to_bytes(value.replace(b"+", b" "))
    return b""


def _of_parts(content_type: str, body: bytes) -> bytes:
    boundary = _BOUNDARY.search(content_type)
    if boundary is None:
        raise XmlError("the form has no boundary")
    mark = b"\r\n--" + boundary[1].encode("latin-1")
    for part in (b"\r\n" + body).split(mark):
        head, end, content = part.partition(b"\r\n\r\n")
        if end and _NAME.search(head.strip()):
            return content
    return b""
