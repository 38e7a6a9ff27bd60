"""Operators' forms: projects with canonical, signed URLs; account keys that go in and never come out."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterator

import pytest
from django.conf import settings
from django.db import connection
from django.http import HttpResponse
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from pytest_django import Settings

from accounting.models import (
    AccountSettings,
    Announcement,
    HostClient,
    Project,
    ProjectAddress,
    ProjectDay,
    ProjectStanding,
    StatisticsImport,
    UserProject,
)
from accounting.projects import signing_key
from accounting.projects.addresses import learn
from accounting.rpc import account_keys, catalogue
from portal.models import Change, User
from portal.wire import signing
from tests.support.accounting_factories import make_host
from tests.support.sessions import CommittingClient

TABLES = ("addresses", "keywords", "versions")
SECRET = "42_0123456789abcdef0123456789abcdef"


@pytest.fixture
def desk(operator: User, signing_keys: None) -> Iterator[Client]:
    """An operator's browser."""
    client = CommittingClient()
    client.force_login(operator)
    catalogue.forget()
    yield client
    catalogue.forget()


def form(**fields: object) -> dict[str, object]:
    return {
        "name": "Alpha",
        "master_url": "https://alpha.example.org/science/",
        "web_url": "",
        "summary": "",
        "description": "",
        "is_active": "on",
        "default_share": "100",
        "account_mode": "shared",
        "url_signature": "",
        "new_account_key": "",
        **fields,
    }


def submit(desk: Client, page: str, **fields: object) -> HttpResponse:
    """Open the page, fill the form and send it, with no rows in the tables below it."""
    tables = desk.get(page).context["inline_admin_formsets"]
    counts = {f"{table.formset.prefix}-{name}": 0 for table in tables for name in ("TOTAL_FORMS", "INITIAL_FORMS")}
    response = desk.post(page, {**counts, **form(**fields)})
    assert isinstance(response, HttpResponse)
    return response


def add(desk: Client, **fields: object) -> HttpResponse:
    return submit(desk, reverse("admin:accounting_project_add"), **fields)


def change(desk: Client, project: Project, **fields: object) -> HttpResponse:
    return submit(desk, reverse("admin:accounting_project_change", args=[project.pk]), **fields)


def test_a_new_project_gets_a_canonical_url_that_is_signed(desk: Client) -> None:
    assert add(desk, master_url=" HTTPS://Alpha.Example.ORG//science ").status_code == 302
    project = Project.objects.get()
    assert project.master_url == "https://alpha.example.org/science/"
    assert signing_key.is_signed(project.master_url, project.url_signature)


@pytest.mark.parametrize("url", ["alpha.example.org", "ftp://alpha.example.org/", "https://alpha/", "https://a.b/<x>"])
def test_a_url_that_clients_refuse_is_refused_here(url: str, desk: Client) -> None:
    response = add(desk, master_url=url)
    assert response.status_code == 200
    assert "Clients would refuse this" in response.content.decode()
    assert not Project.objects.exists()


def test_the_same_url_in_another_spelling_is_the_same_project(desk: Client) -> None:
    add(desk)
    response = add(desk, name="Again", master_url="https://ALPHA.example.org/science")
    assert response.status_code == 200
    assert Project.objects.count() == 1


def test_no_project_is_added_at_another_ones_address(desk: Client) -> None:
    add(desk)
    learn(Project.objects.get(), "https://beta.example.org/", ProjectAddress.Source.OPERATOR)
    for url in ("http://www.alpha.example.org/science/", "http://beta.example.org/"):
        assert "This is an address of Alpha." in add(desk, name="Again", master_url=url).content.decode()
    assert Project.objects.count() == 1


def test_what_only_computers_report_keeps_no_project_from_being_added(desk: Client) -> None:
    add(desk)
    learn(Project.objects.get(), "https://beta.example.org/", ProjectAddress.Source.CLIENTS)
    add(desk, name="Beta", master_url="http://beta.example.org/")
    assert Project.objects.count() == 2 and not ProjectAddress.objects.exists()


