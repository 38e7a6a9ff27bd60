"""The feed of announcements that BOINC clients show as notices."""

from __future__ import annotations

import datetime as dt
import html
import re
from email.utils import parsedate_to_datetime
from typing import Any
from xml.etree import ElementTree

import pytest
from django.conf import settings
from django.test import Client
from django.utils import timezone

from accounting.models import Announcement, Project
from accounting.rpc import catalogue
from accounting.rpc.feed_addresses import feed_path
from credit.models import HostAppVersion
from portal.models import Host, User
from portal.templatetags.markdown import markdown
from tests.support.am_rpc import attach, sync
from tests.support.credit_factories import make_app, make_version
from tests.support.page_text import text_of
from tools.simulation.client import SimulatedComputer


def channel(client: Client, path: str = "/notices.rss") -> ElementTree.Element:
    response = client.get(path)
    assert response.status_code == 200
    assert response["Content-Type"].startswith("application/rss+xml")
    parsed = ElementTree.fromstring(response.content).find("channel")
    assert parsed is not None
    return parsed


def announce(title: str, days_ago: float = 0, text: str = "What happened.") -> Announcement:
    published = timezone.now() - dt.timedelta(days=days_ago, seconds=1)
    return Announcement.objects.create(title=title, text=text, published_at=published)


@pytest.mark.django_db
def test_an_item_has_what_clients_read(client: Client) -> None:
    announcement = announce("Maintenance", text='On Monday <b>from 8</b> & "later"')
    item = channel(client).find("item")
    assert item is not None
    assert item.findtext("title") == "Maintenance"
    # HTML in the text is text.
    assert item.findtext("description") == "<p>On Monday &lt;b&gt;from 8&lt;/b&gt; &amp; &quot;later&quot;</p>\n"
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
    parsed = channel(client)
    assert parsed.findall("item") == []
    assert parsed.findtext("title") == settings.SITE_NAME


@pytest.mark.django_db
def test_guids_differ_so_that_clients_show_each(client: Client) -> None:
    announce("Same title")
    announce("Same title")
    guids = {item.findtext("guid") for item in channel(client).findall("item")}
    assert len(guids) == 2


@pytest.mark.django_db
def test_the_feed_is_the_same_in_every_language_of_a_browser(client: Client) -> None:
    client.defaults["HTTP_ACCEPT_LANGUAGE"] = "de"
    assert channel(client).findtext("language") == "en"


@pytest.mark.django_db
def test_control_characters_do_not_break_the_feed(client: Client) -> None:
    announce("Bell \x07 and escape \x1b", text="form feed \x0c, no character \ufffe\uffff")
    item = channel(client).find("item")
    assert item is not None
    assert item.findtext("title", "").startswith("Bell ")


@pytest.mark.django_db
def test_drafts_what_is_over_and_what_is_not_for_everybody_is_left_out(client: Client) -> None:
    announce("for all")
    for field, value in {
        "is_draft": True,
        "ends_at": timezone.now(),
        "platform": "windows_",
        "older_than": "8.0.0",
        "app_name": "alpine",
    }.items():
        Announcement.objects.filter(pk=announce(field).pk).update(**{field: value})
    assert titles(client) == ["for all"]
    page = text_of(client.get("/news/"))
    assert "for all" in page and not any(word in page for word in ("is_draft", "ends_at", "platform", "older_than"))


def titles(client: Client, path: str = "/notices.rss") -> list[str | None]:
    return [item.findtext("title") for item in channel(client, path).findall("item")]


