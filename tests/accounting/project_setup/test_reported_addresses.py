"""Addresses of projects that computers report: believed once several owners' do, and then without account keys."""

from __future__ import annotations

import datetime as dt

import pytest
from django.utils import timezone
from pytest_django import Settings

from accounting import tasks
from accounting.models import HostLedger, Project, ProjectAddress, ProjectChange
from accounting.project_setup import reported_addresses
from accounting.project_setup.reported_addresses import learn_reported
from accounting.rpc import catalogue
from portal.models import User
from tests.support.am_rpc import attach, hours_credited, hours_pass, sync, work
from tools.simulation.client import SimulatedComputer

NEW = "https://new.example.org/science/"


@pytest.fixture
def owners(alice: User, bob: User) -> list[User]:
    carol = User.objects.create_user("carol@example.org", "carol's secret", name="Carol")
    return [alice, bob, carol]


def moved(owner: User, project: Project, url: str = NEW, *, worked: bool = True) -> SimulatedComputer:
    """A computer that has worked for a project, and whose client followed it to another address."""
    computer = attach(owner, f"of {owner.pk} {HostLedger.objects.count()}")
    hours_pass(computer, 10)
    if worked:
        work(computer, project, 1)
    sync(computer)
    attachment = computer.projects.pop(project.master_url)
    attachment.url = url
    computer.projects[url] = attachment
    assert url not in sync(computer).accounts
    return computer


def test_three_owners_are_believed_and_their_work_counts(owners: list[User], projects: list[Project]) -> None:
    alpha = projects[0]
    spellings = [NEW, "http://www.new.example.org/science/", NEW]
    computers = [moved(owner, alpha, url) for owner, url in zip(owners[:2], spellings, strict=False)]
    # A second computer of one of them adds nothing.
    moved(owners[0], alpha)
    assert learn_reported(timezone.now()) == 0
    computers.append(moved(owners[2], alpha))
    tasks.learn_addresses()
    address = ProjectAddress.objects.get()
    assert (address.project, address.url, address.source) == (alpha, NEW, "clients")
    assert list(ProjectChange.objects.values_list("label", "now")) == [("Other address, reported by computers", NEW)]
    catalogue.forget()
    for computer, url in zip(computers, spellings, strict=True):
        hours_pass(computer, 10)
        computer.projects[url].work(computer, 3600, 0)
        account = sync(computer).accounts[url]
        assert account.find("authenticator") is None and account.findtext("resource_share") is not None
        assert hours_credited(computer, alpha) == 2
    assert learn_reported(timezone.now()) == 0


def test_computers_that_never_worked_for_it_are_not_believed(owners: list[User], projects: list[Project]) -> None:
    for owner in owners:
        moved(owner, projects[0], worked=False)
    assert learn_reported(timezone.now()) == 0


def test_old_reports_do_not_count(owners: list[User], projects: list[Project]) -> None:
    for owner in owners:
        moved(owner, projects[0])
    assert learn_reported(timezone.now() + dt.timedelta(days=15)) == 0


def test_the_site_says_how_many_it_takes_and_0_is_never(
    owners: list[User], projects: list[Project], settings: Settings
) -> None:
    moved(owners[0], projects[0])
    settings.AM_ADDRESS_OWNERS = 0
    assert learn_reported(timezone.now()) == 0
    settings.AM_ADDRESS_OWNERS = 1
    assert learn_reported(timezone.now()) == 1


def test_no_more_than_some_are_learnt_without_an_operator(
    owners: list[User], projects: list[Project], settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.AM_ADDRESS_OWNERS = 1
    monkeypatch.setattr(reported_addresses, "MAX_REPORTED", 1)
    for number, owner in enumerate(owners):
        moved(owner, projects[0], f"https://new{number}.example.org/")
    assert learn_reported(timezone.now()) == 1
    assert learn_reported(timezone.now()) == 0
