"""The public status: BOINC's XML, tag by tag, and a page; of kept figures, without anything of a person."""

from __future__ import annotations

import datetime as dt
from xml.etree import ElementTree

import pytest
from django.core.cache import cache
from django.test import Client
from django.utils import timezone
from pytest_django import DjangoAssertNumQueries, Settings

from credit.models import UserCredit
from portal.dashboard import record
from portal.models import Host, OperatingFigure, OperatingTable, User
from tests.support.credit_factories import make_app, make_result, make_workunit

# As BOINC's html/user/server_status.php writes them, in its order.
STATES = [
    "results_ready_to_send",
    "results_in_progress",
    "workunits_waiting_for_validation",
    "workunits_waiting_for_assimilation",
    "workunits_waiting_for_deletion",
    "results_waiting_for_deletion",
    "transitioner_backlog_hours",
    "users_with_recent_credit",
    "users_with_credit",
    "users_registered_in_past_24_hours",
    "hosts_with_recent_credit",
    "hosts_with_credit",
    "hosts_registered_in_past_24_hours",
    "current_floating_point_speed",
]
APP = ["id", "name", "unsent", "in_progress", "avg_runtime", "min_runtime", "max_runtime", "users"]


def ask(client: Client, path: str = "/server_status.php?xml=1") -> ElementTree.Element:
    response = client.get(path)
    assert response.status_code == 200
    assert response.headers["Content-Type"].startswith("text/xml")
    assert response.content.startswith(b'<?xml version="1.0" encoding="ISO-8859-1" ?>\n')
    return ElementTree.fromstring(response.content)


def test_the_xml_has_the_tags_of_boincs_in_their_order(client: Client, studio: Host, running: None) -> None:
    app = make_app("alpine", user_friendly_name="Älpine & Ωmega")
    for _ in range(3):
        make_result(make_workunit(app))
    make_result(make_workunit(app), studio)
    now = timezone.now()
    # Two half-lives of a week ago: a quarter is left. 4,000 / 4 credits a day by 200 are 5 GFLOPS.
    UserCredit.objects.create(
        user=studio.owner, total_credit=5000, expavg_credit=4000, expavg_at=now - dt.timedelta(days=14)
    )
    record.take_all(now)
    root = ask(client)
    assert root.tag == "server_status"
    assert [child.tag for child in root] == ["daemon_status", "database_file_states"]
    daemons, states = root
    assert {tuple(part.tag for part in daemon) for daemon in daemons} == {("host", "command", "status")}
    assert {daemon.findtext("status") for daemon in daemons} == {"running"}
    commands = {daemon.findtext("command") for daemon in daemons}
    assert commands >= {"scheduler", "transitioner", "validator", "assimilator", "file_deleter", "feeder"}
    assert [child.tag for child in states] == [*STATES, "tasks_by_app"]
    assert states.findtext("results_ready_to_send") == "3"
    assert states.findtext("results_in_progress") == "1"
    assert states.findtext("users_with_credit") == states.findtext("users_with_recent_credit") == "1"
    assert states.findtext("users_registered_in_past_24_hours") == "1"
    assert float(states.findtext("current_floating_point_speed") or 0) == pytest.approx(5, rel=1e-5)
    (found,) = states.findall("tasks_by_app/app")
    assert [part.tag for part in found] == APP
    assert (found.findtext("name"), found.findtext("unsent"), found.findtext("in_progress")) == ("alpine", "3", "1")


def test_xml_can_be_asked_for_and_not_asked_for(client: Client, taken: None) -> None:
    assert client.get("/server_status.php?xml=0").status_code == 302


def test_programs_that_submit_jobs_read_counts_alone(client: Client, db: None) -> None:
    for ask_for in (client.get, client.post):
        response = ask_for("/project/server_status.php?counts=1")
        root = ElementTree.fromstring(response.content)
        assert root.tag == "job_counts"
        assert [element.tag for element in root] == [
            "results_ready_to_send",
            "results_in_progress",
            "results_need_file_delete",
            "wus_need_validate",
            "wus_need_assimilate",
            "wus_need_file_delete",
        ]
        assert {element.text for element in root} == {"0"}


