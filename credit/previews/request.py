"""Requests of previews of changed settings; a worker carries them out."""

from __future__ import annotations

import datetime as dt
from typing import Final

from django.db import transaction
from django.utils.translation import gettext

from credit.models import App, Preview, StatisticsSnapshot
from credit.previews.settings import Changes, checked
from portal.models import User
from portal.requested_work import queue

KIND: Final = "preview"
FRESH: Final = dt.timedelta(minutes=10)
"""How long the same changes share a preview. The feeder updates statistics as often."""
MAX_UNFINISHED: Final = 10


class TooManyPreviewsError(Exception):
    """The person has reached the limit of previews waiting or running."""


def ask(user: User, app: App, changes: Changes, now: dt.datetime, *, changed_at: dt.datetime | None = None) -> Preview:
    """Return the preview of these changes, queued unless there is a fresh one.

    ``changes`` as in `Preview.changes`, with settings of ``settings.APP_FIELDS`` and ``VERSION_FIELDS``. Raises
    UnknownSettingError for others, and TooManyPreviewsError. The caller checks that the user has permission
    (``credit.change_app``). ``changed_at``: when a setting of the app's credit was last changed; a preview requested
    before then is not reused.
    """
    checked_changes = checked(app, changes)
    since = max(now - FRESH, changed_at or now - FRESH)
    with transaction.atomic():
        # One person's requests wait for each other, so that the limit holds and nothing is requested twice.
        User.objects.select_for_update(no_key=True).get(pk=user.pk)
        fresh = Preview.objects.filter(
            app=app, changes=checked_changes, asked_at__gte=since, failure__isnull=True
        ).first()
        if fresh is not None:
            return fresh
        if Preview.objects.filter(asked_by=user, finished_at=None, failure__isnull=True).count() >= MAX_UNFINISHED:
            raise TooManyPreviewsError(
                gettext("You have %(number)s unfinished previews. Wait until one of them is finished.")
                % {"number": MAX_UNFINISHED}
            )
        put_back = StatisticsSnapshot.objects.filter(pk__in=checked_changes.get("restore", ()))
        versions = {
            *map(int, checked_changes["versions"]),
            *checked_changes["reset"],
            *put_back.values_list("app_version", flat=True),
        }
        preview = Preview.objects.create(
            app=app,
            app_version_id=versions.pop() if len(versions) == 1 else None,
            asked_by=user,
            asked_at=now,
            changes=checked_changes,
        )
        queue.ask(user.pk, KIND, [preview.pk])
    return preview