def test_addresses_are_entered_and_refused_and_each_change_is_kept(desk: Client) -> None:
    add(desk)
    alpha = Project.objects.get()
    rows = {"addresses-TOTAL_FORMS": "1", "addresses-0-project": str(alpha.pk)}
    new = {"addresses-0-url": "HTTP://Beta.example.org", "addresses-0-is_active": "on"}
    change(desk, alpha, **rows, **new)
    address = alpha.addresses.get()
    assert (address.url, address.source) == ("http://beta.example.org/", "operator")
    refused = {"addresses-INITIAL_FORMS": "1", "addresses-0-id": str(address.pk), "addresses-0-url": address.url}
    change(desk, alpha, **rows, **refused)
    address.refresh_from_db()
    assert not address.is_active
    assert Change.objects.filter(content_type__model="projectaddress").count() == 2
    page = change(desk, alpha, **{**rows, **new, "addresses-0-url": "https://www.alpha.example.org/science/"})
    assert "This is an address of Alpha." in page.content.decode()
    twice = {**rows, **new, "addresses-TOTAL_FORMS": "2", "addresses-0-url": "https://gamma.example.org/"}
    twice |= {"addresses-1-project": str(alpha.pk), "addresses-1-url": "http://www.gamma.example.org"}
    assert "This is an address of Alpha." in change(desk, alpha, **twice).content.decode()
    assert alpha.addresses.get() == address


def test_a_former_master_url_stays_an_address(desk: Client) -> None:
    add(desk)
    alpha = Project.objects.get()
    change(desk, alpha, master_url="https://moved.example.org/", path_ignores_case="on")
    alpha.refresh_from_db()
    assert signing_key.is_signed("https://moved.example.org/", alpha.url_signature) and alpha.path_ignores_case
    assert [(a.url, a.source) for a in alpha.addresses.all()] == [("https://alpha.example.org/science/", "moved")]


def test_a_changed_url_is_signed_anew(desk: Client) -> None:
    add(desk)
    project = Project.objects.get()
    change(desk, project, master_url="https://beta.example.org/", url_signature=project.url_signature)
    project.refresh_from_db()
    assert signing_key.is_signed("https://beta.example.org/", project.url_signature)


class TestWithThePrivateKeyElsewhere:
    @pytest.fixture(autouse=True)
    def _key_is_elsewhere(self, desk: Client, settings: Settings) -> None:
        self.private = settings.AM_SIGNING_KEY
        settings.AM_SIGNING_KEY = self.private.with_name("not here")

    def sign(self, url: str) -> str:
        return signing.sign(url.encode(), signing.parse_private_key(self.private.read_text()))

    def test_a_right_signature_is_taken_in_any_layout(self, desk: Client) -> None:
        signature = self.sign("https://alpha.example.org/science/")
        assert add(desk, url_signature=signature.replace("\n", "\r\n  ")).status_code == 302
        assert Project.objects.get().url_signature == signature

    def test_a_signature_of_another_url_is_refused(self, desk: Client) -> None:
        response = add(desk, url_signature=self.sign("https://beta.example.org/"))
        assert "not a signature of this URL" in response.content.decode()
        assert not Project.objects.exists()

    def test_a_signature_by_another_key_is_refused(self, desk: Client) -> None:
        other = signing.sign(b"https://alpha.example.org/science/", signing.generate_key())
        assert "not a signature of this URL" in add(desk, url_signature=other).content.decode()

    def test_what_is_no_signature_is_refused(self, desk: Client) -> None:
        for text in ("abc", "zz", "." * 300, "00" * 128 + "\n.\nmore"):
            assert "This is not a signature" in add(desk, url_signature=text).content.decode()
        assert not Project.objects.exists()

    def test_none_is_taken_and_shown_as_missing(self, desk: Client) -> None:
        assert add(desk).status_code == 302
        assert Project.objects.get().url_signature == ""

    def test_the_old_signature_does_not_do_for_a_new_url(self, desk: Client) -> None:
        signature = self.sign("https://alpha.example.org/science/")
        add(desk, url_signature=signature)
        project = Project.objects.get()
        response = change(desk, project, master_url="https://beta.example.org/", url_signature=signature)
        assert "not a signature of this URL" in response.content.decode()
        project.refresh_from_db()
        assert project.master_url == "https://alpha.example.org/science/"


