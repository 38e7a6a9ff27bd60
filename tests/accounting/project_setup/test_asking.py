"""Projects are asked daily what they say of themselves; what changed is marked, and nothing else changes."""

from __future__ import annotations

import datetime as dt
import re
import socket
from contextlib import closing

import pytest
from django.db import connection
from django.db.models import Model
from django.db.models.signals import pre_save
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from pytest_django import Settings

from accounting import tasks
from accounting.models import Project, ProjectProfile
from accounting.project_setup import accounts, answer_history, asking, steps
from accounting.project_setup.asking import ask_again, take_due
from accounting.project_setup.contents import set_versions
from portal import celery
from portal.fetch import fetcher
from portal.fetch.fetcher import Fetched
from portal.models import User
from tests.support.accounting_factories import at, make_project
from tests.support.fake_project import PLATFORMS, STRONG_KEY, FakeProject

pytestmark = pytest.mark.django_db

NOW = at("2026-03-01", 12)
DAY = dt.timedelta(days=1)


@pytest.fixture
def project(fake: FakeProject) -> Project:
    """One in the list, that was asked for the first time now."""
    made = Project.objects.create(name="Fake@Home", master_url=fake.url)
    assert ask_again(made, NOW)
    return made


def ask_due(now: dt.datetime) -> int:
    """What the task of each project does; how many were due."""
    taken = take_due(now)
    for project_id in taken:
        ask_again(Project.objects.get(pk=project_id), now)
    return len(taken)


def profile() -> ProjectProfile:
    return ProjectProfile.objects.get()


def shown(desk: Client, project: Project) -> str:
    """Which answer of the project the operator's page shows, as its forms send it."""
    page = desk.get(reverse("admin:accounting_project_set_up", args=[project.pk])).content.decode()
    found: list[str] = re.findall(r'name="shown" value="([^"]*)"', page)
    assert len(found) == 2 and found[0] == found[1], "both forms of the changes have it"
    return found[0]


def platforms(project: Project) -> set[str]:
    return {row.platform for row in project.versions.all()}


def test_a_project_is_asked_a_day_later_give_or_take_a_tenth(project: Project, fake: FakeProject) -> None:
    assert NOW + 0.9 * DAY <= profile().ask_after <= NOW + 1.1 * DAY
    assert ask_due(NOW + 0.8 * DAY) == 0
    assert ask_due(NOW + 1.2 * DAY) == 1
    assert ask_due(NOW + 1.2 * DAY) == 0
    assert len(fake.asked("/get_project_config.php")) == 2


def test_what_changed_is_marked_and_nothing_is_applied(project: Project, fake: FakeProject, desk: Client) -> None:
    fake.config = fake.config.replace("Fake@Home", "Renamed").replace("windows_x86_64", "linux").replace("2:0.5 3", "4")
    ask_due(NOW + 2 * DAY)
    project.refresh_from_db()
    assert (project.name, platforms(project), project.keywords.count()) == ("Fake@Home", set(), 0)
    page = desk.get(reverse("admin:accounting_project_set_up", args=[project.pk])).content.decode()
    assert "Changed since you last looked" in page and "Fake@Home → Renamed" in page
    assert "Name, Platforms, Keywords" in desk.get(reverse("admin:accounting_project_troubles")).content.decode()


def test_the_operator_takes_over_what_they_want(project: Project, fake: FakeProject, desk: Client) -> None:
    fake.config = fake.config.replace("Fake@Home", "Renamed").replace("windows_x86_64", "linux").replace("2:0.5 3", "4")
    ask_due(NOW + 2 * DAY)
    url = reverse("admin:accounting_project_take_over", args=[project.pk])
    desk.post(url, {"field": ["name", "versions", "master_url", "is_active"], "shown": shown(desk, project)})
    project.refresh_from_db()
    assert (project.name, platforms(project), project.keywords.count()) == ("Renamed", {"linux"}, 0)
    page = desk.get(reverse("admin:accounting_project_set_up", args=[project.pk])).content.decode()
    assert "<strong>Keywords</strong>" in page and "<strong>Name</strong>" not in page
    desk.post(reverse("admin:accounting_project_seen", args=[project.pk]), {"shown": shown(desk, project)})
    page = desk.get(reverse("admin:accounting_project_set_up", args=[project.pk])).content.decode()
    assert "Changed since you last looked" not in page and project.keywords.count() == 0


