"""Parameters of an address that its page does not have."""

from __future__ import annotations

from collections.abc import Iterable

from django.utils.translation import gettext


def unknown_parameters(names: Iterable[str], known: Iterable[str]) -> list[str]:
    """A sentence for each parameter that an address may not have: a misspelt one would be ignored, and all be shown."""
    there = list(known)
    refusal = gettext("There is no parameter “%(name)s”. There are: %(known)s.")
    return [refusal % {"name": name[:40], "known": ", ".join(there)} for name in names if name not in there]
