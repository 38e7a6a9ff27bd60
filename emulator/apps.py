"""The client emulator: scheduling policies of three generations, drawn."""

from django.apps import AppConfig


class EmulatorConfig(AppConfig):
    name = "emulator"
    verbose_name = "Client emulator"
