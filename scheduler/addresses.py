"""Where clients find the parts of the project server; all below the master URL, so that a proxy can tell them apart."""

from __future__ import annotations

from urllib.parse import quote

from django.conf import settings


def scheduler_url() -> str:
    return f"{settings.PROJECT_URL}scheduler"


def upload_url() -> str:
    """Clients take an address without "file_upload_handler" in it for a download (BOINC protocol, job description)."""
    return f"{settings.PROJECT_URL}file_upload_handler"


def download_url(name: str) -> str:
    """Of a stored file, by its name."""
    return f"{settings.PROJECT_URL}download/{quote(name)}"
