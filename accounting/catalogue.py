"""The projects and urgent announcements as every RPC needs them: read once, kept in this process for a few seconds."""

from __future__ import annotations

import datetime as dt
import time
from dataclasses import dataclass

import structlog
from django.utils import timezone

from accounting import vault
from accounting.models import Announcement, Project

log = structlog.get_logger("catalogue")

# After a change in the admin, other processes follow within this time.
KEPT_SECS = 5.0


@dataclass(frozen=True, slots=True)
class CatalogueProject:
    """A project as the choice of projects and the reply see it."""

    id: int
    name: str
    url: str
    url_signature: str
    is_active: bool
    default_share: float
    per_user: bool
    shared_account_key: str | None


@dataclass(frozen=True, slots=True)
class Catalogue:
    by_id: dict[int, CatalogueProject]
    by_url: dict[str, CatalogueProject]
    # (title, urgent until) of announcements that replies carry
    urgent: tuple[tuple[str, dt.datetime], ...]


_kept: tuple[float, Catalogue] | None = None


def current() -> Catalogue:
    """The catalogue, at most ``KEPT_SECS`` old."""
    global _kept
    kept = _kept
    if kept is None or time.monotonic() - kept[0] > KEPT_SECS:
        kept = _kept = (time.monotonic(), _load())
    return kept[1]


def forget() -> None:
    """Read the projects again at the next request; called by whatever changes one."""
    global _kept
    _kept = None


def _load() -> Catalogue:
    projects = [_entry(project) for project in Project.objects.all()]
    urgent = Announcement.objects.filter(published_at__lte=timezone.now(), urgent_until__gt=timezone.now())
    return Catalogue(
        {p.id: p for p in projects},
        {p.url: p for p in projects},
        tuple((a.title, a.urgent_until) for a in urgent[:5] if a.urgent_until is not None),
    )


def _entry(project: Project) -> CatalogueProject:
    return CatalogueProject(
        id=project.pk,
        name=project.name,
        url=project.master_url,
        url_signature=project.url_signature,
        is_active=project.is_active,
        default_share=project.default_share,
        per_user=project.account_mode == Project.Account.PER_USER,
        shared_account_key=_readable(project),
    )


def _readable(project: Project) -> str | None:
    if not project.shared_account_key:
        return None
    try:
        return vault.decrypt(bytes(project.shared_account_key))
    except vault.UnreadableAccountKey as error:
        log.error("account key unreadable", project=project.name, reason=str(error))
        return None