def test_a_name_that_another_project_has_is_not_taken_over(project: Project, fake: FakeProject, desk: Client) -> None:
    Project.objects.create(name="Renamed", master_url="https://r.example.org/")
    fake.config = fake.config.replace("Fake@Home", "Renamed")
    ask_due(NOW + 2 * DAY)
    url = reverse("admin:accounting_project_take_over", args=[project.pk])
    data = {"field": "name", "shown": shown(desk, project)}
    assert "Another project on this site has that name" in desk.post(url, data, follow=True).content.decode()


@pytest.mark.parametrize("step", ["take_over", "seen"])
def test_what_the_operator_has_not_been_shown_is_neither_taken_over_nor_marked_as_seen(
    step: str, project: Project, fake: FakeProject, desk: Client
) -> None:
    """The project is asked again between the page and the button."""
    fake.config = fake.config.replace("Fake@Home", "Renamed")
    ask_due(NOW + 2 * DAY)
    data = {"field": "name", "shown": shown(desk, project)}
    fake.config = fake.config.replace("Renamed", "Again")
    ask_due(NOW + 4 * DAY)
    page = desk.post(reverse(f"admin:accounting_project_{step}", args=[project.pk]), data, follow=True).content.decode()
    project.refresh_from_db()
    assert project.name == profile().seen["name"] == "Fake@Home"
    assert "has changed its answer" in page and "Fake@Home → Again" in page


@pytest.mark.parametrize("step", ["take_over", "seen"])
def test_of_a_project_that_was_never_asked_nothing_is_taken_over(step: str, fake: FakeProject, desk: Client) -> None:
    made = Project.objects.create(name="By hand", master_url=fake.url)
    made.versions.create(platform="linux")
    url = reverse(f"admin:accounting_project_{step}", args=[made.pk])
    assert "has changed its answer" in desk.post(url, {"field": "versions"}, follow=True).content.decode()
    fake.is_down = True
    ask_again(made, NOW)
    assert "has changed its answer" in desk.post(url, {"field": "versions"}, follow=True).content.decode()
    assert platforms(made) == {"linux"}


def test_platforms_are_taken_over_at_once_where_the_project_says_so(project: Project, fake: FakeProject) -> None:
    Project.objects.update(takes_platforms=True)
    fake.config = fake.config.replace("windows_x86_64", "linux").replace("Fake@Home", "Renamed")
    ask_due(NOW + 2 * DAY)
    project.refresh_from_db()
    assert (platforms(project), project.name) == ({"linux"}, "Fake@Home")
    assert profile().seen["versions"] == profile().said["versions"] and profile().seen["name"] == "Fake@Home"


def test_a_project_that_names_no_platforms_any_more_keeps_them(project: Project, fake: FakeProject) -> None:
    """As when its database is down: with none it would count as running everywhere."""
    Project.objects.update(takes_platforms=True)
    ask_again(Project.objects.get(), NOW)
    fake.config = fake.config.replace("2:0.5", "2").replace(PLATFORMS, "")
    ask_due(NOW + 2 * DAY)
    assert platforms(project) == {"windows_x86_64"}


def test_a_project_that_did_not_change_sends_nothing_again(project: Project, fake: FakeProject) -> None:
    fake.etag = '"1"'
    ask_due(NOW + 2 * DAY)
    said = profile().said
    fake.config = "never read"
    ask_due(NOW + 4 * DAY)
    assert b'If-None-Match: "1"' in fake.asked("/get_project_config.php")[-1]
    assert (profile().said, profile().said_at, profile().problem) == (said, NOW + 4 * DAY, None)


