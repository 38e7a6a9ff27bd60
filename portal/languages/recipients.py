"""The language and time zone of mails, whose readers are not looking at a page."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from django.conf import settings
from django.utils import translation

from portal.languages import zones


class Recipient(Protocol):
    """Somebody with choices of their own, such as a `portal.User`; empty: none."""

    language: str
    time_zone: str


@contextmanager
def written_for(user: Recipient, otherwise: str = settings.LANGUAGE_CODE) -> Iterator[None]:
    """Write in the language that the recipient chose, or in ``otherwise``, with times in their zone."""
    language = user.language if user.language in dict(settings.LANGUAGES) else ""
    with translation.override(language or otherwise), zones.shown_in(zones.zone_named(user.time_zone)):
        yield
