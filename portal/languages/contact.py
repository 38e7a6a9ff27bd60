"""How sentences refer to the site's operators."""

from __future__ import annotations

from django.conf import settings


def operators() -> str:
    """Follows "Write to": who they are and, if the setting CONTACT says so, how to reach them."""
    address = f" ({settings.CONTACT})" if settings.CONTACT else ""
    return f"those who run {settings.SITE_NAME}{address}"
