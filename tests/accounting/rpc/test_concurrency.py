"""Requests at once, on real connections: the outcome is always that of one after the other."""

from __future__ import annotations

import datetime as dt
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import connection
from django.db.models import Sum
from django.utils import timezone
from pytest_django import Settings

from accounting.computers import several
from accounting.computers.several import Action
from accounting.engine.amounts import MICRO
from accounting.ledger import check, partitions, rollup
from accounting.models import Day, HostLedger, HostProject, Project, ProjectDay
from portal.computers.new_hosts import take_place
from portal.models import ClientKey, Host, JoinToken, User
from portal.people.join_tokens import JoinTokenRefused, make_join_token
from tests.support.am_rpc import (
    Reply,
    attach,
    credited,
    host_of,
    hours_credited,
    hours_pass,
    kinds_noted,
    make_computer,
    post,
    row_of,
    sync,
    work,
)
from tools.simulation.client import SimulatedComputer

pytestmark = pytest.mark.django_db(transaction=True)
HOSTS = 60
THREADS = 12


@pytest.fixture(autouse=True)
def _many_logins(settings: Settings) -> None:
    settings.CLIENT_PASSWORD_CHECKS_PER_MINUTE = 10_000


def at_once(groups: Iterable[list[bytes]]) -> list[list[Reply]]:
    """Post the messages of each group at the same moment; the replies, in the same order."""
    with ThreadPoolExecutor(THREADS) as pool:
        futures = []
        for messages in groups:
            # The members of a group are next to each other in the queue, so each finds the others waiting.
            ready = threading.Barrier(len(messages), timeout=60)
            futures.append([pool.submit(_post, message, ready) for message in messages])
        return [[future.result() for future in group] for group in futures]


def _post(message: bytes, ready: threading.Barrier) -> Reply:
    try:
        ready.wait()
        return post(message)
    finally:
        connection.close()


def fleet(user: User, hours: float) -> list[SimulatedComputer]:
    computers = [attach(user, f"computer-{number}") for number in range(HOSTS)]
    for computer in computers:
        hours_pass(computer, hours)
    return computers


def test_the_same_request_twice_at_once_counts_once_on_each_of_sixty_hosts(
    alice: User, projects: list[Project]
) -> None:
    alpha, beta, _ = projects
    computers = fleet(alice, 10)
    for computer in computers:
        work(computer, alpha, 6, jobs=2)
        work(computer, beta, 3, jobs=1)
    replies = at_once([[computer.request(time.time())] * 2 for computer in computers])
    assert all(reply.error[0] == 0 for pair in replies for reply in pair)
    # 6 h of 0.01 credits a second are 216 credits.
    assert {credited(c, alpha) for c in computers} == {(216 * MICRO, 0, 6 * 3600 * MICRO, 0, 2, 0)}
    assert {credited(c, beta) for c in computers} == {(108 * MICRO, 0, 3 * 3600 * MICRO, 0, 1, 0)}
    assert HostLedger.objects.filter(contacts=3).count() == HOSTS
    assert not any(kinds_noted(c) for c in computers)
    assert list(check.differences()) == []


def test_two_different_requests_of_a_host_at_once_count_each_once(alice: User, projects: list[Project]) -> None:
    alpha = projects[0]
    computers = fleet(alice, 10)
    pairs = []
    for computer in computers:
        work(computer, alpha, 1)
        older = computer.request(time.time())
        work(computer, alpha, 2)
        pairs.append([older, computer.request(time.time() + 1)])
    at_once(pairs)
    for computer in computers:
        # Whichever came first, the newest totals stay and all three hours are credited.
        assert hours_credited(computer, alpha) == 3
        reported = row_of(computer, alpha).reported
        assert reported is not None and reported[2] == 3 * 3600 * MICRO
        sync(computer)
        assert hours_credited(computer, alpha) == 3
    assert list(check.differences()) == []


def test_ten_requests_of_one_host_at_once_are_all_answered(alice: User, projects: list[Project]) -> None:
    alpha = projects[0]
    computer = attach(alice)
    hours_pass(computer, 10)
    messages = []
    for step in range(10):
        work(computer, alpha, 0.5)
        messages.append(computer.request(time.time() + step))
    (replies,) = at_once([messages])
    assert [reply.error for reply in replies] == [(0, "")] * 10
    assert hours_credited(computer, alpha) == 5


def test_two_first_requests_at_once_make_one_host(alice: User, projects: list[Project]) -> None:
    message = make_computer(alice).request(time.time())
    (replies,) = at_once([[message] * 8])
    assert all(reply.error == (0, "") for reply in replies)
    assert Host.objects.count() == 1
    assert {reply.text("opaque/host") for reply in replies} == {Host.objects.get().token}
    # Each got a key of its own, and all of them work.
    given = {reply.text("authenticator") for reply in replies}
    assert len(given) == ClientKey.objects.filter(revoked_at=None).count() == 8


def test_first_requests_of_different_computers_at_once_make_one_host_each(alice: User, projects: list[Project]) -> None:
    names = ("attic", "cellar", "kitchen", "studio")
    at_once([[make_computer(alice, name, p_model=f"CPU of {name}").request(time.time()) for name in names]])
    assert set(Host.objects.values_list("domain_name", flat=True)) == set(names)


def test_changed_hardware_and_an_ordinary_request_at_once(alice: User, projects: list[Project]) -> None:
    alpha = projects[0]
    computers = fleet(alice, 10)[:20]
    pairs = []
    for computer in computers:
        work(computer, alpha, 1)
        plain = computer.request(time.time())
        computer.ncpus = 8
        work(computer, alpha, 1)
        pairs.append([plain, computer.request(time.time() + 1)])
    replies = at_once(pairs)
    assert all(reply.error == (0, "") for pair in replies for reply in pair)
    assert {hours_credited(computer, alpha) for computer in computers} == {2}


