"""System checks of the emulator's settings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.apps import AppConfig
from django.conf import settings
from django.core import checks
from django.core.checks import CheckMessage

from emulator.runs import sandbox


@checks.register()
def check_sandbox(app_configs: Sequence[AppConfig] | None, **_: Any) -> list[CheckMessage]:
    """Without its sandbox no policy of an installed package runs."""
    if not settings.EMULATOR_POLICIES or sandbox.is_available(settings.EMULATOR_POLICY_SANDBOX):
        return []
    return [
        checks.Warning(
            "EMULATOR_POLICIES names policies of installed packages, but bwrap, which keeps them apart, is missing.",
            hint="Install bubblewrap on all machines with workers, or set EMULATOR_POLICY_SANDBOX=limits.",
            id="cobblestone.W025",
        )
    ]
