"""Register alerts with the site."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from django.utils.translation import gettext_lazy as _

from portal import extras

if TYPE_CHECKING:
    from prometheus_client.registry import Collector

    from portal.models import User


class AlertsConfig(extras.SiteApp):
    name = "extras.alerts"
    verbose_name = _("Alerts")
    room = "account_manager"

    def links(self) -> Sequence[extras.Link]:
        return [extras.Link("alerts", _("Alerts"), (extras.LinkPlace.MESSAGES, extras.LinkPlace.MENU))]

    def periodic_tasks(self) -> Mapping[str, extras.Periodic]:
        return {
            "look-for-alerts": extras.Periodic(
                "extras.alerts.tasks.look_for_alerts", 60, _("Look for alerts that are due")
            ),
            "deliver-alerts": extras.Periodic("extras.alerts.tasks.deliver_alerts", 60, _("Deliver alerts")),
        }

    def collectors(self) -> Sequence[Collector]:
        from extras.alerts.metrics import AlertMetrics

        return [AlertMetrics()]

    def tidy_up(self, now: dt.datetime) -> None:
        from extras.alerts.deliver import delete_old

        delete_old(now)

    def copied_files(self, user: User) -> Iterable[extras.CopiedFile]:
        from extras.alerts.models import AlertChannel, AlertMessage, AlertTrouble, AlertWatch

        yield extras.CopiedFile(
            "alerts.json",
            "where you want alerts, the troubles that were told, and the messages of the last week",
            {
                "channels": AlertChannel.objects.filter(user=user).order_by("pk"),
                "watch": AlertWatch.objects.filter(user=user),
                "troubles": AlertTrouble.objects.filter(user=user).order_by("pk"),
                "messages": AlertMessage.objects.filter(channel__user=user).order_by("pk"),
            },
        )
