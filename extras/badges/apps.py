"""Register badges with the site."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from django.utils.translation import gettext_lazy as _

from portal import extras

if TYPE_CHECKING:
    from portal.audit.register import Audited
    from portal.models import User


class BadgesConfig(extras.SiteApp):
    name = "extras.badges"
    verbose_name = _("Badges")
    room = "account_manager"
    awards_titles = True

    def audited(self) -> Sequence[Audited]:
        from extras.badges.models import Badge
        from portal.audit.register import Audited

        return [Audited(Badge)]

    def links(self) -> Sequence[extras.Link]:
        return [extras.Link("history_badges", _("Badges"), (extras.LinkPlace.HISTORY,))]

    def periodic_tasks(self) -> Mapping[str, extras.Periodic]:
        return {"award-badges": extras.Periodic("extras.badges.tasks.award_badges", 600, _("Award badges"))}

    def prepare(self) -> None:
        from extras.badges.usual import make_usual

        make_usual()

    def make_demo(self, volunteer: User, now: dt.datetime) -> None:
        from extras.badges.demo import award_some

        award_some(now)

    def supplied_texts(self) -> Iterable[str]:
        from extras.badges.usual import TEXTS

        return TEXTS

    def rights(self) -> Mapping[str, Sequence[str]]:
        actions = {"Account manager operator": ("view", "add", "change"), "Read only": ("view",)}
        return {role: [f"badges.{action}_badge" for action in allowed] for role, allowed in actions.items()}

    def titles(self, user: User, last: dt.date) -> Sequence[str]:
        from extras.badges.reads import titles_until

        return titles_until(user, last)

    def copied_files(self, user: User) -> Iterable[extras.CopiedFile]:
        from extras.badges.models import BadgeAward, BadgeCheck

        yield extras.CopiedFile(
            "badges.json",
            "your badges",
            {
                "badges": BadgeAward.objects.filter(user=user).order_by("pk"),
                "badges_checked": BadgeCheck.objects.filter(user=user),
            },
        )
