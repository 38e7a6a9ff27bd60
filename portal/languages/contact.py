"""Those who run the site, as a sentence names them."""

from __future__ import annotations

from django.conf import settings


def operators() -> str:
    """Goes behind "Write to": who it is and, if the setting CONTACT says so, how to reach them."""
    address = f" ({settings.CONTACT})" if settings.CONTACT else ""
    return f"those who run {settings.SITE_NAME}{address}"
