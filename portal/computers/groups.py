"""Groups of computers: names of an owner's choice, by which lists are filtered.

A group exists while a computer is in it.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from django.db import connection
from django.utils.translation import gettext as _

from portal.computers.host_changes import HostChangeRefused
from portal.models import Host
from portal.wire.names import hides_something, on_one_line

MAX_GROUPS: Final = 8
"""The most groups that one computer is in."""
MAX_GROUP_CHARS: Final = 30

# Each changes a single column of one table and locks the computers' rows in the order of their ids, so a report at the
# same moment loses nothing.
_LOCKED: Final = "SELECT id FROM portal_host WHERE id = ANY (%(hosts)s) ORDER BY id FOR NO KEY UPDATE"
_JOIN: Final = f"""
UPDATE portal_host SET groups = array_append(groups, %(name)s)
 WHERE id IN ({_LOCKED}) AND NOT groups @> ARRAY[%(name)s]::varchar[] AND cardinality(groups) < %(most)s"""
_LEAVE: Final = f"""
UPDATE portal_host SET groups = array_remove(groups, %(name)s)
 WHERE id IN ({_LOCKED}) AND groups @> ARRAY[%(name)s]::varchar[]"""


def group_name(text: str) -> str:
    """Normalize a group's name: runs of white space become one space. Raises HostChangeRefused."""
    name = on_one_line(text)
    if not name:
        raise HostChangeRefused("groups", _("Give the group a name."))
    if "," in name or hides_something(name):
        raise HostChangeRefused("groups", _("The name of a group has no commas and no invisible characters."))
    if len(name) > MAX_GROUP_CHARS:
        raise HostChangeRefused(
            "groups", _("The name of a group has at most %(most)s characters.") % {"most": MAX_GROUP_CHARS}
        )
    return name


def set_groups(host: Host, text: str) -> list[str]:
    """Put the computer into the groups listed with commas, and no others. Raises HostChangeRefused."""
    names = list(dict.fromkeys(group_name(part) for part in text.split(",") if part.strip()))
    if len(names) > MAX_GROUPS:
        raise HostChangeRefused("groups", _("A computer is in at most %(most)s groups.") % {"most": MAX_GROUPS})
    Host.objects.filter(pk=host.pk).update(groups=names)
    host.groups = names
    return names


def join_group(hosts: Collection[int], name: str) -> int:
    """Put these computers into a group; return how many were not in it. Raises HostChangeRefused if one has no room."""
    full = Host.objects.filter(pk__in=hosts, groups__len__gte=MAX_GROUPS).exclude(groups__contains=[name]).first()
    if full is not None:
        raise HostChangeRefused(
            "groups",
            _("%(host)s is in %(most)s groups already, which is the limit. Nothing was changed.")
            % {"host": full.name, "most": MAX_GROUPS},
        )
    return _execute(_JOIN, hosts, name)


def leave_group(hosts: Collection[int], name: str) -> int:
    """Take these computers out of a group; return how many were in it."""
    return _execute(_LEAVE, hosts, name)


def _execute(statement: str, hosts: Collection[int], name: str) -> int:
    with connection.cursor() as cursor:
        cursor.execute(statement, {"hosts": list(hosts), "name": name, "most": MAX_GROUPS})
        changed: int = cursor.rowcount
        return changed
