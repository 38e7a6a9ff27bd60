"""Compresses pages, JSON and downloads of text on their way to browsers and programs; static files are compressed once.

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
    """Django's gzip, with its random length against BREACH, for text alone.

    A reply that says ``no-transform`` goes out as it is: readers of the statistics compare its ETag.
    """

    def process_response(self, request: HttpRequest, response: HttpResponseBase) -> HttpResponseBase:
        """The reply, compressed if the reader takes gzip."""
        if not response.headers.get("Content-Type", "").startswith(_TYPES):
            return response
        if "no-transform" in response.headers.get("Cache-Control", ""):
            return response
        return super().process_response(request, response)