def test_an_account_key_is_stored_encrypted_and_never_shown(desk: Client) -> None:
    add(desk, new_account_key=SECRET)
    project = Project.objects.get()
    with connection.cursor() as cursor:
        cursor.execute("SELECT shared_account_key FROM accounting_project")
        stored = bytes(cursor.fetchone()[0])
    assert SECRET.encode() not in stored and b"42_" not in stored
    assert account_keys.shared(project) == SECRET
    for page in (
        reverse("admin:accounting_project_change", args=[project.pk]),
        reverse("admin:accounting_project_changelist"),
        reverse("admin:accounting_project_history", args=[project.pk]),
    ):
        html = desk.get(page).content.decode()
        assert "Alpha" in html
        assert SECRET not in html and stored.decode() not in html


def test_an_empty_account_key_keeps_the_present_one(desk: Client) -> None:
    add(desk, new_account_key=SECRET)
    project = Project.objects.get()
    change(desk, project, name="Renamed")
    project.refresh_from_db()
    assert project.name == "Renamed"
    assert account_keys.shared(project) == SECRET


@pytest.mark.parametrize("key", ["a b", "schlüssel", "x" * 256, "a\x00b"])
def test_an_account_key_that_clients_could_not_hold_is_refused(key: str, desk: Client) -> None:
    assert add(desk, new_account_key=key).status_code == 200
    assert not Project.objects.exists()


@pytest.mark.parametrize("share", ["-1", "1000001", "nan", "inf", "1e304", "text", ""])
def test_a_share_that_is_none_is_refused(share: str, desk: Client) -> None:
    assert add(desk, default_share=share).status_code == 200
    assert not Project.objects.exists()


def test_replies_follow_a_change_at_once(desk: Client) -> None:
    add(desk, new_account_key=SECRET)
    project = Project.objects.get()
    assert catalogue.current().by_id[project.pk].shared_account_key == SECRET
    change(desk, project, default_share="7", new_account_key="43_other")
    entry = catalogue.current().by_id[project.pk]
    assert (entry.facts.share, entry.shared_account_key) == (7, "43_other")


def test_a_project_cannot_be_deleted(desk: Client) -> None:
    add(desk)
    project = Project.objects.get()
    assert desk.post(reverse("admin:accounting_project_delete", args=[project.pk]), {"post": "yes"}).status_code == 403
    assert Project.objects.count() == 1


def test_a_volunteers_own_key_is_encrypted_too(desk: Client, alice: User) -> None:
    add(desk)
    fields = {"user": alice.pk, "project": Project.objects.get().pk, "resource_share": "", "new_account_key": SECRET}
    assert desk.post(reverse("admin:accounting_userproject_add"), fields).status_code == 302
    row = UserProject.objects.get()
    assert account_keys.own(alice.pk, row.project_id, row.project.master_url, bytes(row.account_key or b"")) == SECRET
    assert SECRET not in desk.get(reverse("admin:accounting_userproject_change", args=[row.pk])).content.decode()


@pytest.mark.parametrize(
    "text",
    [
        '{"max_ncpus_pct": 0}',
        '{"max_ncpus_pct": "50"}',
        '{"moons": 1}',
        "[1]",
        "{",
        f'{{"start_hour": {10**400}}}',
    ],
)
def test_preferences_that_are_none_are_refused_with_a_sentence(text: str, desk: Client, alice: User) -> None:
    fields = {"user": alice.pk, "preferences": text, "keywords_yes": "", "keywords_no": ""}
    response = desk.post(reverse("admin:accounting_accountsettings_add"), fields)
    assert response.status_code == 200
    assert not AccountSettings.objects.exists()


