"""Django's `migrate`, which compares models as `makemigrations` does."""

from __future__ import annotations

from django.core.management.commands import migrate

from portal.databases.autodetector import TextlessAutodetector


class Command(migrate.Command):
    autodetector = TextlessAutodetector
