"""Verbs: a volunteer chooses projects, shares and subjects, and says what one computer shall do with its projects."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from django.db import transaction

from accounting.engine.choice import keywords
from accounting.models import MAX_SHARE, AccountSettings, HostLedger, HostProject, Project, UserProject
from portal.models import Host, User

MAX_RESOURCES = 16
MAX_RESOURCE_CHARS = 64


class ChoiceRefused(ValueError):
    """A choice that cannot be kept. ``project_id``: the project that it is about, if it is about one."""

    def __init__(self, message: str, project_id: int | None = None) -> None:
        super().__init__(message)
        self.project_id = project_id


def choose_projects(user: User, shares: Mapping[int, float | None]) -> None:
    """Keep the choice: these projects and no others, at these resource shares (None: the project's default).

    An empty choice leaves it to the keywords (accounting/engine/choice/rules.py). Projects that are not active stay as
    they were. One transaction, one writer per volunteer: of two choices at once one holds, never a mixture.
    Raises ChoiceRefused for a project that is unknown or not active, and for a share that is not from 0 to
    1,000,000.
    """
    for project_id, share in shares.items():
        if share is not None and not (math.isfinite(share) and 0 <= share <= MAX_SHARE):
            raise ChoiceRefused("The share must be a number from 0 to 1 000 000.", project_id)
    with transaction.atomic():
        User.objects.select_for_update(no_key=True).only("pk").get(pk=user.pk)
        active = set(Project.objects.filter(is_active=True).values_list("pk", flat=True))
        if unknown := shares.keys() - active:
            raise ChoiceRefused(
                "A project that you chose takes no computers any more. Reload the page and choose others.",
                min(unknown),
            )
        UserProject.objects.filter(user=user, is_chosen=True, project_id__in=active - shares.keys()).update(
            is_chosen=False
        )
        UserProject.objects.bulk_create(
            [
                UserProject(user=user, project_id=pk, is_chosen=True, resource_share=share)
                for pk, share in sorted(shares.items())
            ],
            update_conflicts=True,
            unique_fields=["user", "project"],
            update_fields=["is_chosen", "resource_share"],
        )


def choose_keywords(user: User, yes: Collection[int], no: Collection[int]) -> None:
    """Keep what the volunteer likes and does not want: BOINC's keywords; all others are "maybe".

    Raises ChoiceRefused for a number that is no keyword, and for one that is liked and not wanted at once.
    """
    if keywords.known((*yes, *no)) != {*yes, *no}:
        raise ChoiceRefused("One of the subjects does not exist. Reload the page.")
    if set(yes) & set(no):
        raise ChoiceRefused("You said yes and no to the same subject. Reload the page.")
    AccountSettings.objects.update_or_create(
        user=user, defaults={"keywords_yes": sorted(set(yes)), "keywords_no": sorted(set(no))}
    )


def exclude_types(host: Host, types: Sequence[str]) -> None:
    """Keep these types of processors (BOINC's names) of a computer from all projects. ChoiceRefused for odd names."""
    _check_resources(None, types)
    with transaction.atomic():
        HostLedger.objects.bulk_create([HostLedger(host=host)], ignore_conflicts=True)
        HostLedger.objects.filter(host=host).update(excluded_types=list(dict.fromkeys(types)))


@dataclass(frozen=True, slots=True)
class Wish:
    """What the owner wants of one computer at one project; all are sent with the next reply.

    ``no_rsc``: resources that it must not use, by BOINC's names ("CPU", "NVIDIA", …). ``update_asked``: the
    client shall contact the project at once. ``drop_waiting``: jobs that have not begun are dropped, once no new ones
    are wanted.
    """

    suspended: bool = False
    no_new_work: bool = False
    excluded: bool = False
    no_rsc: tuple[str, ...] = ()
    update_asked: bool = False
    drop_waiting: bool = False


NO_WISH = Wish()
_WISH_COLUMNS = ["suspended", "no_new_work", "excluded", "no_rsc", "update_asked", "drop_waiting"]


def save_wishes(host: Host, wishes: Mapping[int, Wish]) -> None:
    """Keep the wishes, by project id, and touch nothing else of the rows that the ledger shares with them.

    The ledger's row is locked first, as by every writer of a computer's projects. Raises ChoiceRefused for a
    project or a resource that cannot be, and for a computer that was merged into another.
    """
    for project_id, wish in wishes.items():
        _check_resources(project_id, wish.no_rsc)
    with transaction.atomic():
        HostLedger.objects.bulk_create([HostLedger(host=host)], ignore_conflicts=True)
        HostLedger.objects.select_for_update().only("pk").get(pk=host.pk)
        if not Host.objects.filter(pk=host.pk, merged_into=None).exists():
            raise ChoiceRefused("This computer was merged into another one. Go to that one's page.")
        if unknown := wishes.keys() - set(Project.objects.values_list("pk", flat=True)):
            raise ChoiceRefused("There is no such project. Reload the page.", min(unknown))
        known = set(HostProject.objects.filter(host=host).values_list("project_id", flat=True))
        HostProject.objects.bulk_create(
            [
                HostProject(
                    host=host,
                    project_id=project_id,
                    suspended=wish.suspended,
                    no_new_work=wish.no_new_work,
                    excluded=wish.excluded,
                    no_rsc=list(wish.no_rsc),
                    update_asked=wish.update_asked,
                    drop_waiting=wish.drop_waiting,
                )
                for project_id, wish in sorted(wishes.items())
                if project_id in known or wish != NO_WISH
            ],
            update_conflicts=True,
            unique_fields=["host", "project"],
            update_fields=_WISH_COLUMNS,
        )


def _check_resources(project_id: int | None, resources: Sequence[str]) -> None:
    if len(resources) > MAX_RESOURCES:
        raise ChoiceRefused(f"At most {MAX_RESOURCES} kinds of processors can be named.", project_id)
    for name in resources:
        if not (0 < len(name) <= MAX_RESOURCE_CHARS and name.isprintable() and not set(name) & set("<>&")):
            raise ChoiceRefused("A kind of processor has no valid name. Reload the page.", project_id)
