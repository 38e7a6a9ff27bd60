"""The site itself: people, their computers, settings."""

from django.apps import AppConfig


class PortalConfig(AppConfig):
    name = "portal"
    verbose_name = "People and computers"

    def ready(self) -> None:
        # Registers the system checks, what happens at a login and the counting of tasks, and has this process send
        # its tasks through our Celery application.
        from django.db.models.signals import pre_save

        from portal import celery
        from portal.audit.who import sign
        from portal.models import Change
        from portal.ops import checks, metrics
        from portal.people import login_events
        from portal.requested_work.overview import RequestedWorkMetrics

        del celery, checks, login_events
        metrics.app_collectors.append(RequestedWorkMetrics())
        pre_save.connect(sign, sender=Change)
