"""Refuses parameters that a page does not know."""

from __future__ import annotations

from collections.abc import Iterable

from django.utils.translation import gettext


def unknown_parameters(names: Iterable[str], known: Iterable[str]) -> list[str]:
    """A sentence for each unknown parameter of an address: a misspelt one would be ignored, and everything shown."""
    there = list(known)
    refusal = gettext("There is no parameter “%(name)s”. There are: %(known)s.")
    return [refusal % {"name": name[:40], "known": ", ".join(there)} for name in names if name not in there]
