"""Save the owner's settings for one computer at its projects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from django.db import transaction
from django.utils.translation import gettext as _

from accounting.choosing.choices import ChoiceRefused
from accounting.engine.host_wishes import NO_WISHES, HostWishes
from accounting.models import HostLedger, HostProject, Project
from portal.models import Host

MAX_RESOURCES: Final = 16
MAX_RESOURCE_CHARS: Final = 64


def exclude_types(host: Host, types: Sequence[str]) -> None:
    """Exclude these processor types (BOINC's names) of a computer from all projects. Raises ChoiceRefused for bad
    names.
    """
    _check_resources(None, types)
    with transaction.atomic():
        HostLedger.objects.bulk_create([HostLedger(host=host)], ignore_conflicts=True)
        HostLedger.objects.filter(host=host).update(excluded_types=list(dict.fromkeys(types)))


_WISH_COLUMNS = ["suspended", "no_new_work", "excluded", "no_rsc", "update_asked", "drop_waiting"]


def save_wishes(host: Host, wishes: Mapping[int, HostWishes]) -> None:
    """Save the wishes, by project id, and change nothing else in the rows that the ledger shares with them.

    Locks the ledger's row first, as every writer of a computer's projects does. Raises ChoiceRefused for an impossible
    project or resource, and for a computer that was merged into another.
    """
    for project_id, wish in wishes.items():
        _check_resources(project_id, wish.no_rsc)
    with transaction.atomic():
        HostLedger.objects.bulk_create([HostLedger(host=host)], ignore_conflicts=True)
        HostLedger.objects.select_for_update().only("pk").get(pk=host.pk)
        if not Host.objects.filter(pk=host.pk, merged_into=None).exists():
            raise ChoiceRefused(_("This computer has been merged into another one. Go to that computer’s page."))
        if unknown := wishes.keys() - set(Project.objects.values_list("pk", flat=True)):
            raise ChoiceRefused(_("There is no such project. Reload the page."), min(unknown))
        projects_here = set(HostProject.objects.filter(host=host).values_list("project_id", flat=True))
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
                if project_id in projects_here or wish != NO_WISHES
            ],
            update_conflicts=True,
            unique_fields=["host", "project"],
            update_fields=_WISH_COLUMNS,
        )


def _check_resources(project_id: int | None, resources: Sequence[str]) -> None:
    if len(resources) > MAX_RESOURCES:
        raise ChoiceRefused(
            _("At most %(number)s kinds of processors can be selected.") % {"number": MAX_RESOURCES}, project_id
        )
    for name in resources:
        if not (0 < len(name) <= MAX_RESOURCE_CHARS and name.isprintable() and not set(name) & set("<>&")):
            raise ChoiceRefused(_("A kind of processor has no valid name. Reload the page."), project_id)
