"""Bring a Science United site here: rehearse, import, and import what changed since."""

from __future__ import annotations

from extras.moving_in.management.commands import import_boinc
from extras.moving_in.science_united import steps


class Command(import_boinc.Command):
    help = (
        "Import a Science United site from its MySQL or MariaDB database, and its signing key from its folder. "
        "Interrupted, it goes on where it was; after an import, it imports what changed since. It never writes to that "
        "database or folder."
    )
    source_name = steps.SOURCE
    brings_apps = False
    steps = staticmethod(steps.steps)
