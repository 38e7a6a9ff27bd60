"""Django's command, which with several database hosts leads to the primary: psql has no option for that."""

from __future__ import annotations

import os
from typing import Any

from django.core.management.commands import dbshell
from django.db import connections


class Command(dbshell.Command):
    """`manage.py dbshell`."""

    def handle(self, **options: Any) -> None:
        wanted = connections[options["database"]].settings_dict["OPTIONS"].get("target_session_attrs")
        if wanted:
            os.environ.setdefault("PGTARGETSESSIONATTRS", wanted)
        super().handle(**options)
