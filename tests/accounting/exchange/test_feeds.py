"""The feed of announcements that BOINC clients show as notices."""

from __future__ import annotations

import datetime as dt
from email.utils import parsedate_to_datetime
from xml.etree import ElementTree

import pytest
from django.conf import settings
from django.test import Client
from django.utils import timezone

from accounting.models import Announcement


def channel(client: Client) -> ElementTree.Element:
    response = client.get("/notices.rss")
    assert response.status_code == 200
    assert response["Content-Type"].startswith("application/rss+xml")
    found = ElementTree.fromstring(response.content).find("channel")
    assert found is not None
    return found


def announce(title: str, days_ago: float = 0, text: str = "What happened.") -> Announcement:
    published = timezone.now() - dt.timedelta(days=days_ago, seconds=1)
    return Announcement.objects.create(title=title, text=text, published_at=published)


@pytest.mark.django_db
def test_an_item_has_what_clients_read(client: Client) -> None:
    announcement = announce("Maintenance", text='On Monday <b>from 8</b> & "later"')
    item = channel(client).find("item")
    assert item is not None
    assert item.findtext("title") == "Maintenance"
    assert item.findtext("description") == 'On Monday <b>from 8</b> & "later"'
    assert item.findtext("link", "").startswith(settings.SITE_URL)
    assert item.findtext("guid", "").endswith(str(announcement.pk))
    published = announcement.published_at.replace(microsecond=0)
    assert parsedate_to_datetime(item.findtext("pubDate", "")) == published


@pytest.mark.django_db
def test_the_newest_come_first_and_what_is_old_or_to_come_is_left_out(client: Client) -> None:
    for title, days_ago in (("old", 31), ("older", 20), ("newer", 1), ("to come", -1)):
        announce(title, days_ago)
    assert [item.findtext("title") for item in channel(client).findall("item")] == ["newer", "older"]


@pytest.mark.django_db
def test_there_are_at_most_twenty(client: Client) -> None:
    for number in range(25):
        announce(f"News {number}", number / 100)
    assert len(channel(client).findall("item")) == 20


@pytest.mark.django_db
def test_without_news_the_feed_is_empty_and_sound(client: Client) -> None:
    found = channel(client)
    assert found.findall("item") == []
    assert found.findtext("title") == settings.SITE_NAME


@pytest.mark.django_db
def test_guids_differ_so_that_clients_show_each(client: Client) -> None:
    announce("Same title")
    announce("Same title")
    guids = {item.findtext("guid") for item in channel(client).findall("item")}
    assert len(guids) == 2


@pytest.mark.django_db
def test_control_characters_do_not_break_the_feed(client: Client) -> None:
    announce("Bell \x07 and escape \x1b", text="form feed \x0c")
    item = channel(client).find("item")
    assert item is not None
    assert item.findtext("title", "").startswith("Bell ")
