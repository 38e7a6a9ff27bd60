"""Merging while computers report: the client of either record is answered, and the sums stay right."""

from __future__ import annotations

import datetime as dt
import threading

import pytest
from django.db import OperationalError, connection, transaction

from accounting.computers.merge import merge
from accounting.engine.amounts import MICRO
from accounting.ledger import check
from accounting.models import Day, HostProject, Project
from portal.computers.identify import HostDescription, identify
from portal.models import Host, User
from tests.support.am_rpc import HOUR, START, call, credited, host_of, hours_credited, make_computer, token_of, work
from tools.simulation.client import SimulatedComputer

DAY = 24 * HOUR


def worked(owner: User, name: str, project: Project, first: dt.datetime, hours: int) -> SimulatedComputer:
    """A computer that attached at one moment and reported this many hours of work as many hours later."""
    computer = make_computer(owner, name)
    call(computer, first)
    work(computer, project, hours)
    call(computer, first + hours * HOUR)
    return computer


def joined(owner: User, old: SimulatedComputer, new: SimulatedComputer) -> Host:
    return merge(owner.pk, host_of(old).pk, host_of(new).pk)


def test_the_client_in_use_goes_on_from_its_totals(alice: User, projects: list[Project]) -> None:
    alpha = projects[0]
    old = worked(alice, "before", alpha, START, 10)
    new = worked(alice, "after", alpha, START + 30 * DAY, 5)
    joined(alice, old, new)
    assert hours_credited(new, alpha) == 10 + 5
    work(new, alpha, 3)
    call(new, START + 31 * DAY)
    assert hours_credited(new, alpha) == 10 + 5 + 3


def test_a_client_with_the_id_of_the_record_that_went_reports_to_the_other(
    alice: User, projects: list[Project]
) -> None:
    """An old copy of BOINC's folder is put back: its id is still known, and it gets that of the record in use."""
    alpha = projects[0]
    old = worked(alice, "before", alpha, START, 10)
    new = worked(alice, "after", alpha, START + 30 * DAY, 5)
    old_host = host_of(old)
    merged = joined(alice, old, new)
    reply = call(old, START + 60 * DAY)
    assert reply.error[0] == 0
    assert token_of(old) == merged.token != old_host.token
    work(old, alpha, 2)
    call(old, START + 60 * DAY + 2 * HOUR)
    assert Host.objects.count() == 2
    assert not Day.objects.filter(host=old_host).exists()
    assert not HostProject.objects.filter(host=old_host).exists()
    # Never less than what was credited, and the days still agree (credited() compares them).
    assert credited(old, alpha)[2] >= (10 + 5) * 3600 * MICRO
    assert list(check.differences()) == []


@pytest.mark.django_db(transaction=True)
def test_reports_and_a_merge_at_once_lose_and_invent_nothing(alice: User, projects: list[Project]) -> None:
    alpha, beta, _ = projects
    old = worked(alice, "before", alpha, START, 10)
    new = worked(alice, "after", beta, START + 30 * DAY, 5)
    pair = host_of(old).pk, host_of(new).pk
    reported = threading.Event()
    failures: list[Exception] = []

    def join() -> None:
        try:
            assert reported.wait(timeout=30)
            for _ in range(5):
                merge(alice.pk, *pair)
        except Exception as error:
            failures.append(error)
        finally:
            connection.close()

    thread = threading.Thread(target=join, daemon=True)
    thread.start()
    for step in range(1, 31):
        work(new, alpha, 1)
        work(new, beta, 1)
        assert call(new, START + 30 * DAY + (5 + step) * HOUR).error[0] == 0
        if step == 5:
            reported.set()
    thread.join(timeout=30)
    assert not thread.is_alive() and failures == []
    # Two hours of work an hour on four processors: all of it counts, and the 10 h of the older record.
    assert hours_credited(new, alpha) == 10 + 30
    assert hours_credited(new, beta) == 5 + 30
    assert list(check.differences()) == []


@pytest.mark.django_db(transaction=True)
def test_a_merge_waits_for_a_first_contact_that_has_found_one_of_the_two(alice: User, projects: list[Project]) -> None:
    old = worked(alice, "before", projects[0], START, 10)
    new = worked(alice, "after", projects[0], START + 30 * DAY, 5)
    pair = host_of(old).pk, host_of(new).pk
    found = host_of(old)
    seen = HostDescription(None, found.host_cpid, found.domain_name, found.os_name, found.p_vendor, found.p_model)
    outcome: list[object] = []

    def join() -> None:
        try:
            # Only in this transaction: the connection goes back to the pool, and to other tests.
            with transaction.atomic():
                with connection.cursor() as cursor:
                    cursor.execute("SET LOCAL lock_timeout = '300ms'")
                outcome.append(merge(alice.pk, *pair))
        except OperationalError as error:
            outcome.append(error)
        finally:
            connection.close()

    with transaction.atomic():
        assert identify(alice.pk, seen, START + 40 * DAY) == (found, False)
        thread = threading.Thread(target=join, daemon=True)
        thread.start()
        thread.join(timeout=30)
    assert len(outcome) == 1 and isinstance(outcome[0], OperationalError)
    assert merge(alice.pk, *pair) == host_of(new)
