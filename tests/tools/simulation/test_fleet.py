"""The simulated fleet: the same seed tells the same story, and an honest fleet gives nothing to complain about."""

from __future__ import annotations

import datetime as dt
import io
from collections import Counter
from dataclasses import astuple

import pytest
from django.core.management import CommandError, call_command
from django.db.models import Q, Sum
from django.utils import timezone
from pytest_django import Settings

from accounting.engine.amounts import MICRO
from accounting.ledger import check
from accounting.models import Day, HostLedger, HostProject, Note, Project, ProjectDay, Settlement, UserProject
from accounting.projects import demo_projects, signing_key
from accounting.reconciliation.reads import read_reconciled
from accounting.running_tasks.reads import read_running
from credit.models import App, Outcome, Result, UserCredit
from credit.pages.state_texts import state_text
from credit.pages.task_reads import STATES
from extras.top_lists import reads as top_lists
from extras.top_lists.demo import list_some
from extras.top_lists.reads import Choice
from portal.dev.demo_login import VOLUNTEER
from portal.models import ClientKey, ConsentEvent, Host, User
from tools.demo import data as demo
from tools.demo import statistics as demo_statistics
from tools.simulation import fleet

START = dt.datetime(2026, 3, 2, tzinfo=dt.UTC)
NOW = dt.datetime(2026, 6, 15, 15, tzinfo=dt.UTC)
PASSWORD = "cobblestone"


@pytest.fixture(autouse=True)
def _many_logins(settings: Settings) -> None:
    settings.CLIENT_LOGIN_FAILURES = 1


def run(email: str, seed: int, days: int) -> int:
    User.objects.create_user(email, PASSWORD)
    return fleet.run(fleet.assemble(email, PASSWORD, seed), START, START + dt.timedelta(days=days))


def story(email: str) -> list[tuple[object, ...]]:
    """All days of a volunteer, with names in place of numbers that the database gives out."""
    names = dict(Host.objects.values_list("pk", "domain_name"))
    projects = dict(Project.objects.values_list("pk", "name"))
    days = Day.objects.filter(user__email=email).order_by("day", "project_id", "host_id")
    return [
        (d.day, projects[d.project_id], names[d.host_id], d.cpu_ec, d.gpu_ec, d.cpu_time, d.njobs_success, d.flags)
        for d in days
    ]


def test_the_same_seed_makes_the_same_days(projects: list[Project]) -> None:
    calls = run("one@example.org", 7, days=10)
    first = story("one@example.org")
    User.objects.all().delete()
    assert run("one@example.org", 7, days=10) == calls
    assert story("one@example.org") == first
    assert len(first) > 50


def test_another_seed_makes_others(projects: list[Project]) -> None:
    run("one@example.org", 7, days=3)
    first = story("one@example.org")
    User.objects.all().delete()
    run("one@example.org", 8, days=3)
    assert story("one@example.org") != first


def test_an_honest_fleet_is_credited_all_and_gets_no_notes(projects: list[Project]) -> None:
    User.objects.create_user("one@example.org", PASSWORD)
    machines = fleet.assemble("one@example.org", PASSWORD, 7)
    fleet.run(machines, START, START + dt.timedelta(days=60))
    assert Counter(Note.objects.values_list("kind", flat=True)) == {}
    done = sum(attached.totals[2] for machine in machines for attached in machine.computer.projects.values())
    rows = HostProject.objects.all()
    assert sum(row.credited[2] for row in rows) == done > 0
    assert all(row.pending == [0] * 6 and not any(row.dropped) for row in rows)
    assert list(check.differences()) == []


def test_each_machine_is_one_host_that_logs_in_once(projects: list[Project]) -> None:
    run("one@example.org", 7, days=50)
    assert set(Host.objects.values_list("domain_name", flat=True)) == {"studio", "attic-pc", "laptop", "nas"}
    assert ClientKey.objects.count() == 4


def test_more_computers_than_logins_are_allowed_from_one_address(projects: list[Project], settings: Settings) -> None:
    settings.CLIENT_PASSWORD_CHECKS_PER_MINUTE = 1
    run("one@example.org", 7, days=1)
    assert Host.objects.count() == 3


def test_the_command_makes_volunteers_and_their_history(projects: list[Project]) -> None:
    output = io.StringIO()
    call_command("fleet", users=2, computers=5, days=3, stdout=output)
    assert output.getvalue().startswith("Volunteers made: 2. Computers made: 10. Projects that they worked for: 3. ")
    assert User.objects.count() == 2
    # The fourth computer of each joins on the second day; the fifth is like the first.
    assert Host.objects.count() == 10
    assert UserProject.objects.filter(total_ec__gt=0).count() == 6
    assert list(check.differences()) == []
    again = io.StringIO()
    call_command("fleet", users=2, computers=5, days=3, stdout=again)
    assert again.getvalue().startswith("Volunteers made: 0. Computers made: 0. ")
    assert "2 volunteers were there before" in again.getvalue()


def test_the_command_says_that_there_is_nothing_to_work_for(db: None, signing_keys: None) -> None:
    output = io.StringIO()
    call_command("fleet", users=1, computers=1, days=1, stdout=output)
    assert "Computers made: 1. Projects that they worked for: 0." in output.getvalue()
    assert "There is no credit" in output.getvalue()