class TestForSomeComputers:
    """Notices with an audience, as the client of Alice's computer learns of them and gets them."""

    @pytest.fixture
    def computer(self, alice: User, projects: list[Project]) -> SimulatedComputer:
        computer = attach(alice)
        sync(computer)
        Host.objects.update(platform_name="x86_64-pc-linux-gnu", client_version="8.0.2")
        computer.version = "8.0.2"
        return computer

    def feeds(self, computer: SimulatedComputer) -> list[str | None]:
        catalogue.forget()
        return [feed.findtext("url") for feed in sync(computer).root.findall("rss_feeds/rss_feed")]

    def notice(self, **audience: Any) -> None:
        Announcement.objects.create(
            title="For some", text="…", published_at=timezone.now() - dt.timedelta(hours=1), **audience
        )

    def test_a_client_whom_none_is_for_is_given_the_feed_for_everybody_alone(self, computer: SimulatedComputer) -> None:
        self.notice(platform="windows_")
        self.notice(older_than="8.0.2")
        self.notice(is_draft=True, platform="x86_64")
        assert self.feeds(computer) == [f"{settings.SITE_URL}notices.rss"]

    @pytest.mark.parametrize("audience", [{"platform": "x86_64-pc"}, {"older_than": "8.2"}])
    def test_a_client_whom_one_is_for_gets_it_by_a_feed_of_its_own(
        self, client: Client, computer: SimulatedComputer, audience: dict[str, str]
    ) -> None:
        self.notice(**audience)
        everybody, own = self.feeds(computer)
        assert own is not None and self.feeds(computer) == [everybody, own]
        assert titles(client, own.removeprefix(settings.SITE_URL.rstrip("/"))) == ["For some"]
        assert titles(client) == []

    def test_volunteers_of_a_project_get_its_news(
        self, client: Client, computer: SimulatedComputer, projects: list[Project]
    ) -> None:
        other = Project.objects.create(name="Other", master_url="https://other.example.org/", is_active=False)
        self.notice(project=other)
        assert len(self.feeds(computer)) == 1
        self.notice(project=projects[0])
        own = self.feeds(computer)[1]
        assert own is not None
        assert titles(client, own.removeprefix(settings.SITE_URL.rstrip("/"))) == ["For some"]

    def test_who_has_run_a_version_of_an_app_gets_its_news(self, client: Client, computer: SimulatedComputer) -> None:
        app = make_app("alpine")
        version = make_version(app, 102)
        self.notice(app_name="alpine", app_version_num=102)
        own = self.feeds(computer)[1]
        assert own is not None
        path = own.removeprefix(settings.SITE_URL.rstrip("/"))
        assert titles(client, path) == []
        HostAppVersion.objects.create(host=Host.objects.get(), app=app, app_version=version)
        assert titles(client, path) == ["For some"]
        Announcement.objects.update(app_version_num=101)
        assert titles(client, path) == []

    def test_an_urgent_one_is_in_the_log_of_those_clients_alone(self, computer: SimulatedComputer) -> None:
        until = timezone.now() + dt.timedelta(hours=1)
        self.notice(platform="windows_", urgent_until=until)
        catalogue.forget()
        assert sync(computer).messages == []
        Announcement.objects.update(platform="x86_64")
        catalogue.forget()
        assert sync(computer).messages == ["For some"]

    def test_many_urgent_ones_for_others_hide_none(self, computer: SimulatedComputer) -> None:
        until = timezone.now() + dt.timedelta(hours=1)
        announce("For all", days_ago=1)
        Announcement.objects.update(urgent_until=until)
        for _ in range(6):
            self.notice(platform="windows_", urgent_until=until)
        catalogue.forget()
        assert sync(computer).messages == ["For all"]

    def test_the_feed_of_a_computer_opens_by_its_mark_alone(
        self, client: Client, computer: SimulatedComputer, bob: User
    ) -> None:
        own, other = feed_path(Host.objects.get().pk), feed_path(Host.objects.create(owner=bob).pk)
        mark = other.partition("-")[2]
        assert client.get(f"/{own}").status_code == 200
        assert client.get(f"/{own.partition('-')[0]}-{mark}").status_code == 404


@pytest.mark.django_db
class TestTheClientsOwnRules:
    """BOINC's reader of feeds: up to </rss>, items that are not older than 30 days, dates of RFC 822."""

    def test_every_item_is_one_that_the_client_takes(self, client: Client) -> None:
        announce("Ünïcode & <tags>", 29.9, text="*Emphasis* and a [link](https://example.org/?a=1&b=2)")
        body = client.get("/notices.rss").content.decode()
        (item,) = re.findall(r"<item>(.*?)</item>", body[: body.index("</rss>")], flags=re.DOTALL)
        parsed = {name: re.findall(rf"<{name}[^>]*>(.*?)</{name}>", item, flags=re.DOTALL) for name in CLIENT_READS}
        assert all(len(values) == 1 and len(values[0]) < 8192 for values in parsed.values())
        date = dt.datetime.strptime(parsed["pubDate"][0][:25], "%a, %d %b %Y %H:%M:%S").replace(tzinfo=dt.UTC)
        assert timezone.now() - date < dt.timedelta(days=30)
        text = html.unescape(parsed["description"][0])
        assert text == ('<p><em>Emphasis</em> and a <a href="https://example.org/?a=1&amp;b=2">link</a></p>\n')


@pytest.mark.django_db
def test_links_to_pages_of_the_site_lead_there_from_a_client_too(client: Client) -> None:
    announce("News", text='[Here](/projects/), [there](//example.org/), and href="/text/"')
    item = channel(client).find("item")
    assert item is not None
    text = item.findtext("description", "")
    assert f'<a href="{settings.SITE_URL}projects/">' in text and '<a href="//example.org/">' in text
    assert "href=&quot;/text/" in text


CLIENT_READS = ("title", "link", "guid", "description", "pubDate")


@pytest.mark.parametrize(
    ("text", "rendered"),
    [
        ("<script>alert(1)</script>", "&lt;script&gt;"),
        ("[x](javascript:alert(1))", "[x](javascript:alert(1))"),
        ("![x](https://tracker.example.org/x.png)", "!<a href="),
        ('[x](https://example.org/"onmouseover=alert(1))', "%22onmouseover"),
    ],
)
def test_markdown_lets_no_script_and_no_picture_through(text: str, rendered: str) -> None:
    parsed = markdown(text)
    assert rendered in parsed
    assert not re.search(r"<script|<img|href=\"javascript|<[^>]*\sonmouseover", parsed)
