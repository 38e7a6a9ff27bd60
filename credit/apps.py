"""Django's configuration of the credit app."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from django.utils.translation import gettext_lazy as _

from portal import extras

if TYPE_CHECKING:
    from django.db.models import Model
    from prometheus_client.registry import Collector

    from portal.audit.register import Audited
    from portal.audit.steps import Forecast, RowOperation, Section
    from portal.dashboard.registry import Part
    from portal.maintenance.jobs import Job
    from portal.models import Change
    from portal.people.consents import ConsentKind


class CreditConfig(extras.SiteApp):
    name = "credit"
    verbose_name = _("Validated credit")
    room = "project"

    def audited(self) -> Sequence[Audited]:
        from credit.models import App, AppVersion, Platform
        from portal.audit.register import Audited

        return [Audited(App), Audited(AppVersion), Audited(Platform)]

    def forecasts(self) -> Mapping[type[Model], Forecast]:
        from credit.changes import forecast
        from credit.models import App, AppVersion

        return {App: forecast.OF_APPS, AppVersion: forecast.OF_VERSIONS}

    def operations(self) -> Mapping[str, RowOperation]:
        from credit.changes import reset

        return {reset.OPERATION: reset.operation}

    def change_section(self, change: Change) -> Section | None:
        from credit.changes.effects import section

        return section(change)

    def credit_events(
        self, app_id: int | None, since: dt.datetime, until: dt.datetime
    ) -> Iterable[tuple[dt.datetime, str, str]]:
        from credit.changes.events import events

        return events(app_id, since, until)

    def figures(self) -> Sequence[Part]:
        from credit.figures.table import PARTS

        return PARTS

    def consents(self) -> Sequence[ConsentKind]:
        from credit.export.consent import HOSTS, STATISTICS

        return [STATISTICS, HOSTS]

    def maintenance_jobs(self) -> Sequence[Job]:
        from credit.export.run import EXPORT
        from credit.statistics.check import CREDIT

        return [CREDIT, EXPORT]

    def requested_work(self) -> Mapping[str, Callable[[int], None]]:
        from credit.previews import request, worker

        return {request.KIND: worker.carry_out}

    def host_merged(self, older: int, newer: int) -> None:
        """Leave lists of gone computers to the merge of credit, which knows whether the older record was published."""
        from credit.export.consent import follow_merge
        from credit.statistics.host_merge import merge_host

        follow_merge(older, newer)
        merge_host(older, newer)

    def account_erased(self, user_id: int, now: dt.datetime) -> None:
        from credit.export import consent
        from credit.teams import membership

        consent.withdraw(user_id, now)
        membership.forget(user_id)

    def collectors(self) -> Sequence[Collector]:
        from credit.validator.metrics import Passes

        return [Passes()]
