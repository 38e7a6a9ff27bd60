"""Select announcements for their readers."""

from __future__ import annotations

import datetime as dt
from typing import Final

from django.db.models import Q, QuerySet

from accounting.engine.audience import Reader, version_of
from accounting.models import Announcement, HostProject
from accounting.models.news import PUBLIC
from portal.extras import site_apps
from portal.models import Host

# Clients drop older ones.
KEPT: Final = dt.timedelta(days=30)
MOST: Final = 20
ON_HOME: Final = 2


def published(now: dt.datetime) -> QuerySet[Announcement]:
    """Return announcements that are neither drafts, nor scheduled, nor over."""
    return Announcement.objects.filter(Q(ends_at=None) | Q(ends_at__gt=now), published_at__lte=now, is_draft=False)


def public(now: dt.datetime) -> QuerySet[Announcement]:
    """Return announcements for everybody."""
    return published(now).filter(PUBLIC)


def for_everybody(now: dt.datetime) -> list[Announcement]:
    """Return the items of the public feed."""
    return list(public(now).filter(published_at__gte=now - KEPT)[:MOST])


def latest(now: dt.datetime) -> list[Announcement]:
    """Return the newest announcements of the last days, for home pages. One statement."""
    return list(public(now).filter(published_at__gte=now - KEPT).defer("text")[:ON_HOME])


def for_computer(host: Host, now: dt.datetime) -> list[Announcement]:
    """Return the items of a computer's feed: those for it and not for everybody. At most three statements."""
    items = list(published(now).exclude(PUBLIC).filter(published_at__gte=now - KEPT))
    if not items or not host.owner.is_active:
        return []
    listed = HostProject.objects.filter(host=host, listed=True).values_list("project_id", flat=True)
    programs: frozenset[tuple[str, int]] = frozenset()
    if any(item.app_name for item in items):
        programs = frozenset(program for app in site_apps() for program in app.programs_run(host.pk))
    reader = Reader(frozenset(listed), host.platform_name, version_of(host.client_version), programs)
    return [item for item in items if item.audience.may_fit(reader)][:MOST]
