"""Save a volunteer's choice of projects with their resource shares, and of keywords."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping

from django.db import transaction
from django.utils.translation import gettext as _

from accounting.engine.choice.facts import MAX_SHARE
from accounting.models import AccountSettings, Project, UserProject
from portal.models import User
from portal.wire import keywords


class ChoiceRefused(ValueError):
    """A choice that cannot be saved. ``project_id``: the project at fault, if it is a single one."""

    def __init__(self, message: str, project_id: int | None = None) -> None:
        super().__init__(message)
        self.project_id = project_id


def choose_projects(
    user: User, shares: Mapping[int, float | None], for_later: Mapping[int, float | None] | None = None
) -> None:
    """Save the choice: these projects and no others, at these resource shares (None: the project's default).

    ``for_later``: shares of projects that are not chosen, for the day when they are. An empty choice leaves it to the
    keywords (accounting/engine/choice/rules.py). Inactive projects stay as they were. One transaction, one writer per
    volunteer: of two simultaneous choices one holds, never a mixture. Raises ChoiceRefused for a project that is
    unknown or inactive, and for a share that is not from 0 to 1,000,000.
    """
    later = for_later or {}
    for project_id, share in {**later, **shares}.items():
        if share is not None and not (math.isfinite(share) and 0 <= share <= MAX_SHARE):
            raise ChoiceRefused(_("The share must be a number from 0 to 1\u202f000\u202f000."), project_id)
    with transaction.atomic():
        User.objects.select_for_update(no_key=True).only("pk").get(pk=user.pk)
        active = set(Project.objects.filter(is_active=True).values_list("pk", flat=True))
        if unknown := (shares.keys() | later.keys()) - active:
            raise ChoiceRefused(
                _("A project that you chose no longer accepts computers. Reload the page and choose others."),
                min(unknown),
            )
        UserProject.objects.filter(user=user, is_chosen=True, project_id__in=active - shares.keys()).update(
            is_chosen=False
        )
        UserProject.objects.bulk_create(
            [
                UserProject(user=user, project_id=pk, is_chosen=pk in shares, resource_share=share)
                for pk, share in sorted({**later, **shares}.items())
            ],
            update_conflicts=True,
            unique_fields=["user", "project"],
            update_fields=["is_chosen", "resource_share"],
        )


def choose_keywords(user: User, yes: Collection[int], no: Collection[int]) -> None:
    """Save which of BOINC's keywords the volunteer likes and which they reject; all others are "maybe".

    Raises ChoiceRefused for an unknown keyword, and for one that is both liked and rejected.
    """
    if keywords.known((*yes, *no)) != {*yes, *no}:
        raise ChoiceRefused(_("One of the subjects does not exist. Reload the page."))
    if set(yes) & set(no):
        raise ChoiceRefused(_("You said both yes and no to the same subject. Reload the page."))
    AccountSettings.objects.update_or_create(
        user=user, defaults={"keywords_yes": sorted(set(yes)), "keywords_no": sorted(set(no))}
    )
