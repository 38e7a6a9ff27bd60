"""The language and time zone of what is written to somebody who is not looking at a page: mails."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol

from django.conf import settings
from django.utils import translation

from portal.languages import zones


class Recipient(Protocol):
    """Somebody with choices of their own, as `portal.User`; empty: none."""

    language: str
    time_zone: str


@contextmanager
def written_for(user: Recipient, otherwise: str = settings.LANGUAGE_CODE) -> Iterator[None]:
    """Write in the language that they chose, or in ``otherwise``, with times in their zone."""
    language = user.language if user.language in dict(settings.LANGUAGES) else ""
    with translation.override(language or otherwise), zones.shown_in(zones.zone_named(user.time_zone)):
        yield
