"""Downloads of programs and input files, with ranges, so that a client can resume an interrupted download.

In production nginx sends the bytes (docs/how-to/deploy.md), or the object storage (docs/how-to/object-storage.md); this
view then only says which file it is, or where.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import IO, Final
from urllib.parse import quote

from django.conf import settings
from django.core.files.storage import default_storage
from django.http import (
    Http404,
    HttpRequest,
    HttpResponse,
    HttpResponseBase,
    HttpResponseRedirect,
    StreamingHttpResponse,
)
from django.views.decorators.http import require_safe
from rest_framework.request import Request

from portal.object_storage import storage
from scheduler.models import StoredFile

PRIVATE_URL_SECS: Final = 60
"""How long the address of a private file is valid; downloads that have begun continue."""
_CHUNK_NBYTES: Final = 256 * 1024
_RANGE: Final = re.compile(r"bytes=(\d{0,19})-(\d{0,19})")


@require_safe
def download(request: HttpRequest, name: str) -> HttpResponseBase:
    """Send a stored file by its name; the content of a name never changes."""
    # A NUL, for example, cannot even be looked up.
    file = StoredFile.objects.filter(name=name, deleted_at=None).first() if name.isprintable() else None
    if file is None:
        raise Http404("no such file")
    return send(request, file.path, file.name, file.nbytes, file.md5, is_public=True)


def send(
    request: HttpRequest | Request, path: str, name: str, nbytes: int, md5: str, *, is_public: bool = False
) -> HttpResponseBase:
    """Answer with a file from the default storage: the whole file, or the requested range. Http404 if it is lost.

    ``path``: where the storage keeps it; ``name``: its name in a download folder; ``nbytes``, ``md5``: of the whole
    file. Answers a range of bytes with 206 or 416, and anything that it does not understand with the whole file (RFC
    9110); or redirects to the object storage, which then handles the range.
    """
    headers = {
        "Content-Type": "application/octet-stream",
        "Content-Disposition": f"attachment; filename*=UTF-8''{quote(name, safe='')}",
        "ETag": f'"{md5}"',
        "Cache-Control": "public, max-age=31536000, immutable" if is_public else "private",
        "Accept-Ranges": "bytes",
    }
    is_presigned = settings.FILES_S3_DOWNLOADS == "presigned" and request.method != "HEAD"
    if is_presigned and storage.is_bucket(default_storage):
        secs = settings.FILES_S3_URL_SECS if is_public else PRIVATE_URL_SECS
        url = default_storage.presigned_url(path, secs=secs, file_name=name)
        return HttpResponseRedirect(url, headers={"Cache-Control": "private, no-store"})
    if settings.DOWNLOAD_ACCEL_PREFIX:
        return HttpResponse(headers=headers | {"X-Accel-Redirect": settings.DOWNLOAD_ACCEL_PREFIX + quote(path)})
    byte_range = _requested_range(request, nbytes, headers["ETag"])
    if byte_range is None:
        return HttpResponse(status=416, headers={"Content-Range": f"bytes */{nbytes}"})
    first, last = byte_range
    status = 200
    if last - first + 1 != nbytes:
        status = 206
        headers["Content-Range"] = f"bytes {first}-{last}/{nbytes}"
    headers["Content-Length"] = str(last - first + 1)
    if request.method == "HEAD":
        return HttpResponse(status=status, headers=headers)
    try:
        content = default_storage.open(path, "rb")
    except FileNotFoundError as error:
        raise Http404("missing from the storage") from error
    return StreamingHttpResponse(_chunks(content, first, last - first + 1), status=status, headers=headers)


def _requested_range(request: HttpRequest | Request, nbytes: int, etag: str) -> tuple[int, int] | None:
    """Return the first and last byte to send; None if the range is outside the file."""
    whole = 0, nbytes - 1
    match = _RANGE.fullmatch(request.headers.get("Range", "").strip())
    if match is None or match[0] == "bytes=-" or request.headers.get("If-Range", etag) != etag:
        return whole
    first, last = match[1], match[2]
    if not first:
        span = max(0, nbytes - int(last)), nbytes - 1
    else:
        span = int(first), min(int(last), nbytes - 1) if last else nbytes - 1
        if last and int(last) < int(first):
            return whole
    return span if span[0] <= span[1] else None


def _chunks(content: IO[bytes], first: int, nbytes: int) -> Iterator[bytes]:
    with content:
        content.seek(first)
        while nbytes > 0 and (chunk := content.read(min(_CHUNK_NBYTES, nbytes))):
            nbytes -= len(chunk)
            yield chunk
