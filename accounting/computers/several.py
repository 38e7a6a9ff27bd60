"""Change several computers at once: wishes for projects, place, group, retiring.

Each function takes computers of one owner, and sends a fixed number of statements, however many there are.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Collection
from enum import StrEnum
from typing import Any, Final

from django.db import transaction
from django.utils.translation import gettext as _

from accounting.choosing.choices import ChoiceRefused
from accounting.models import HostLedger, HostProject, Project
from portal.computers.groups import group_name, join_group, leave_group
from portal.computers.host_changes import retire_hosts, set_venues, unretire_hosts
from portal.models import Host, User


class Action(StrEnum):
    """The action, as forms name it."""

    SUSPEND = "suspend"
    RESUME = "resume"
    NO_NEW_WORK = "no_new_work"
    NEW_WORK = "new_work"
    UPDATE = "update"
    EXCLUDE = "exclude"
    INCLUDE = "include"
    PLACE_NONE = "place_"
    PLACE_HOME = "place_home"
    PLACE_WORK = "place_work"
    PLACE_SCHOOL = "place_school"
    JOIN = "join"
    LEAVE = "leave"
    RETIRE = "retire"
    RESTORE = "restore"


# The wish's column, and its value
WISHES: Final[dict[Action, tuple[str, bool]]] = {
    Action.SUSPEND: ("suspended", True),
    Action.RESUME: ("suspended", False),
    Action.NO_NEW_WORK: ("no_new_work", True),
    Action.NEW_WORK: ("no_new_work", False),
    Action.UPDATE: ("update_asked", True),
    Action.EXCLUDE: ("excluded", True),
    Action.INCLUDE: ("excluded", False),
}
PLACES: Final = (Action.PLACE_NONE, Action.PLACE_HOME, Action.PLACE_WORK, Action.PLACE_SCHOOL)


def apply(
    owner: User, hosts: Collection[int], action: Action, *, project_id: int | None, group: str, now: dt.datetime
) -> int:
    """Apply the action to the owner's computers with these ids; return how many there are, or were changed.

    ``project_id``: for wishes; None: all projects that each computer has. ``group``: for groups. Raises
    HostChangeRefused and ChoiceRefused.
    """
    own = list(
        Host.objects.filter(pk__in=hosts, owner=owner, merged_into=None).order_by("pk").values_list("pk", flat=True)
    )
    if action in WISHES:
        return wish(own, *WISHES[action], project_id=project_id)
    if action in PLACES:
        return set_venues(own, action.removeprefix("place_"))
    if action is Action.RETIRE:
        return retire_hosts(own, now)
    if action is Action.RESTORE:
        return unretire_hosts(own)
    name = group_name(group)
    return join_group(own, name) if action is Action.JOIN else leave_group(own, name)


def wish(hosts: Collection[int], column: str, value: bool, *, project_id: int | None) -> int:
    """Store one wish for these computers; return how many computers it reaches.

    Locks the computers' ledgers in the order of their ids, as every writer of a computer's projects does, then the rows
    of their projects. Changes no other column, so a simultaneous report loses nothing.
    """
    rows = HostProject.objects.filter(host_id__in=hosts)
    with transaction.atomic():
        if project_id is not None:
            if not Project.objects.filter(pk=project_id).exists():
                raise ChoiceRefused(_("There is no such project. Reload the page."), project_id)
            ledgers = [HostLedger(host_id=pk) for pk in hosts]
            HostLedger.objects.bulk_create(ledgers, ignore_conflicts=True)
        locked = HostLedger.objects.select_for_update().filter(host_id__in=hosts).order_by("host_id")
        ids = list(locked.values_list("host_id", flat=True))
        if project_id is None:
            reached = set(rows.filter(listed=True).values_list("host_id", flat=True)) if value else set(ids)
            rows.filter(**({"listed": True} if value else {})).update(**{column: value})
            return len(reached)
        if not value:
            # Without a row there is no wish to end.
            rows.filter(project_id=project_id).update(**{column: False})
            return len(ids)
        new: list[Any] = [HostProject(host_id=pk, project_id=project_id, **{column: True}) for pk in ids]
        HostProject.objects.bulk_create(
            new,
            batch_size=5000,
            update_conflicts=True,
            unique_fields=["host", "project"],
            update_fields=[column],
        )
        return len(ids)
