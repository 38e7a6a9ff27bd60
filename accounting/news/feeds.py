"""The operators' announcements as RSS, which BOINC clients show as notices: for everybody, and for one computer."""

from __future__ import annotations

import datetime as dt
import re
from typing import TYPE_CHECKING

from django.conf import settings
from django.contrib.syndication.views import Feed
from django.http import Http404, HttpRequest
from django.utils import timezone

from accounting.models import Announcement
from accounting.news import reads
from accounting.rpc.feed_addresses import is_right
from portal.models import Host
from portal.templatetags.markdown import markdown

# Django's class is generic in the stubs only, not at run time.
if TYPE_CHECKING:
    AnnouncementFeed = Feed[Announcement, Host | None]
else:
    AnnouncementFeed = Feed

# Characters that XML cannot represent.
_NOT_XML = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff]")

_OWN_LINK = re.compile(r'<a href="/(?!/)')


class NoticesFeed(AnnouncementFeed):
    """/notices.rss: what the client reads is title, link, guid, description and pubDate."""

    description = "Announcements by the operators."
    # Clients and caches get the same, whoever asks.
    language = settings.LANGUAGE_CODE
    item_guid_is_permalink = False

    def title(self) -> str:
        return str(settings.SITE_NAME)

    def link(self) -> str:
        return str(settings.SITE_URL)

    def items(self, host: Host | None) -> list[Announcement]:
        return reads.for_everybody(timezone.now())

    def item_title(self, item: Announcement) -> str:
        return _NOT_XML.sub("", item.title)

    def item_description(self, item: Announcement) -> str:
        # A client has no page that a link could be relative to.
        text = _OWN_LINK.sub(f'<a href="{settings.SITE_URL}', markdown(item.text))
        return _NOT_XML.sub("", text)

    def item_link(self, item: Announcement) -> str:
        # Announcements with an audience are on no page.
        return f"{settings.SITE_URL}news/#announcement-{item.pk}" if item.audience.is_everybody else settings.SITE_URL

    def item_guid(self, item: Announcement) -> str:
        return f"{settings.SITE_URL}#announcement-{item.pk}"

    def item_pubdate(self, item: Announcement) -> dt.datetime:
        return item.published_at


class HostNoticesFeed(NoticesFeed):
    """/notices/….rss: the announcements for one computer that are not for everybody, at an address given to its
    client.
    """

    def get_object(self, request: HttpRequest, pk: int, mark: str) -> Host:
        host = Host.objects.select_related("owner").filter(pk=pk).first() if is_right(pk, mark) else None
        if host is None:
            raise Http404
        return host

    def items(self, host: Host | None) -> list[Announcement]:
        assert host is not None  # get_object ensures that
        return reads.for_computer(host, timezone.now())
