"""The app's configuration."""

from django.apps import AppConfig


class EmulatorConfig(AppConfig):
    name = "emulator"
    verbose_name = "Client emulator"
