"""What the page of a preview shows."""

from __future__ import annotations

import datetime as dt
from typing import Any

from credit.models import Preview
from credit.previews.request import KIND
from portal.requested_work import queue


def page_of(preview: Preview, now: dt.datetime) -> dict[str, Any]:
    """The result, or where the preview stands: its place in the queue, its progress, or why it failed."""
    standing = None
    if preview.finished_at is None:
        standing = queue.standings(KIND, [preview.pk], now).get(preview.pk)
    is_unfinished = preview.finished_at is None and standing is not None
    return {"preview": preview, "standing": standing, "is_unfinished": is_unfinished, "result": preview.result}
