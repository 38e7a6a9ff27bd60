"""The site itself: people, their computers, settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING

from django.apps import apps
from django.utils.module_loading import module_has_submodule
from django.utils.translation import gettext_lazy as _

from portal import extras

if TYPE_CHECKING:
    from prometheus_client.registry import Collector

    from portal.audit.register import Audited
    from portal.audit.two_persons import StepKind
    from portal.dashboard.registry import Part
    from portal.maintenance.jobs import Job


class PortalConfig(extras.SiteApp):
    name = "portal"
    verbose_name = _("People and computers")

    def ready(self) -> None:
        # Registers the system checks, the login handlers and the task counters, and makes this process send its tasks
        # through our Celery application.
        from django.conf import settings
        from django.contrib.auth.models import Group, Permission
        from django.db.models.signals import post_migrate, post_save, pre_delete, pre_save

        from portal import celery
        from portal.audit import signed_log
        from portal.audit.register import audit
        from portal.audit.who import sign
        from portal.models import Change
        from portal.object_storage import checks as object_storage_checks
        from portal.operators import rights_texts, roles
        from portal.ops import checks, heartbeats
        from portal.people import login_events
        from portal.periodic.timetable import as_celery

        for app in extras.site_apps():
            if module_has_submodule(app.module, "messages"):
                import_module(f"{app.name}.messages")
        del celery, checks, heartbeats, login_events, object_storage_checks
        # Each app's signal makes its permissions: after the last one all are there.
        last = [app for app in apps.get_app_configs() if app.models_module][-1]
        post_migrate.connect(roles.keep_groups, sender=last, dispatch_uid="roles")
        # Forms, filters, histories and lists of the admin all call str(). Django's two models cannot be replaced by
        # ours, so their functions are.
        Group.add_to_class("__str__", rights_texts.role_text)
        Permission.add_to_class("__str__", rights_texts.permission_text)
        for app in extras.apps_in_use():
            entries = {name: (task.task, task.every_secs) for name, task in app.periodic_tasks().items()}
            settings.CELERY_BEAT_SCHEDULE.update(as_celery(entries))
        for app in extras.site_apps():
            for table in app.audited():
                audit(table)
                if table.signed:
                    pre_delete.connect(signed_log.lock_before_deletion, sender=table.model)
        pre_save.connect(sign, sender=Change)
        post_save.connect(signed_log.take_change, sender=Change)

    def audited(self) -> Sequence[Audited]:
        from portal.audit.register import Audited
        from portal.models import SiteText

        return [Audited(SiteText)]

    def two_person_steps(self) -> Mapping[str, StepKind]:
        from portal.audit.rights_requests import STEPS

        return STEPS

    def figures(self) -> Sequence[Part]:
        from portal.dashboard.services import PARTS
        from portal.maintenance.figures import PART

        return [*PARTS, PART]

    def collectors(self) -> Sequence[Collector]:
        from portal.beat import BeatMetrics
        from portal.dashboard.registry import collectors
        from portal.ops.wal_metrics import WalMetrics
        from portal.requested_work.overview import RequestedWorkMetrics

        return [RequestedWorkMetrics(), BeatMetrics(), WalMetrics(), *collectors()]

    def maintenance_jobs(self) -> Sequence[Job]:
        from portal.audit.signed_log import SIGNED_LOG
        from portal.maintenance.jobs import SITE

        return [SITE, SIGNED_LOG]
