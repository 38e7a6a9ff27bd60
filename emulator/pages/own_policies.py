"""The policies of installed packages that the operator allows on this site."""

from __future__ import annotations

from django.conf import settings

from emulator.engine.policies.own import installed


def offered() -> list[str]:
    """Their names: those in EMULATOR_POLICIES that are installed. Their code is not loaded here."""
    if not settings.EMULATOR_POLICIES:
        return []
    found = installed()
    return [name for name in settings.EMULATOR_POLICIES if name in found]