def test_an_app_with_a_new_name_counts_once(client: Client, running: None, db: None) -> None:
    app = make_app("alpine", user_friendly_name="Alpine")
    make_result(make_workunit(app))
    now = timezone.now()
    record.take_all(now - dt.timedelta(minutes=10))
    app.user_friendly_name = "Birch"
    app.save()
    record.take_all(now)
    assert ask(client).findtext("database_file_states/results_ready_to_send") == "1"


def test_apps_of_the_same_name_are_told_apart(client: Client, running: None, db: None) -> None:
    for number, name in enumerate(("alpine", "birch")):
        app = make_app(name, user_friendly_name="The app")
        for _ in range(number + 1):
            make_result(make_workunit(app))
    record.take_all(timezone.now())
    found = ask(client)
    assert found.findtext("database_file_states/results_ready_to_send") == "3"
    assert [app.findtext("unsent") for app in found.iter("app")] == ["1", "2"]


def test_the_project_has_it_at_its_own_address_too(client: Client, taken: None) -> None:
    assert ask(client, "/project/server_status.php?xml=1").tag == "server_status"


def test_without_xml_people_get_the_page(client: Client, taken: None) -> None:
    response = client.get("/server_status.php")
    assert (response.status_code, response.headers["Location"]) == (302, "/status/")
    assert "The site is running" in client.get("/status/").content.decode()


def test_nothing_of_a_person_is_in_it(client: Client, studio: Host, running: None) -> None:
    User.objects.filter(pk=studio.owner_id).update(name="Alice Person")
    app = make_app()
    make_result(make_workunit(app), studio)
    record.take_all(timezone.now())
    for path in ("/status/", "/server_status.php?xml=1"):
        text = client.get(path).content.decode()
        assert not [word for word in ("studio", "alice", "Alice", "example.org") if word in text], path


def test_it_is_kept_for_a_minute(
    client: Client, taken: None, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    with django_assert_num_queries(2):
        first = client.get("/server_status.php?xml=1")
    assert first.headers["Cache-Control"] == "public, max-age=60"
    with django_assert_num_queries(0):
        client.get("/server_status.php?xml=1")


def test_a_site_whose_background_work_stands_still_says_so(client: Client, db: None, running: None) -> None:
    record.take_all(timezone.now() - dt.timedelta(hours=1))
    assert "Status unknown" in client.get("/status/").content.decode()
    cache.clear()
    assert {each.text for each in ask(client).iter("status")} == {"not running"}


def test_a_site_without_figures_answers(client: Client, db: None) -> None:
    assert ask(client).findtext("database_file_states/results_in_progress") == "0"
    assert "No figures have been taken yet" in client.get("/status/").content.decode()


def test_a_daemon_whose_task_did_not_run_is_not_running(client: Client, db: None, running: None) -> None:
    record.take_all(timezone.now())
    table = OperatingTable.objects.get(name="status.daemons")
    table.rows = [[command, command != "transitioner"] for command, _ in table.rows]
    table.save()
    states = {each.findtext("command"): each.findtext("status") for each in ask(client).iter("daemon")}
    assert (states["transitioner"], states["feeder"]) == ("not running", "running")
    assert "Part of the site is not running" in client.get("/status/").content.decode()


def test_the_footer_leads_to_it(client: Client, db: None) -> None:
    assert 'href="/status/"' in client.get("/account/login/").content.decode()
    assert OperatingFigure.objects.count() == 0


def test_an_account_manager_alone_has_a_status_too(
    client: Client, studio: Host, running: None, settings: Settings
) -> None:
    settings.ROOMS = ["account_manager"]
    record.take_all(timezone.now())
    root = ask(client)
    assert [child.tag for child in root[1]] == [*STATES, "tasks_by_app"]
    assert root.findtext("database_file_states/hosts_registered_in_past_24_hours") == "1"
    assert root.findtext("database_file_states/results_in_progress") == "0"
    text = client.get("/status/").content.decode()
    assert "Active within a day" in text
    assert "Tasks by app" not in text


def test_before_the_first_figures_the_page_shows_none(client: Client, db: None) -> None:
    page = client.get("/status/").content.decode()
    assert "No figures have been taken yet." in page
    assert "Tasks ready to send" not in page
