"""Django's `makemigrations`, for which a changed label, help text or choice is no change."""

from __future__ import annotations

from django.core.management.commands import makemigrations

from portal.databases.autodetector import TextlessAutodetector


class Command(makemigrations.Command):
    autodetector = TextlessAutodetector