def test_a_period_that_is_rolled_up_during_load_loses_nothing(alice: User, projects: list[Project]) -> None:
    computers = fleet(alice, 10)[:30]
    messages = []
    for computer in computers:
        for project in projects:
            work(computer, project, 2, jobs=1)
        messages.append([computer.request(time.time())])
    is_over = threading.Event()
    roller = threading.Thread(target=_until(is_over, lambda: rollup.roll_up(timezone.now())))
    roller.start()
    at_once(messages)
    is_over.set()
    roller.join()
    assert rollup.roll_up(timezone.now())
    for project in projects:
        of_days = Day.objects.filter(project=project).aggregate(time=Sum("cpu_time"), jobs=Sum("njobs_success"))
        rolled = ProjectDay.objects.filter(project=project).aggregate(time=Sum("cpu_time"), jobs=Sum("njobs_success"))
        # 30 computers of 2 h and 1 job each.
        assert rolled == of_days == {"time": 60 * 3600 * MICRO, "jobs": 30}


def _until(is_over: threading.Event, action: Callable[[], object]) -> Callable[[], None]:
    def run() -> None:
        while not is_over.is_set():
            action()
        connection.close()

    return run


def test_two_processes_that_need_the_same_new_month_at_once_both_go_on(projects: list[Project]) -> None:
    month = dt.date(2031, 12, 1)

    def ensure() -> None:
        try:
            partitions.create_months(month, month)
        finally:
            connection.close()

    with ThreadPoolExecutor(4) as pool:
        for future in [pool.submit(ensure) for _ in range(4)]:
            future.result()
    with connection.cursor() as cursor:
        cursor.execute("DROP TABLE accounting_day_2031_12")


def test_a_revoked_key_is_refused_whatever_else_goes_on(alice: User, projects: list[Project]) -> None:
    computer = attach(alice)
    message = computer.request(time.time())
    ClientKey.objects.update(revoked_at=timezone.now())
    (replies,) = at_once([[message] * 6])
    assert {reply.error[0] for reply in replies} == {-155}
    assert HostLedger.objects.get(host=host_of(computer)).contacts == 1


def test_first_contacts_at_once_never_exceed_the_number_of_a_join_token(alice: User, projects: list[Project]) -> None:
    token, text = make_join_token(alice, group="lab", max_hosts=5, lifetime=dt.timedelta(days=1))
    messages = [
        make_computer(alice, f"pc-{number}", email=token.login, password=text).request(time.time())
        for number in range(THREADS)
    ]
    [replies] = at_once([messages])
    assert sorted(reply.error[0] != 0 for reply in replies) == [False] * 5 + [True] * (THREADS - 5)
    token.refresh_from_db()
    assert (token.joined_hosts, token.hosts.count(), ClientKey.objects.count()) == (5, 5, 5)


def test_changes_of_all_computers_and_their_reports_at_once_lose_nothing(alice: User, projects: list[Project]) -> None:
    computers = [attach(alice, f"pc-{number}") for number in range(8)]
    for computer in computers:
        sync(computer)
        hours_pass(computer, 10)
        work(computer, projects[0], 6)
    ids = [host_of(computer).pk for computer in computers]
    actions = (Action.SUSPEND, Action.RETIRE, Action.PLACE_WORK, Action.NO_NEW_WORK)
    ready = threading.Barrier(THREADS, timeout=60)

    def change(action: Action) -> int:
        try:
            ready.wait()
            return several.apply(alice, ids, action, project_id=None, group="", now=timezone.now())
        finally:
            connection.close()

    with ThreadPoolExecutor(THREADS) as pool:
        reports = [pool.submit(_post, computer.request(time.time()), ready) for computer in computers]
        changes = [pool.submit(change, action) for action in actions]
        assert [future.result().error for future in reports] == [(0, "")] * 8
        # A computer that reports is retired no more, and may be so again.
        assert [future.result() for future in changes] == [8, 8, 8, 8]
    assert [hours_credited(computer, projects[0]) for computer in computers] == [6.0] * 8
    rows = HostProject.objects.filter(host__in=ids, listed=True)
    assert rows.count() == 8 * len(projects)
    assert not rows.exclude(suspended=True, no_new_work=True).exists()
    assert set(Host.objects.filter(pk__in=ids).values_list("venue", flat=True)) == {"work"}


def test_places_of_a_join_token_are_taken_one_by_one_without_the_owners_lock(alice: User) -> None:
    token, _ = make_join_token(alice, group="lab", max_hosts=5, lifetime=dt.timedelta(days=1))
    ready = threading.Barrier(THREADS, timeout=60)

    def take() -> bool:
        try:
            ready.wait()
            return take_place(token.pk, timezone.now()) is not None
        finally:
            connection.close()

    with ThreadPoolExecutor(THREADS) as pool:
        taken = [future.result() for future in [pool.submit(take) for _ in range(THREADS)]]
    assert sum(taken) == 5


def test_tokens_made_at_once_stay_within_the_limit_of_the_account(alice: User, settings: Settings) -> None:
    settings.JOIN_TOKEN_HOSTS = 10
    ready = threading.Barrier(4, timeout=60)

    def make() -> bool:
        try:
            ready.wait()
            make_join_token(User.objects.get(pk=alice.pk), group="lab", max_hosts=4, lifetime=dt.timedelta(days=1))
        except JoinTokenRefused:
            return False
        else:
            return True
        finally:
            connection.close()

    with ThreadPoolExecutor(4) as pool:
        made = [future.result() for future in [pool.submit(make) for _ in range(4)]]
    # Two tokens for 4 computers fit into 10.
    assert sum(made) == JoinToken.objects.count() == 2