@pytest.mark.parametrize("at_its_page", [True, False])
def test_an_announcement_is_out_at_once_and_so_is_its_end(desk: Client, at_its_page: bool) -> None:
    assert not catalogue.current().urgent
    fields = {
        "title": "Maintenance",
        "text": "On *Monday*.",
        "published_at_0": "2026-01-01",
        "published_at_1": "00:00:00",
        "urgent_until_0": "2999-01-01",
        "urgent_until_1": "00:00:00",
    }
    draft = desk.post(reverse("admin:accounting_announcement_add"), fields, follow=True)
    assert "On <em>Monday</em>." in draft.content.decode()
    assert not catalogue.current().urgent and "Maintenance" not in desk.get("/news/").content.decode()
    page = reverse("admin:accounting_announcement_change", args=[Announcement.objects.get().pk])
    assert desk.post(page, {**fields, "accounting_announcement_publish": ""}).status_code == 302
    assert "Maintenance" in desk.get("/news/").content.decode()
    announcement = Announcement.objects.get()
    assert announcement.title == catalogue.current().urgent[0][0] == "Maintenance"
    if at_its_page:
        desk.post(reverse("admin:accounting_announcement_delete", args=[announcement.pk]), {"post": "yes"})
    else:
        chosen = {"action": "delete_selected", "_selected_action": announcement.pk, "post": "yes"}
        desk.post(reverse("admin:accounting_announcement_changelist"), chosen)
    assert not Announcement.objects.exists()
    assert not catalogue.current().urgent


@pytest.mark.parametrize(
    ("field", "value", "fault"),
    [
        ("ends_at_0", "2025-12-31", "has to be later than"),
        ("older_than", "eight", "such as 8.2.0"),
        # Else it would be for nobody, and be called one for everybody.
        ("older_than", "0.0", "such as 8.2.0"),
        ("app_version_num", "102", "Enter the app"),
    ],
)
def test_an_announcement_that_cannot_be_shown_is_refused(desk: Client, field: str, value: str, fault: str) -> None:
    fields = {"title": "T", "text": "T", "published_at_0": "2026-01-01", "published_at_1": "00:00:00", field: value}
    fields |= {"ends_at_1": "00:00:00"} if field == "ends_at_0" else {}
    assert fault in desk.post(reverse("admin:accounting_announcement_add"), fields).content.decode()
    assert not Announcement.objects.exists()


def test_a_draft_that_lay_long_is_news_from_when_it_is_published(desk: Client) -> None:
    now = timezone.now()
    fields = {"title": "T", "text": "T", "published_at_0": "2026-01-01", "published_at_1": "00:00:00"}
    draft = Announcement.objects.create(title="T", text="T", is_draft=True)
    page = reverse("admin:accounting_announcement_change", args=[draft.pk])
    publish = {**fields, "accounting_announcement_publish": ""}
    ended = {**publish, "ends_at_0": "2026-01-02", "ends_at_1": "00:00:00"}
    assert "Not published" in desk.post(page, ended, follow=True).content.decode()
    assert Announcement.objects.get().is_draft
    desk.post(page, publish)
    published = Announcement.objects.get()
    # Clients show nothing that is older than 30 days.
    assert not published.is_draft and published.published_at >= now
    to_come = {"published_at_0": "2999-01-01"}
    desk.post(page, {**fields, **to_come, "accounting_announcement_take_back": ""})
    desk.post(page, {**publish, **to_come})
    assert Announcement.objects.get().published_at > now + dt.timedelta(days=300_000)


def test_an_announcement_is_taken_back(desk: Client) -> None:
    announcement = Announcement.objects.create(title="Too early", text="T")
    fields = {"title": "Too early", "text": "T", "published_at_0": "2026-01-01", "published_at_1": "00:00:00"}
    page = reverse("admin:accounting_announcement_change", args=[announcement.pk])
    assert "accounting_announcement_publish" not in desk.get(page).content.decode()
    desk.post(page, {**fields, "accounting_announcement_take_back": ""})
    announcement.refresh_from_db()
    assert announcement.is_draft and "Too early" not in Client().get("/news/").content.decode()


def test_volunteers_and_strangers_have_no_business_here(client: Client, alice: User) -> None:
    page = reverse("admin:accounting_project_add")
    assert client.get(page).status_code == 302
    client.force_login(alice)
    assert client.get(page).status_code in (302, 403)


# --- what a project is about and runs on --------------------------------------------------------------


def with_row(desk: Client, project: Project, table: str, **row: object) -> HttpResponse:
    """Change the project, with one new row in one of the tables below its form."""
    counts = {f"{name}-{total}": 0 for name in TABLES for total in ("TOTAL_FORMS", "INITIAL_FORMS")}
    new = {f"{table}-0-{field}": value for field, value in row.items()}
    page = reverse("admin:accounting_project_change", args=[project.pk])
    response = desk.post(page, {**counts, **form(), f"{table}-TOTAL_FORMS": 1, **new})
    assert isinstance(response, HttpResponse)
    return response


