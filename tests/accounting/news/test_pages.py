"""News on pages: Home has the newest, /news/ all; and the link to where the community talks."""

from __future__ import annotations

import datetime as dt

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from accounting.models import Announcement
from portal.models import Host
from tests.support.page_reader import page_of

pytestmark = pytest.mark.django_db


def announce(title: str, days_ago: float = 0, **fields: object) -> Announcement:
    published = timezone.now() - dt.timedelta(days=days_ago, seconds=1)
    return Announcement.objects.create(**{"title": title, "text": "x", "published_at": published, **fields})


def test_home_has_the_newest_two_of_the_last_days_for_who_has_computers_and_who_has_none(
    signed_in: Client, studio: Host
) -> None:
    for title, days_ago in (("Newest", 0), ("Newer", 2), ("Old", 9)):
        announce(title, days_ago)
    announce("Draft", is_draft=True)
    announce("For some", platform="windows_")
    for _ in range(2):
        news_page = page_of(signed_in, "/home/")
        section = news_page.one("section", aria_label="News").text
        assert [title for title in ("Newest", "Newer", "Old", "Draft", "For some") if title in section] == [
            "Newest",
            "Newer",
        ]
        Host.objects.all().delete()


def test_home_says_nothing_of_news_that_are_a_month_old(signed_in: Client, studio: Host) -> None:
    announce("Past", 31)
    assert not page_of(signed_in, "/home/").all("section", aria_label="News")
    assert "Past" in page_of(signed_in, "/news/").words


def test_a_line_of_home_leads_to_its_announcement(signed_in: Client, studio: Host) -> None:
    made = announce("Maintenance")
    links = page_of(signed_in, "/home/").all("a", href=f"/news/#announcement-{made.pk}")
    assert [link.attributes["aria-label"] for link in links] == ["Read “Maintenance”"]
    assert page_of(signed_in, "/news/").one("article", id=f"announcement-{made.pk}")


def test_the_page_leads_to_the_feed_for_people_and_for_programs(client: Client) -> None:
    news_page = page_of(client, "/news/")
    assert news_page.one("a", href="/notices.rss") and news_page.one("link", rel="alternate", href="/notices.rss")


def test_the_community_is_linked_where_the_operator_named_it(client: Client, settings: Settings) -> None:
    settings.COMMUNITY_URL = ""
    assert "ommunity" not in page_of(client, "/news/").words
    settings.COMMUNITY_URL = "https://board.example.org/"
    assert len(page_of(client, "/news/").all("a", href="https://board.example.org/")) == 2
    assert page_of(client, "/").one("a", within="footer", href="https://board.example.org/").text == "Community"
