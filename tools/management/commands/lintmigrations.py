"""Run django-migration-linter on our apps: it finds migrations that the previous release would not survive, or would
wait for.

Initial migrations create tables that nobody uses yet.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from django.apps import apps
from django_migration_linter.management.commands import lintmigrations

ON_PURPOSE: Final[tuple[str, ...]] = ()
"""Names of migrations that remove, one release later, what no code uses any more."""


class Command(lintmigrations.Command):
    def handle(self, *args: Any, **options: Any) -> None:
        own = [app.label for app in apps.get_app_configs() if "site-packages" not in Path(app.path).parts]
        options |= {"include_apps": own, "ignore_initial_migrations": True, "no_cache": True}
        options["ignore_name"] = ON_PURPOSE
        options["warnings_as_errors"] = ["CREATE_INDEX", "CREATE_INDEX_EXCLUSIVE", "DROP_INDEX", "REINDEX"]
        super().handle(*args, **options)  # type: ignore[no-untyped-call]  # it has no types