def test_keywords_and_versions_reach_the_choice_at_once(desk: Client) -> None:
    add(desk)
    project = Project.objects.get()
    assert catalogue.current().by_id[project.pk].facts.keywords == {}
    assert with_row(desk, project, "keywords", keyword=14, weight="0.5").status_code == 302
    assert with_row(desk, project, "versions", platform="windows_x86_64", processor_type="ATI").status_code == 302
    facts = catalogue.current().by_id[project.pk].facts
    assert dict(facts.keywords) == {14: 0.5}
    assert set(facts.versions) == {("windows_x86_64", "ATI")}


@pytest.mark.parametrize(("keyword", "weight"), [(999, "1"), (14, "0"), (14, "1.01"), (14, "nan"), (14, "inf")])
def test_a_keyword_that_is_none_and_a_weight_out_of_range_are_refused(keyword: int, weight: str, desk: Client) -> None:
    add(desk)
    project = Project.objects.get()
    assert with_row(desk, project, "keywords", keyword=keyword, weight=weight).status_code == 200
    assert not project.keywords.exists()


def test_a_project_that_is_down_is_so_at_once(desk: Client) -> None:
    add(desk)
    project = Project.objects.get()
    change(desk, project, down_since_0="2026-03-01", down_since_1="08:00:00", down_reason="The disks are full.")
    assert catalogue.current().by_id[project.pk].facts.is_down
    project.refresh_from_db()
    assert project.down_reason == "The disks are full."


def test_what_was_worked_out_of_projects_is_shown_and_not_changed(desk: Client) -> None:
    add(desk)
    project = Project.objects.get()
    now = timezone.now()
    project.troubles.create(kind="no_work", processor_type="ATI", since=now, last_at=now, volunteers=3, of_volunteers=4)
    project.standings.create(on_gpu=True, target=0.5, got=0.25, boost=1.5, day=now.date())
    for name in ("projecttrouble", "projectstanding"):
        assert "Alpha" in desk.get(reverse(f"admin:accounting_{name}_changelist")).content.decode()
        assert desk.get(reverse(f"admin:accounting_{name}_add")).status_code == 403


def test_operators_see_which_clients_reported_as_a_computer_and_change_nothing(desk: Client, alice: User) -> None:
    HostClient.objects.create(host=make_host(alice, "studio"), cpid="a" * 32)
    client = HostClient.objects.get()
    assert "a" * 32 in desk.get(reverse("admin:accounting_hostclient_changelist")).content.decode()
    page = reverse("admin:accounting_hostclient_change", args=[client.pk])
    assert desk.get(page).status_code == 200
    assert desk.post(page, {"cpid": "b" * 32}).status_code == 403
    assert desk.get(reverse("admin:accounting_hostclient_add")).status_code == 403


@pytest.mark.parametrize(
    "name", ["userproject", "accountsettings", "projectday", "projectstanding", "statisticsimport"]
)
def test_a_row_is_called_by_names_and_numbers_which_need_no_translation(desk: Client, alice: User, name: str) -> None:
    project = Project.objects.create(name="Alpha", master_url="https://alpha.example.org/")
    now = timezone.now()
    day = now.date()
    rows = {
        "userproject": (UserProject(user=alice, project=project), "Alice · Alpha"),
        "accountsettings": (AccountSettings(user=alice), "Alice"),
        "projectday": (ProjectDay(project=project, day=day, rolled_up_at=now), f"Alpha · {day}"),
        "projectstanding": (
            ProjectStanding(project=project, on_gpu=True, target=1, got=1, boost=1, day=day),
            "Alpha · GPU",
        ),
        "statisticsimport": (StatisticsImport(project=project), "Alpha"),
    }
    row, words = rows[name]
    row.save()
    desk.cookies[settings.LANGUAGE_COOKIE_NAME] = "de"
    page = desk.get(reverse(f"admin:accounting_{name}_change", args=[row.pk])).content.decode()
    title = re.search(r"<title>\s*(.*?) \| ", page)
    assert title is not None and title[1] == words
