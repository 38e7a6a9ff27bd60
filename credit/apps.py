"""Django's configuration of validated credit."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from django.utils.translation import gettext_lazy as _

from portal import extras

if TYPE_CHECKING:
    from prometheus_client.registry import Collector


class CreditConfig(extras.SiteApp):
    name = "credit"
    verbose_name = _("Validated credit")
    room = "project"

    def ready(self) -> None:
        from django.conf import settings

        from credit import changes
        from credit.experiments import worker as experiments
        from credit.experiments.request import KIND as EXPERIMENT
        from credit.export import consent
        from credit.export import figures as export_figures
        from credit.export.run import EXPORT
        from credit.figures import credit as credit_figures
        from credit.figures import jobs, public
        from credit.models import App, AppVersion, Platform
        from credit.pages.setting_texts import APP_LABELS, VERSION_LABELS
        from credit.previews import worker
        from credit.previews.request import KIND
        from credit.statistics import host_merge
        from credit.statistics.check import CREDIT
        from credit.teams import membership
        from credit.top_lists import consent as top_lists
        from portal.audit.register import audit
        from portal.computers.host_changes import merge_hooks
        from portal.dashboard.navigation import Page, pages
        from portal.maintenance import jobs as jobs_of_maintenance
        from portal.people import consents
        from portal.people.deletion import erasure_hooks
        from portal.requested_work.queue import kinds

        # Whether the older record was published is seen by its credit, which the merge takes away.
        merge_hooks.append(consent.follow_merge)
        merge_hooks.append(host_merge.merge_host)
        erasure_hooks.append(consent.leave)
        erasure_hooks.append(membership.forget)
        if "project" in settings.ROOMS:
            for figures in (jobs, credit_figures, public, export_figures):
                figures.register()
            for kind in (consent.STATISTICS, consent.HOSTS, top_lists.TOP_LISTS):
                consents.add(kind)
            jobs_of_maintenance.add(CREDIT)
            jobs_of_maintenance.add(EXPORT)
            factors_page = (_("Factors from other projects"), "admin:version_factors", "credit.view_appversion")
            pages.append(Page(_("Apps and credit"), *factors_page))
        kinds[KIND] = worker.carry_out
        audit(App, labels=APP_LABELS)
        audit(AppVersion, labels=VERSION_LABELS)
        audit(Platform)
        changes.add_to_steps()
        kinds[EXPERIMENT] = experiments.carry_out

    def collectors(self) -> Sequence[Collector]:
        from credit.validator.metrics import Passes

        return [Passes()]

    def supplied_texts(self) -> Iterable[str]:
        from credit.laboratory.demo_texts import SUPPLIED

        return SUPPLIED
