"""The operator's room: six questions, one search, and no red cross for what is normal."""

from __future__ import annotations

import gzip
import re
from pathlib import Path

import pytest
from django.contrib.staticfiles import finders
from django.test import Client
from pytest_django import Settings

from accounting.models import Announcement
from portal.models import Host, User
from scheduler.models import StoredFile
from tests.support.credit_factories import make_app
from tests.support.page_text import text_of
from tests.support.roles import make_person
from tests.support.sessions import sign_in_lately


def test_the_sidebar_has_six_questions_and_the_page_its_landmarks(desk: Client) -> None:
    text = desk.get("/admin/").content.decode()
    questions = [title.strip() for title in re.findall(r"<summary[^>]*>([^<]+)</summary>", text)]
    assert questions == ["Is all well?", "People", "Projects", "Jobs", "Credit", "Settings"]
    links = re.findall(r'<li><a href="([^"]+)"', text)
    assert len(links) == len({*links}) > 30
    assert text.count('role="main"') == 1
    assert text.count('aria-current="page"') == 1


def test_who_sees_no_figures_begins_with_the_pages_of_their_roles(client: Client, db: None) -> None:
    sign_in_lately(client, make_person("Support"))
    page = text_of(client.get("/admin/"))
    assert page.count("Help a volunteer") == 2 and "What needs attention" not in page
    assert "Nothing needs attention" not in page and "Jobs" not in page


def test_what_is_about_jobs_stands_with_the_jobs(desk: Client) -> None:
    text = desk.get("/admin/").content.decode()
    begin, end = (text.index(f"/admin/credit/{name}/") for name in ("batch", "preview"))
    for page in ("scheduler/submitter", "scripts/script", "remote_jobs/jobtemplate"):
        assert begin < text.index(f"/admin/{page}/") < end, page


def test_one_search_finds_people_by_display_name_computers_and_apps(desk: Client, alice: User, studio: Host) -> None:
    User.objects.filter(pk=alice.pk).update(name="Zenobia")
    app = make_app("alpine", user_friendly_name="Alpine folding")
    for term, link in (
        ("zenob", f"/admin/portal/user/{alice.pk}/change/"),
        (studio.name[:5], f"/admin/portal/host/{studio.pk}/change/"),
        ("folding", f"/admin/credit/app/{app.pk}/change/"),
    ):
        assert f'href="{link}"' in desk.get(f"/admin/search/?s={term}").content.decode(), term


def test_an_empty_list_says_so_and_what_it_is_searched_by(desk: Client) -> None:
    text = desk.get("/admin/accounting/announcement/").content.decode()
    assert "Nothing here yet" in text and "Show all" not in text
    assert 'placeholder="Search by: title"' in text
    assert "Nothing matches" in desk.get("/admin/accounting/announcement/?q=none").content.decode()


def test_a_file_is_headed_by_its_name_as_it_is(desk: Client) -> None:
    app_file = StoredFile.objects.create(name="alpine_1.00", path="alpine", nbytes=1, md5="0" * 32)
    text = desk.get(f"/admin/scheduler/storedfile/{app_file.pk}/change/").content.decode()
    assert f"<bdi>{app_file.name}</bdi>" in text


def test_the_search_shows_nobody_to_those_who_may_not_see_people(client: Client, alice: User) -> None:
    client.force_login(User.objects.create_user("reader@example.org", is_staff=True))
    assert alice.email not in client.get("/admin/search/?s=alice").content.decode()


def test_no_is_no_red_cross(desk: Client, alice: User) -> None:
    text = desk.get("/admin/portal/user/").content.decode()
    assert ">no</span>" in text and "bg-red" not in text.partition("<tbody")[2].partition("</table")[0]


@pytest.mark.parametrize(
    "address", ["/admin/", "/admin/portal/user/", "/admin/credit/app/add/", "/admin/portal/user/add/"]
)
def test_a_page_of_the_room_is_lighter_than_300_kilobytes(desk: Client, address: str) -> None:
    """As browsers load it, compressed: the page, its styles with the font of icons, and its scripts."""
    text = desk.get(address).content.decode()
    files = {path.partition("?")[0] for path in re.findall(r'(?:href|src)="/static/([^"]+\.(?:css|js))', text)}
    contents = [Path(str(finders.find(file))).read_bytes() for file in files]
    icons = Path(str(finders.find("unfold/fonts/material-symbols/Material-Symbols-Outlined.woff2"))).stat().st_size
    assert len(files) > 5
    assert sum(len(gzip.compress(part)) for part in (text.encode(), *contents)) + icons < 300_000


def test_a_delete_button_is_one_sentence_in_german(desk: Client, settings: Settings) -> None:
    desk.cookies[settings.LANGUAGE_COOKIE_NAME] = "de"
    news = Announcement.objects.create(title="Work", text="There is work.")
    page = desk.get(f"/admin/accounting/announcement/{news.pk}/change/").content.decode()
    assert "Ankündigung löschen" in page and "Speichern" in page and "Sichern" not in page
