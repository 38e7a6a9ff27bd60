"""What volunteers let other sites know about them, and the consequences of a withdrawal."""

from __future__ import annotations

import datetime as dt
from typing import Final

from django.db import connection, transaction
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from credit.export import sql
from credit.models import ExportConsent
from portal.models import ConsentEvent, User
from portal.people import consents
from portal.people.consents import ConsentKind, Wording

STATISTICS: Final = ConsentKind(
    "statistics",
    _("Name and credit on statistics sites"),
    "statistics_consent",
    (
        Wording(
            _("Publish my display name and credit"),
            _(
                "The list also gives the date you joined, your team, and an id that is the same at all projects where "
                "you use this e-mail address. Your address is not published."
            ),
        ),
    ),
)
HOSTS: Final = ConsentKind(
    "statistics_hosts",
    _("Computers on statistics sites"),
    "statistics_consent",
    (
        Wording(
            _("Publish my computers too"),
            _(
                "The list gives their hardware, operating system and credit, and that they are yours. Their names are "
                "not published. This only works together with the first choice."
            ),
        ),
    ),
)


def read(user: User) -> ExportConsent:
    """Return the volunteer's choice; without a row, nothing is published."""
    return ExportConsent.objects.filter(user=user).first() or ExportConsent(user=user)


def save(
    user: User,
    *,
    exports_statistics: bool | None = None,
    shows_hosts: bool,
    now: dt.datetime,
    origin: ConsentEvent.Origin = ConsentEvent.Origin.PAGE,
) -> None:
    """Save the choice and record its changes. If something is no longer published, list it as gone, so that readers
    drop it.

    None leaves the current choice. One transaction. Locks the user's row, then the rows of the lists, computers by
    number.
    """
    with transaction.atomic():
        User.objects.select_for_update(no_key=True).only("pk").get(pk=user.pk)
        choice = read(user)
        withdraw(user.pk, now)
        if exports_statistics is not None and exports_statistics != choice.exports_statistics:
            choice.exports_statistics, choice.changed_at = exports_statistics, now
            consents.record(user.pk, STATISTICS, is_given=exports_statistics, now=now, origin=origin)
        if shows_hosts != choice.shows_hosts:
            consents.record(user.pk, HOSTS, is_given=shows_hosts, now=now, origin=origin)
        choice.shows_hosts = shows_hosts
        choice.save()


def withdraw(user_id: int, now: dt.datetime) -> None:
    """List a volunteer and their computers as gone, as far as they are currently published. Inside a transaction."""
    with connection.cursor() as cursor:
        cursor.execute(sql.USER_GONE, {"user": user_id, "now": now})
        cursor.execute(sql.HOSTS_GONE, {"user": user_id, "host": None, "now": now})


def follow_merge(older_id: int, newer_id: int) -> None:
    """List a computer as gone when it is merged into another (`portal.extras.SiteApp.host_merged`)."""
    with connection.cursor() as cursor:
        cursor.execute(sql.HOSTS_GONE, {"user": None, "host": older_id, "now": timezone.now()})
