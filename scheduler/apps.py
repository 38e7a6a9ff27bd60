"""The project server: scheduler RPC, files, transitioner."""

from django.apps import AppConfig


class SchedulerConfig(AppConfig):
    name = "scheduler"
    verbose_name = "Project server"
