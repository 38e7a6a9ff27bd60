"""Changes that an owner makes to a computer: its name, its venue, whether it is retired.

Each function writes only its own columns, so a report of the computer at the same moment loses nothing.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection

from django.db import transaction
from django.db.models import QuerySet
from django.utils.translation import gettext

from portal.models import MAX_NAME_CHARS, Host, Venue
from portal.wire.names import hides_something, on_one_line


class HostChangeRefused(ValueError):
    """A change that cannot be made; ``field`` names the input, the text tells the owner what to do."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


def rename_host(host: Host, name: str) -> str:
    """Give the computer a name of the owner's choice; an empty one goes back to what the client reports.

    Runs of white space become one space. Returns the stored name; raises HostChangeRefused for control
    characters (they could hide or reverse the text around them) and for more than 100 characters.
    """
    name = on_one_line(name)
    if hides_something(name):
        raise HostChangeRefused("name", gettext("The name has an invisible character in it. Remove it and try again."))
    if len(name) > MAX_NAME_CHARS:
        raise HostChangeRefused(
            "name",
            gettext("The name has %(number)s characters; at most %(limit)s are allowed. Shorten it.")
            % {"number": len(name), "limit": MAX_NAME_CHARS},
        )
    Host.objects.filter(pk=host.pk).update(given_name=name)
    host.given_name = name
    return name


def set_venue(host: Host, venue: str) -> None:
    """Set the computer's venue, which selects its client's preferences. Raises HostChangeRefused."""
    if venue not in Venue.values:
        raise HostChangeRefused("venue", gettext("Choose one of: default, home, work, school."))
    Host.objects.filter(pk=host.pk).update(venue=venue)
    host.venue = venue


def retire_host(host: Host, now: dt.datetime) -> bool:
    """Retire the computer: its history stays, and its next report brings it back. False: it was already retired."""
    return Host.objects.filter(pk=host.pk, retired_at=None).update(retired_at=now) == 1


def unretire_host(host: Host) -> bool:
    """End the retirement of a computer. False: it was not retired."""
    return Host.objects.filter(pk=host.pk, retired_at__isnull=False).update(retired_at=None) == 1


def retire_hosts(hosts: Collection[int], now: dt.datetime) -> int:
    """Retire these computers; return how many were in use."""
    with transaction.atomic():
        return _locked(hosts).filter(retired_at=None).update(retired_at=now)


def unretire_hosts(hosts: Collection[int]) -> int:
    """End the retirement of these computers; return how many were retired."""
    with transaction.atomic():
        return _locked(hosts).filter(retired_at__isnull=False).update(retired_at=None)


def set_venues(hosts: Collection[int], venue: str) -> int:
    """Set the venue of these computers; return how many there are."""
    with transaction.atomic():
        return _locked(hosts).update(venue=Venue(venue))


def _locked(hosts: Collection[int]) -> QuerySet[Host]:
    """These computers, with their rows locked in the order of their ids."""
    rows = Host.objects.filter(pk__in=hosts)
    list(rows.select_for_update(no_key=True).order_by("pk").values_list("pk"))
    return rows