def test_after_a_change_of_the_url_the_whole_answer_is_asked_for(project: Project, fake: FakeProject) -> None:
    fake.etag = '"1"'
    ask_due(NOW + 2 * DAY)
    Project.objects.update(master_url=f"{fake.url}other/")
    ask_due(NOW + 4 * DAY)
    assert b"If-None-Match" not in fake.asked("/other/get_project_config.php")[0]


def test_a_project_that_fails_keeps_what_it_said_and_since_when_it_fails(project: Project, fake: FakeProject) -> None:
    said = profile().said
    fake.is_down = True
    ask_due(NOW + 2 * DAY)
    ask_due(NOW + 4 * DAY)
    row = profile()
    assert (row.said, row.said_at, row.asked_at) == (said, NOW, NOW + 4 * DAY)
    assert row.problem_since == NOW + 2 * DAY and str(row.problem).startswith("127.0.0.1: ")
    fake.is_down = False
    ask_due(NOW + 6 * DAY)
    assert (profile().problem, profile().problem_since) == (None, None)


def test_an_error_alone_does_not_replace_what_a_project_said(project: Project, fake: FakeProject, desk: Client) -> None:
    """As projects answer while they are worked on: their name, platforms and addresses have not changed."""
    said = profile().said
    fake.config = "<error_num>-183</error_num><error_msg>Down for maintenance</error_msg>"
    ask_due(NOW + 2 * DAY)
    row = profile()
    assert (row.said, row.said_at) == (said, NOW)
    assert str(row.problem) == "127.0.0.1 answered with an error (-183, Down for maintenance)."
    page = desk.get(reverse("admin:accounting_project_set_up", args=[project.pk])).content.decode()
    assert "Changed since you last looked" not in page


def test_one_bad_project_does_not_keep_others_from_being_asked(
    project: Project, fake: FakeProject, settings: Settings
) -> None:
    """It comes first, and answers nothing until the limit."""
    settings.FETCH_TIMEOUT_SECS = 1
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/"
        bad = Project.objects.create(name="Bad", master_url=url)
        ProjectProfile.objects.create(project=bad, ask_after=NOW)
        assert ask_due(NOW + 2 * DAY) == 2
    problem = bad.profile.__class__.objects.get(project=bad).problem
    assert str(problem) == "127.0.0.1: took longer than the limit of 1 s"
    assert ProjectProfile.objects.get(project=project).said_at == NOW + 2 * DAY


def test_projects_that_are_not_active_or_were_never_asked_are_left_alone(project: Project, fake: FakeProject) -> None:
    Project.objects.update(is_active=False)
    Project.objects.create(name="By hand", master_url=f"{fake.url}other/")
    tasks.ask_projects()
    assert len(fake.asked("/get_project_config.php")) == 1


def test_a_run_has_a_limit(fake: FakeProject, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asking, "MAX_PROJECTS_PER_RUN", 2)
    for number in range(3):
        made = Project.objects.create(name=f"P{number}", master_url=f"{fake.url}{number}/")
        ProjectProfile.objects.create(project=made, ask_after=NOW)
    assert [ask_due(NOW), ask_due(NOW)] == [2, 1]


