"""Register certificates with the site."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from django.utils.translation import gettext_lazy as _

from portal import extras

if TYPE_CHECKING:
    from portal.models import User


class CertificatesConfig(extras.SiteApp):
    name = "extras.certificates"
    verbose_name = _("Certificates")
    room = "account_manager"

    def links(self) -> Sequence[extras.Link]:
        return [extras.Link("certificates", _("Certificates"), (extras.LinkPlace.MENU, extras.LinkPlace.HISTORY))]

    def make_demo(self, volunteer: User, now: dt.datetime) -> None:
        from extras.certificates.demo import issue_one

        issue_one(volunteer, now)

    def copied_files(self, user: User) -> Iterable[extras.CopiedFile]:
        from extras.certificates.models import Certificate

        rows = Certificate.objects.filter(user=user).order_by("pk")
        yield extras.CopiedFile("certificates.json", "your certificates", {"certificates": rows})
