"""What volunteers let other sites know of them, and what follows when they no longer do."""

from __future__ import annotations

import datetime as dt

from django.db import connection, transaction
from django.utils import timezone

from credit.export import sql
from credit.models import ExportConsent, GoneHost, GoneUser
from portal.models import Host, User


def read(user: User) -> ExportConsent:
    """The volunteer's choice; without a row, that nothing is published."""
    return ExportConsent.objects.filter(user=user).first() or ExportConsent(user=user)


def save(user: User, *, exports_statistics: bool | None = None, shows_hosts: bool, now: dt.datetime) -> None:
    """Keep the choice. Who is no longer published is listed as gone, so that readers drop them; who is again, is not.

    None leaves the present choice. One transaction. Locks the user's row, then the rows of the lists, computers by
    number.
    """
    with transaction.atomic():
        User.objects.select_for_update(no_key=True).only("pk").get(pk=user.pk)
        if exports_statistics is None:
            exports_statistics = read(user).exports_statistics
        leave(user.pk, now)
        ExportConsent.objects.update_or_create(
            user=user,
            defaults={"exports_statistics": exports_statistics, "shows_hosts": shows_hosts, "changed_at": now},
        )
        if exports_statistics:
            GoneUser.objects.filter(user_id=user.pk).delete()
        if exports_statistics and shows_hosts:
            # One that became a part of another stays gone.
            own = Host.objects.filter(owner=user, merged_into=None)
            GoneHost.objects.filter(host_id__in=own.values("pk")).delete()


def leave(user_id: int, now: dt.datetime) -> None:
    """List a volunteer and their computers as gone, as far as they are published now. Inside a transaction."""
    with connection.cursor() as cursor:
        cursor.execute(sql.USER_GONE, {"user": user_id, "now": now})
        cursor.execute(sql.HOSTS_GONE, {"user": user_id, "host": None, "now": now})


def follow_merge(older_id: int, newer_id: int) -> None:
    """The same for one computer, which becomes a part of another (`portal.computers.host_changes.merge_hooks`)."""
    with connection.cursor() as cursor:
        cursor.execute(sql.HOSTS_GONE, {"user": None, "host": older_id, "now": timezone.now()})