def test_each_project_is_asked_by_a_task_of_its_own(
    project: Project, fake: FakeProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that fails in a way that nobody thought of stops none of the others."""
    monkeypatch.setitem(celery.app.conf, "task_always_eager", True)
    broken = Project.objects.create(name="Broken", master_url=project.master_url.replace("127.0.0.1", "127.0.0.2"))
    ProjectProfile.objects.create(project=broken, ask_after=NOW - DAY)
    ProjectProfile.objects.filter(project=project).update(ask_after=NOW)
    asked: list[str] = []

    def fetch(url: str, **_: object) -> Fetched:
        asked.append(url)
        if "127.0.0.2" in url:
            raise RuntimeError("nobody thought of this")
        return fetcher.fetch(url)

    monkeypatch.setattr(asking, "fetch", fetch)
    tasks.ask_projects()
    assert len(asked) == 3 and "127.0.0.2" in asked[0]
    said_at = ProjectProfile.objects.get(project=project).said_at
    assert said_at is not None and said_at > NOW
    assert ProjectProfile.objects.filter(ask_after__gt=timezone.now()).count() == 2


def test_the_sites_own_project_is_not_asked(project: Project) -> None:
    Project.objects.filter(pk=project.pk).update(is_own=True)
    assert take_due(NOW + 2 * DAY) == []


def test_a_project_that_fails_is_asked_after_an_hour_then_two_and_daily_in_the_end(
    project: Project, fake: FakeProject
) -> None:
    fake.is_down = True
    waits = []
    for _ in range(7):
        ask_again(project, NOW)
        waits.append((profile().ask_after - NOW) / dt.timedelta(hours=1))
    for wait, hours in zip(waits, (1, 2, 4, 8, 16, 24, 24), strict=True):
        assert 0.9 * hours <= wait <= 1.1 * hours
    fake.is_down = False
    ask_again(project, NOW)
    assert profile().failures == 0 and profile().ask_after >= NOW + 0.9 * DAY


@pytest.mark.parametrize(
    "config",
    [
        "<error_num>-183</error_num><error_msg>Back at noon</error_msg>",
        "<name>Fake@Home</name><sched_stopped>1</sched_stopped>",
        "<name>Fake@Home</name><web_stopped>1</web_stopped>",
    ],
)
def test_volunteers_see_that_a_project_says_it_is_down_for_maintenance(
    config: str, project: Project, fake: FakeProject, desk: Client
) -> None:
    up, fake.config = fake.config, config
    ask_again(project, NOW)
    ask_again(project, NOW + DAY)
    assert profile().says_down_since == NOW
    fake.is_down = True
    ask_again(project, NOW + 2 * DAY)
    assert profile().says_down_since == NOW, "one that cannot be reached has not said that it is up again"
    url = reverse("project", args=[project.pk])
    assert "The project has reported maintenance" in desk.get(url).content.decode()
    assert ">down<" in desk.get(reverse("projects")).content.decode()
    fake.is_down, fake.config = False, up
    ask_again(project, NOW + 3 * DAY)
    assert "down for maintenance" not in desk.get(url).content.decode()
    assert ">down<" not in desk.get(reverse("projects")).content.decode()


def test_what_changed_is_kept_with_its_time_and_shown(project: Project, fake: FakeProject, desk: Client) -> None:
    fake.config = f"{fake.config}<terms_of_use>Your work is ours.</terms_of_use>".replace("Fake@Home", "Renamed")
    ask_again(project, NOW + DAY)
    fake.is_down = True
    ask_again(project, NOW + 2 * DAY)
    ask_again(project, NOW + 3 * DAY)
    fake.is_down = False
    ask_again(project, NOW + 4 * DAY)
    rows = [(row.at, row.label, row.now) for row in project.changes_said.order_by("pk") if row.label != "Answers"]
    assert rows == [(NOW + DAY, "Name", "Renamed"), (NOW + DAY, "Terms of use", "Your work is ours.")]
    fetched = project.changes_said.filter(label="Answers").order_by("pk")
    assert [(row.at, row.now == "yes") for row in fetched] == [(NOW + 2 * DAY, False), (NOW + 4 * DAY, True)]
    page = desk.get(reverse("admin:accounting_project_set_up", args=[project.pk])).content.decode()
    assert "Change history" in page and "Your work is ours." in page
    assert Project.objects.get().name == "Fake@Home"


def test_the_history_shows_what_changed_in_a_long_list(project: Project, fake: FakeProject) -> None:
    def platforms_of(last: str) -> str:
        names = [*(f"aarch64-unknown-system{number:02}" for number in range(40)), last]
        return "".join(f"<platform><platform_name>{name}</platform_name></platform>" for name in names)

    for day, last in enumerate(("windows_intelx86", "windows_x86_64")):
        replaced = f"<platforms>{platforms_of(last)}</platforms>"
        fake.config = re.sub("<platforms>.*</platforms>", replaced, fake.config, flags=re.DOTALL)
        ask_again(project, NOW + (day + 1) * DAY)
    row = answer_history.read(project)[0]
    assert (row.label, row.before[:1]) == ("Platforms", "…")
    assert "windows_intelx86" in row.before and "windows_x86_64" in row.now


def test_a_project_that_changes_daily_fills_no_disk(
    project: Project, fake: FakeProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(answer_history, "MAX_ROWS", 3)
    for number in range(6):
        fake.config = re.sub("<name>.*?</name>", f"<name>N{number}</name>", fake.config)
        ask_again(project, NOW + number * DAY)
    assert [row.now for row in answer_history.read(project)] == ["N5", "N4", "N3"]


def test_another_address_for_passwords_is_used_only_when_an_operator_has_seen_it(
    project: Project, fake: FakeProject, desk: Client
) -> None:
    fake.config = re.sub("<web_rpc_url_base>.*?<", "<web_rpc_url_base>https://thief.example.org/<", fake.config)
    # A project at http may ask for https, so only the operator's eyes protect.
    ask_again(project, NOW + DAY)
    assert accounts.web_rpc_base(Project.objects.get()) == fake.url
    desk.post(reverse("admin:accounting_project_seen", args=[project.pk]), {"shown": shown(desk, project)})
    assert accounts.web_rpc_base(Project.objects.get()) == "https://thief.example.org/"


def test_another_key_of_programs_is_marked_until_an_operator_has_seen_it(
    project: Project, fake: FakeProject, desk: Client
) -> None:
    page = reverse("admin:accounting_project_set_up", args=[project.pk])
    for key, is_marked in (("1024\nabc\n.", False), ("1024\nabc\r\n.", False), ("1024\ndef\n.", True)):
        fake.code_key = key
        assert accounts.try_scheduler(project, STRONG_KEY, NOW).went_well
        assert ("Key for signing programs" in desk.get(page).content.decode()) == is_marked
    desk.post(reverse("admin:accounting_project_seen", args=[project.pk]), {"shown": shown(desk, project)})
    assert "Changed since you last looked" not in desk.get(page).content.decode()
    assert project.changes_said.filter(label="Key for signing programs").count() == 1


def test_daemons_that_do_not_run_and_queues_are_shown(project: Project, fake: FakeProject, desk: Client) -> None:
    fake.server_status = (
        "<server_status><daemon_status><daemon><host>a</host><command>feeder</command><status>not running</status>"
        "</daemon><daemon><command>validator</command><status>running</status></daemon></daemon_status>"
        "<database_file_states><results_ready_to_send>1234</results_ready_to_send></database_file_states>"
        "</server_status>"
    )
    ask_again(project, NOW)
    page = desk.get(reverse("admin:accounting_project_set_up", args=[project.pk])).content.decode()
    assert "Some of its daemons are not running: feeder." in page and "1\u202f234" in page
    fake.server_status = "no status"
    assert ask_again(project, NOW), "few projects tell about their daemons"
    assert profile().status == {}


def test_nobody_types_the_platforms_of_a_project_that_says_them(
    project: Project, fake: FakeProject, desk: Client
) -> None:
    url = reverse("admin:accounting_project_change", args=[project.pk])
    assert "versions-__prefix__-platform" in desk.get(url).content.decode()
    Project.objects.update(takes_platforms=True)
    assert "versions-__prefix__-platform" not in desk.get(url).content.decode()


def test_a_project_that_was_entered_by_hand_is_asked_from_then_on(fake: FakeProject, desk: Client) -> None:
    tables, totals = ("addresses", "keywords", "versions"), ("TOTAL_FORMS", "INITIAL_FORMS")
    inlines = {f"{table}-{total}": "0" for table in tables for total in totals}
    data = {"name": "By hand", "master_url": fake.url, "default_share": "100", "account_mode": "shared", **inlines}
    response = desk.post(reverse("admin:accounting_project_add"), data | {"is_active": "on", "takes_platforms": "on"})
    assert response.status_code == 302
    assert ask_due(timezone.now() + DAY) == 1
    assert platforms(Project.objects.get()) == {"windows_x86_64"}


@pytest.mark.django_db(transaction=True)
def test_computers_may_be_attached_while_a_project_is_changed(
    project: Project, fake: FakeProject, desk: Client
) -> None:
    """Rows of computers refer to the project: to write one, its row must not be locked against that."""
    states = []

    def look(sender: type[Model], **_: object) -> None:
        if sender in (Project, ProjectProfile):
            with closing(connection.copy()) as another, another.cursor() as cursor:
                cursor.execute("SELECT 1 FROM accounting_project FOR KEY SHARE NOWAIT")
                states.append(sender)

    pre_save.connect(look)
    try:
        fake.config = fake.config.replace("windows_x86_64", "linux")
        assert ask_again(project, NOW)
        steps.store_account_key(project.pk, User.objects.get(), "7_key")
        accounts.try_account(project, "7_key", NOW)
    finally:
        pre_save.disconnect(look)
    assert states == [ProjectProfile, Project, ProjectProfile]


@pytest.mark.parametrize(
    ("name", "own_address", "is_learnt"),
    [("Fake@Home", True, True), ("Another", False, True), ("Another", True, False)],
    ids=["has its name", "states this address", "is another project"],
)
def test_the_master_url_that_it_states_is_asked_whether_it_is_one_of_the_project(
    name: str, own_address: bool, is_learnt: bool, fake: FakeProject, project: Project
) -> None:
    """Any project could name any address, and so get the work that is done for another one."""
    with FakeProject("127.0.0.2") as other:
        other.config = f"<name>{name}</name><master_url>{other.url if own_address else fake.url}</master_url>"
        fake.config = re.sub("<master_url>[^<]*<", f"<master_url>{other.url}<", fake.config)
        for _ in range(2):
            assert ask_again(project, NOW)
        # Once it is known, it is not asked again.
        assert len(other.asked("/get_project_config.php")) == (1 if is_learnt else 2)
    assert [(row.url, row.source) for row in project.addresses.all()] == [(other.url, "config")] * is_learnt


@pytest.mark.parametrize("stated", ["no address", "http://127.0.0.3:9/"])
def test_a_master_url_that_does_not_answer_is_learnt_from_nobody(
    stated: str, fake: FakeProject, project: Project
) -> None:
    fake.config = re.sub("<master_url>[^<]*<", f"<master_url>{stated}<", fake.config)
    assert ask_again(project, NOW)
    assert not project.addresses.exists()


def test_the_address_of_another_project_stays_that_ones(fake: FakeProject, project: Project) -> None:
    other = Project.objects.create(name="Other", master_url="https://other.example.org/")
    fake.config = re.sub("<master_url>[^<]*<", "<master_url>http://www.other.example.org/<", fake.config)
    assert ask_again(project, NOW)
    assert not project.addresses.exists() and not other.addresses.exists()


def test_the_catalogue_is_read_again_only_after_a_change_of_versions(db: None) -> None:
    own = make_project("Alpha")
    versions = [("windows_x86_64", "CPU"), ("x86_64-pc-linux-gnu", "CPU"), ("plan9", "abacus")]
    assert [set_versions(own, versions), set_versions(own, versions), set_versions(own, versions[:1])] == [
        True,
        False,
        True,
    ]
    assert [(row.platform, row.processor_type) for row in own.versions.all()] == versions[:1]
