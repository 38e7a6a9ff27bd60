"""A volunteer's consent to be shown in top lists: off until they agree, and off at once when they withdraw it."""

from __future__ import annotations

import datetime as dt
from typing import Final

from django.db import connection, transaction
from django.utils.translation import gettext_lazy as _

from extras.top_lists import sql
from extras.top_lists.models import ListedVolunteer
from portal.models import User
from portal.people import consents
from portal.people.consents import ConsentKind, Wording

TOP_LISTS: Final = ConsentKind(
    "top_lists",
    _("Shown in top lists"),
    "top_lists_consent",
    (
        Wording(
            _("Show me in this project’s top lists"),
            _(
                "Everybody can see the name that you choose, your total credit, your recent average, your credit for "
                "each app, and your team, also on your team’s page. Your computers and your e-mail address are not "
                "shown. If you withdraw this, you are in no list any more from that moment on."
            ),
        ),
    ),
)


def read(user: User) -> ListedVolunteer | None:
    """Return the volunteer's listing; None if they are in no list."""
    return ListedVolunteer.objects.filter(user=user).first()


def give(user: User, shown_name: str, now: dt.datetime) -> None:
    """List the volunteer under this name, or under their display name if it is empty. Safe to repeat.

    One transaction; locks the user's row, then the listing.
    """
    with transaction.atomic():
        User.objects.select_for_update(no_key=True).only("pk").get(pk=user.pk)
        listed, is_new = ListedVolunteer.objects.get_or_create(
            user=user, defaults={"shown_name": shown_name, "agreed_at": now}
        )
        if is_new:
            consents.record(user.pk, TOP_LISTS, is_given=True, now=now)
            with connection.cursor() as cursor:
                cursor.execute(sql.COUNT_VOLUNTEERS, {"user": user.pk})
        elif listed.shown_name != shown_name:
            ListedVolunteer.objects.filter(pk=user.pk).update(shown_name=shown_name)


def withdraw(user: User, now: dt.datetime) -> None:
    """Take the volunteer out of all lists. Safe to repeat. One transaction; locks like `give`."""
    with transaction.atomic():
        User.objects.select_for_update(no_key=True).only("pk").get(pk=user.pk)
        # Before the rows of apps are deleted: the daily count may be adding some, and would leave them without their
        # listing.
        list(ListedVolunteer.objects.select_for_update().filter(user=user).values_list("pk"))
        if ListedVolunteer.objects.filter(user=user).delete()[0]:
            consents.record(user.pk, TOP_LISTS, is_given=False, now=now)
