"""The site itself: people, their computers, settings."""

from django.apps import AppConfig


class PortalConfig(AppConfig):
    name = "portal"
    verbose_name = "People and computers"

    def ready(self) -> None:
        # Registers the system checks and what happens at a login, and makes this process send its tasks through our
        # Celery application.
        from portal import celery
        from portal.ops import checks
        from portal.people import login_events

        del celery, checks, login_events
