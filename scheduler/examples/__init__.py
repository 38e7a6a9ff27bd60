"""Example apps, and the demo that keeps a few of their jobs in the queue."""

from __future__ import annotations

from typing import Final

from django.utils.translation import gettext_noop as _

SUPPLIED: Final = (
    _("Halve a number if it is even, else triple it and add one. Which numbers take longest to reach one?"),
    _("Counts the primes of a range, and the twins among them, in a shell script."),
)
"""The descriptions in their ``version.toml``."""
