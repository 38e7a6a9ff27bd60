"""The operators' announcements as RSS, which BOINC clients show as notices."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from django.conf import settings
from django.contrib.syndication.views import Feed
from django.utils import timezone

from accounting.models import Announcement

# Django's class takes its types in the stubs only, not when the program runs.
if TYPE_CHECKING:
    AnnouncementFeed = Feed[Announcement, object]
else:
    AnnouncementFeed = Feed

# Clients drop what is older.
KEPT = dt.timedelta(days=30)
MOST = 20
# Characters that XML cannot represent.
_NOT_XML = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f]")


class NoticesFeed(AnnouncementFeed):
    """/notices.rss: what the client reads is title, link, guid, description and pubDate."""

    description = "Announcements of the operators."

    def title(self) -> str:
        return str(settings.SITE_NAME)

    def link(self) -> str:
        return str(settings.SITE_URL)

    def items(self) -> Iterable[Announcement]:
        now = timezone.now()
        return Announcement.objects.filter(published_at__lte=now, published_at__gte=now - KEPT)[:MOST]

    def item_title(self, item: Announcement) -> str:
        return _NOT_XML.sub("", item.title)

    def item_description(self, item: Announcement) -> str:
        return _NOT_XML.sub("", item.text)

    def item_link(self, item: Announcement) -> str:
        return f"{settings.SITE_URL}#announcement-{item.pk}"

    def item_pubdate(self, item: Announcement) -> dt.datetime:
        return item.published_at
