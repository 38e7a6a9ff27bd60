"""What an owner does with a computer: name it, give it a place, put it aside and take it back.

Each verb writes only the columns it means, so that a report of the computer at the same moment loses nothing.
"""

from __future__ import annotations

import datetime as dt
import unicodedata
from collections.abc import Callable

from portal.models import MAX_NAME_CHARS, Host, Venue

merge_hooks: list[Callable[[int, int], None]] = []
"""Called with the ids of the older and the newer record, inside the transaction that joins them, to let follow what
else there is about a computer; rooms append theirs when ready."""


class HostChangeRefused(ValueError):
    """A change that cannot be made; ``field`` names the input, the text tells the owner what to do."""

    def __init__(self, field: str, message: str) -> None:
        super().__init__(message)
        self.field = field


def rename_host(host: Host, name: str) -> str:
    """Give the computer a name of the owner's choice; an empty one goes back to what the client reports.

    Runs of white space become one space. Returns the name as kept; raises HostChangeRefused for control
    characters (they would hide or turn round the text beside them) and for more than 100 characters.
    """
    name = " ".join(name.split())
    if any(unicodedata.category(character) in ("Cc", "Cf", "Cs", "Co", "Cn") for character in name):
        raise HostChangeRefused("name", "The name has an invisible character in it. Type it again without.")
    if len(name) > MAX_NAME_CHARS:
        raise HostChangeRefused(
            "name", f"The name has {len(name)} characters; at most {MAX_NAME_CHARS} fit. Shorten it."
        )
    Host.objects.filter(pk=host.pk).update(given_name=name)
    host.given_name = name
    return name


def set_venue(host: Host, venue: str) -> None:
    """Say where the computer stands, by which its client picks its preferences; raises HostChangeRefused."""
    if venue not in Venue.values:
        raise HostChangeRefused("venue", "Choose one of: default, home, work, school.")
    Host.objects.filter(pk=host.pk).update(venue=venue)
    host.venue = venue


def retire_host(host: Host, now: dt.datetime) -> bool:
    """Put the computer aside;

    its history stays, and its next report takes it back. False: it was aside already.
    """
    return Host.objects.filter(pk=host.pk, retired_at=None).update(retired_at=now) == 1


def unretire_host(host: Host) -> bool:
    """Take a retired computer back among the others. False: it was not retired."""
    return Host.objects.filter(pk=host.pk, retired_at__isnull=False).update(retired_at=None) == 1
