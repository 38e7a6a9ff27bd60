"""This site's own project server, as a project that the account manager attaches computers to.

It is identified by its mark (``Project.is_own``), not by its address. The address follows SITE_URL when an operator
says so (``manage.py move_site``), as SITE_URL may just be mistaken; with `make run`, an address of one machine follows
automatically.
"""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import ip_address
from itertools import chain, count
from typing import Final
from urllib.parse import urlsplit

from django.conf import settings
from django.db import transaction
from django.utils.translation import gettext_noop

from accounting.engine.addresses import address_key
from accounting.models import Project, ProjectAddress
from accounting.projects import addresses, signing_key
from accounting.rpc import catalogue
from portal.models import SignedEntry

SUMMARY: Final = gettext_noop("The research of %(site)s itself.")
_NAME_CHARS: Final = 80
"""Characters of the site's name used in that of the project, which has room for 100."""


class MoveError(Exception):
    """The own project cannot move; the sentence says why, and what to do."""


@dataclass(frozen=True, slots=True)
class Move:
    """The own project's address, and the one that SITE_URL gives it."""

    here: str
    there: str


def create_if_missing(*, is_active: bool) -> bool:
    """List the own project, where the site is both account manager and project; return True if it was not listed.

    ``is_active``: whether computers get it at once. Where the signing key is elsewhere, the signature of its address
    has to be pasted in the admin, as for any project. A project that was added by that address becomes the own project,
    and otherwise stays as it is.
    """
    if not _has_both() or Project.objects.filter(is_own=True).exists():
        return False
    key = address_key(settings.PROJECT_URL)
    with transaction.atomic():
        _forget_other_claims(key)
        if not Project.objects.filter(address_key=key).update(is_own=True):
            _create(is_active=is_active)
    catalogue.forget()
    return True


def _create(*, is_active: bool) -> None:
    site = settings.SITE_NAME[:_NAME_CHARS]
    Project.objects.create(
        name=_free_name(site),
        master_url=settings.PROJECT_URL,
        web_url=settings.PROJECT_URL,
        summary=SUMMARY % {"site": site},
        is_active=is_active,
        is_own=True,
        account_mode=Project.Account.PER_USER,
        colour=Project.next_colour(),
        url_signature=signing_key.sign_url(settings.PROJECT_URL) or "",
    )


def _free_name(site: str) -> str:
    taken = set(Project.objects.filter(name__startswith=site).values_list("name", flat=True))
    names = chain((site, f"{site} jobs"), (f"{site} jobs {number}" for number in count(2)))
    return next(name for name in names if name not in taken)


def pending_move() -> Move | None:
    """Return the move that SITE_URL asks for; None if the own project is where SITE_URL says, or there is none."""
    own = Project.served_here().first() if _has_both() else None
    if own is None or own.master_url == settings.PROJECT_URL:
        return None
    return Move(own.master_url, settings.PROJECT_URL)


def is_of_one_machine(url: str) -> bool:
    """Whether only programs on the same machine can use this address."""
    try:
        return ip_address(urlsplit(url).hostname or "").is_loopback
    except ValueError:
        return False


def carry_out(move: Move, signature: str | None = None) -> None:
    """Give the own project its new address; the former one stays known as its own. Raises MoveError.

    ``signature``: of the new address, where the private key is elsewhere. Locks the signed log, then the project.
    """
    key = address_key(move.there)
    with transaction.atomic():
        SignedEntry.lock()
        own = Project.objects.select_for_update().get(is_own=True)
        other = Project.objects.filter(address_key=key, is_own=False).first()
        if other is not None:
            raise MoveError(
                f"The project “{other}” in the list of projects has the address {other.master_url}. Delete it or"
                " correct its address first, or correct SITE_URL."
            )
        _forget_other_claims(key)
        if own.web_url == own.master_url:
            own.web_url = move.there
        own.url_signature = signature or signing_key.sign_url(move.there) or ""
        addresses.move(own, move.there)


def _forget_other_claims(key: str) -> None:
    """Remove other projects' claims to the site's address, whoever reported them: only this site can be there."""
    ProjectAddress.objects.filter(key=key, project__is_own=False).delete()


def _has_both() -> bool:
    return {"account_manager", "project"} <= set(settings.ROOMS)
