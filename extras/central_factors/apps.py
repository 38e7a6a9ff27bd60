"""Register factors of versions over projects with the site."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from django.utils.translation import gettext_lazy as _

from portal import extras

if TYPE_CHECKING:
    from portal.dashboard.navigation import AdminPage


class CentralFactorsConfig(extras.SiteApp):
    name = "extras.central_factors"
    verbose_name = _("Factors from other projects")
    room = "project"

    def periodic_tasks(self) -> Mapping[str, extras.Periodic]:
        return {
            "collect-factors": extras.Periodic(
                "extras.central_factors.tasks.collect_factors", 3600, _("Collect factors of other projects")
            )
        }

    def admin_pages(self) -> Sequence[AdminPage]:
        from portal.dashboard.navigation import CREDIT, AdminPage

        return [AdminPage(CREDIT, self.verbose_name, "admin:version_factors", "credit.view_appversion")]

    def rights(self) -> Mapping[str, Sequence[str]]:
        return {role: ["central_factors.view_collectedexport"] for role in ("Project administrator", "Read only")}
