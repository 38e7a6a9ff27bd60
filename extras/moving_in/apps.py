"""The import of other sites, as this site knows it."""

from __future__ import annotations

from django.utils.translation import gettext_lazy as _

from portal import extras


class MovingInConfig(extras.SiteApp):
    name = "extras.moving_in"
    verbose_name = _("Import of other sites")
