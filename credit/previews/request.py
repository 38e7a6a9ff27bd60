"""Asking for a preview of changed settings: it is queued, and a worker carries it out."""

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
"""The same changes within this time have the same preview. The feeder renews statistics as often."""
MAX_UNFINISHED: Final = 10


class TooManyPreviewsError(Exception):
    """The person has as many previews waiting or running as one may have."""


def ask(user: User, app: App, changes: Changes, now: dt.datetime, *, changed_at: dt.datetime | None = None) -> Preview:
    """The preview of these changes, queued unless there is a fresh one.

    ``changes`` as `Preview.changes` has them, with settings of ``settings.APP_FIELDS`` and ``VERSION_FIELDS``.
    Raises UnknownSettingError for others, and TooManyPreviewsError. The caller checks that the user may ask
    (``credit.change_app``). ``changed_at``: when a setting of the app's credit was last changed; a preview that was
    asked for before has other settings beside these.
    """
    wanted = checked(app, changes)
    since = max(now - FRESH, changed_at or now - FRESH)
    with transaction.atomic():
        # One person's requests wait for each other, so that the limit holds and nothing is asked for twice.
        User.objects.select_for_update(no_key=True).get(pk=user.pk)
        fresh = Preview.objects.filter(app=app, changes=wanted, asked_at__gte=since, failure__isnull=True).first()
        if fresh is not None:
            return fresh
        if Preview.objects.filter(asked_by=user, finished_at=None, failure__isnull=True).count() >= MAX_UNFINISHED:
            raise TooManyPreviewsError(
                gettext("You have %(number)s unfinished previews. Wait until one of them is finished.")
                % {"number": MAX_UNFINISHED}
            )
        put_back = StatisticsSnapshot.objects.filter(pk__in=wanted.get("restore", ()))
        versions = {*map(int, wanted["versions"]), *wanted["reset"], *put_back.values_list("app_version", flat=True)}
        preview = Preview.objects.create(
            app=app,
            app_version_id=versions.pop() if len(versions) == 1 else None,
            asked_by=user,
            asked_at=now,
            changes=wanted,
        )
        queue.ask(user.pk, KIND, [preview.pk])
    return preview
