"""This site's own project server, as a project that the account manager attaches computers to."""

from __future__ import annotations

from typing import Final

from django.conf import settings
from django.utils.translation import gettext_noop

from accounting.models import Project
from accounting.projects import signing_key
from accounting.rpc import catalogue

SUMMARY: Final = gettext_noop("The research of %(site)s itself.")


def create_if_missing(*, is_active: bool) -> bool:
    """Put it in the list of projects, where the site is both account manager and project; True if it was not there.

    ``is_active``: whether computers get it at once. Where the signing key is kept elsewhere, the signature of its
    address has to be pasted in the admin, as for any project.
    """
    if not {"account_manager", "project"} <= set(settings.ROOMS):
        return False
    if Project.objects.filter(master_url=settings.PROJECT_URL).exists():
        return False
    name = (
        f"{settings.SITE_NAME} jobs" if Project.objects.filter(name=settings.SITE_NAME).exists() else settings.SITE_NAME
    )
    Project.objects.create(
        name=name,
        master_url=settings.PROJECT_URL,
        web_url=settings.PROJECT_URL,
        summary=SUMMARY % {"site": settings.SITE_NAME},
        is_active=is_active,
        account_mode=Project.Account.PER_USER,
        colour=Project.next_colour(),
        url_signature=signing_key.sign_url(settings.PROJECT_URL) or "",
    )
    catalogue.forget()
    return True
