"""Register top lists and the pages of teams with the site."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from django.utils.translation import gettext_lazy as _

from portal import extras
from portal.extras import Link, LinkPlace, Periodic

if TYPE_CHECKING:
    from portal.models import User
    from portal.people.consents import ConsentKind


class TopListsConfig(extras.SiteApp):
    name = "extras.top_lists"
    verbose_name = _("Top lists")
    room = "project"

    def links(self) -> Sequence[Link]:
        return [
            Link("top_lists_consent", _("Top lists"), (LinkPlace.PUBLIC,)),
            Link("teams", _("Team"), (LinkPlace.PUBLIC,)),
            Link("top_volunteers", _("Top lists"), (LinkPlace.PROJECT,)),
            Link("teams", _("Teams"), (LinkPlace.PROJECT,)),
        ]

    def periodic_tasks(self) -> Mapping[str, Periodic]:
        return {
            "count-top-lists": Periodic("extras.top_lists.tasks.count_top_lists", 600, _("Count the top lists")),
            "count-top-lists-of-apps": Periodic(
                "extras.top_lists.tasks.count_top_lists_of_apps", 24 * 3600, _("Count the top lists of apps")
            ),
        }

    def consents(self) -> Sequence[ConsentKind]:
        from extras.top_lists.consent import TOP_LISTS

        return [TOP_LISTS]

    def copied_files(self, user: User) -> Iterable[extras.CopiedFile]:
        from extras.top_lists.models import ListedAppCredit, ListedVolunteer

        yield extras.CopiedFile(
            "top_lists.json",
            "how you are shown in top lists",
            {
                "listing": ListedVolunteer.objects.filter(user=user),
                "credit_of_apps": ListedAppCredit.objects.filter(volunteer=user.pk).order_by("pk"),
            },
        )

    def make_demo(self, volunteer: User, now: dt.datetime) -> None:
        from extras.top_lists.demo import list_some

        list_some(now)
