"""Compresses pages, JSON and text downloads for browsers and programs; static files are compressed in advance.

Replies to BOINC clients never come here (`ClientMiddleware`): they are short, and most requests are theirs.
"""

from __future__ import annotations

from typing import Final

from django.http import HttpRequest, HttpResponseBase
from django.middleware.gzip import GZipMiddleware

# Types that compression makes smaller; archives, programs and pictures are compressed already.
_TYPES: Final = (
    "text/",
    "application/json",
    "application/problem+json",
    "application/vnd.oai.openapi",
    "image/svg+xml",
)


class CompressionMiddleware(GZipMiddleware):
    """Django's gzip for text only, with its random length against BREACH.

    A reply with ``no-transform`` is left as it is: readers of the statistics compare its ETag.
    """

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        """Compress the reply if the reader accepts gzip."""
        if not response.headers.get("Content-Type", "").startswith(_TYPES):
            return response
        if "no-transform" in response.headers.get("Cache-Control", ""):
            return response
        return super().process_response(request, response)