def test_the_demo_is_a_sound_history_of_ninety_days(
    transactional_db: None, signing_keys: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    demo.create_projects()
    told = demo.create_people(NOW)
    assert told.calls == HostLedger.objects.aggregate(n=Sum("contacts"))["n"]
    days = Day.objects.values_list("day", flat=True)
    assert (max(days) - min(days)).days >= 88
    assert list(Note.objects.values_list("kind", flat=True)) == []
    assert list(check.differences()) == []
    # Rolled up: what people see is what the days say.
    of_days = Day.objects.aggregate(total=Sum("cpu_ec") + Sum("gpu_ec"))["total"]
    assert UserProject.objects.aggregate(total=Sum("total_ec"))["total"] == of_days
    assert ProjectDay.objects.aggregate(total=Sum("cpu_ec") + Sum("gpu_ec"))["total"] == of_days
    # The laptop of the fleet alone does hours of work a day.
    assert of_days > 1_000 * MICRO
    _two_projects_grant_what_is_validated(User.objects.get(email=VOLUNTEER.email))
    monkeypatch.setattr(timezone, "now", lambda: NOW)
    work = {host_id: [astuple(each) for each in did] for host_id, did in told.own_work.items()}
    call_command("simulate_history", VOLUNTEER.email, work=work, stdout=io.StringIO())
    _is_one_story(list(Host.objects.filter(owner__email=VOLUNTEER.email)))
    list_some(NOW)
    _top_lists_have_volunteers_who_agreed()


def _two_projects_grant_what_is_validated(volunteer: User) -> None:
    published = set(Project.objects.filter(name__in=demo_statistics.PUBLISHED).values_list("pk", flat=True))
    assert set(Settlement.objects.values_list("project", flat=True)) == published
    assert Settlement.objects.filter(is_whole=True).count() == Settlement.objects.count()
    first = NOW.date() - dt.timedelta(days=30)
    shown = read_reconciled(volunteer, [(first, "all")], (first, NOW.date()), NOW.date())
    assert shown.ratio is not None and 0.85 <= shown.ratio.value <= 1.1
    # The other projects publish nothing, and what was done last is not validated yet.
    assert shown.sums.granted and shown.sums.estimated and shown.sums.provisional


def _top_lists_have_volunteers_who_agreed() -> None:
    app = App.objects.get(name="sediment")
    rows = top_lists.volunteers(Choice()).rows
    assert {(row.name, row.team) for row in rows} == {
        ("Ilse", "Gravel Bar"),
        ("Tariq", "Gravel Bar"),
        ("Noor", None),
    }
    # All their credit is for this one app, and the team has that of its members.
    for row in rows:
        assert row.total_credit == pytest.approx(UserCredit.objects.get(user=row.id).total_credit) and row.recent_credit
    of_app = top_lists.volunteers(Choice(app=app)).rows
    assert [row.id for row in of_app] == [row.id for row in rows]
    assert [row.total_credit for row in of_app] == pytest.approx([row.total_credit for row in rows])
    (team,) = top_lists.teams(Choice()).rows
    assert team.total_credit == pytest.approx(sum(row.total_credit for row in rows if row.team))
    agreed = ConsentEvent.objects.filter(kind="top_lists", is_given=True)
    assert set(agreed.values_list("user", flat=True)) == {row.id for row in rows}


def _is_one_story(hosts: list[Host]) -> None:
    own = Project.objects.get(is_own=True)
    assert own.is_active and not Project.objects.filter(is_active=False).exists()
    for host in hosts:
        # What the account manager counted at this site's project is what the project counted.
        tasks = Result.objects.filter(host=host)
        at_own = HostProject.objects.get(host=host, project=own)
        done, failed = at_own.credited[4:]
        over = tasks.filter(received_at__isnull=False)
        succeeded = over.filter(outcome=Outcome.SUCCESS)
        assert (succeeded.count(), over.count() - succeeded.count()) == (done, failed)
        run_secs = (at_own.credited[2] + at_own.credited[3]) / MICRO
        # Stretches without a finished job have run time too.
        assert 0.6 * run_secs < sum(task.elapsed_secs or 0 for task in over) < 1.1 * run_secs
        # Nothing is reported or sent after the computer fell silent.
        assert not tasks.filter(Q(received_at__gt=host.last_contact_at) | Q(sent_at__gt=host.last_contact_at)).exists()
        assert at_own.state["hostid"] == host.pk
        assert ("AMD" in host.p_model) == (host.p_vendor == "AuthenticAMD")
        assert ("Windows" in host.os_name) == (host.platform_name == demo_projects.WINDOWS)
    for _, condition in STATES.values():
        assert Result.objects.filter(condition(), host__in=hosts).exists()
    # Each has a page that says why; those that were not reported in time are late.
    shown = {state_text(task, NOW).code for task in Result.objects.filter(host__in=hosts)}
    assert shown >= {"in_progress", "pending", "valid", "invalid", "error", "no_reply"}
    # What runs is on Home, with how far it is.
    running = read_running(hosts[0].owner, NOW).lines
    assert running and all(line.fraction_done is not None and line.remaining_secs for line in running)
    assert Result.objects.filter(outcome=Outcome.NO_REPLY, host__domain_name="attic-pc").exists()


def test_the_demo_is_made_once(db: None, signing_keys: None) -> None:
    output = io.StringIO()
    User.objects.create_user("somebody@example.org", "somebody's secret")
    call_command("prepare", demo=True, stdout=output)
    assert "demo" not in output.getvalue()
    assert User.objects.count() == 1


def test_a_url_is_signed_by_command_for_pasting(db: None, signing_keys: None) -> None:
    output = io.StringIO()
    call_command("sign_url", "HTTPS://Project.Example.ORG//science", stdout=output)
    assert signing_key.is_signed("https://project.example.org/science/", output.getvalue())
    with pytest.raises(CommandError, match="http"):
        call_command("sign_url", "project.example.org")
