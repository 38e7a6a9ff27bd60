"""Twenty computers, four schedulers at once, lost and repeated requests: each result goes out once, and all work ends.

The schedulers are threads with connections of their own, and answer their computers one after the other or at once, on
an event loop each; the transitioner runs between and beside them.
"""

from __future__ import annotations

import datetime as dt
import random
import threading
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connections, transaction

from credit.models import App, Outcome, Result, ServerState, UserCredit, ValidateState, Workunit
from credit.validator import passes
from portal.clients.effects import Steps
from portal.models import User
from scheduler.lifecycle import transitioner
from scheduler.models import HostRecord, Upload
from scheduler.programs import catalogue
from scheduler.rpc import answer as rpc_answer
from scheduler.wire.requests import parse_request
from tests.support.credit_factories import make_app, make_result, make_version, make_workunit
from tests.support.lock_waits import meanwhile
from tests.support.scheduler_clients import Computer, at_once, fill_ready_jobs, key_of, names, one_by_one, result_xml
from tests.support.wait import join

pytestmark = pytest.mark.django_db(transaction=True)
both_drivers = pytest.mark.parametrize("run", [one_by_one, at_once])
Run = Callable[..., list[Any]]

NOON = dt.datetime(2026, 11, 20, 12, tzinfo=dt.UTC)
NCOMPUTERS, NSCHEDULERS = 20, 4


def in_threads(work: Callable[[int], None]) -> None:
    failures: list[BaseException] = []

    def run(number: int) -> None:
        try:
            work(number)
        except BaseException as error:
            failures.append(error)
        finally:
            connections.close_all()

    threads = [threading.Thread(target=run, args=(number,)) for number in range(NSCHEDULERS)]
    for thread in threads:
        thread.start()
    join(*threads)
    if failures:
        raise failures[0]


def population(nusers: int) -> list[Computer]:
    catalogue.forget()
    users = [User.objects.create_user(f"cruncher{n}@example.org", "secret") for n in range(nusers)]
    return [Computer(key_of(users[n % nusers])) for n in range(NCOMPUTERS)]


def queue(nworkunits: int, **fields: int) -> App:
    app = make_app(max_jobs_per_day_init=1000)
    make_version(app)
    said = {"fpops_est": 7.2e12, "output_files": [{"open_name": "out", "max_nbytes": 100}], "delay_bound_secs": 86_400}
    for _ in range(nworkunits):
        workunit = make_workunit(app, **said, **fields)
        for _ in range(2):
            make_result(workunit)
    return app


@both_drivers
def test_four_schedulers_never_send_a_result_twice_nor_two_copies_to_one_person(run: Run) -> None:
    queue(60)
    computers = population(nusers=5)

    def work(number: int) -> None:
        draw = random.Random(number)
        for _ in range(3):
            replies = run(*[each.asks(0, 3, now=NOON, draw=draw) for each in computers[number::NSCHEDULERS]])
            assert all(isinstance(reply, str) for reply in replies), replies

    in_threads(work)
    sent = Counter(name for computer in computers for name in computer.jobs)
    assert max(sent.values()) == 1
    # 20 computers × 3 requests × 3 jobs are more than the 120 results: what one person must not get twice may be left.
    assert sum(sent.values()) >= 100
    assert Result.objects.filter(server_state=ServerState.IN_PROGRESS).count() == sum(sent.values())
    copies = Counter(Result.objects.exclude(user=None).values_list("workunit_id", "user_id"))
    assert max(copies.values()) == 1
    counted = sum(njobs for record in HostRecord.objects.all() for *_, njobs in record.jobs_of_day)
    # More if one person's two computers were after copies of one workunit at once (docs/explanation/scheduler.md)
    assert counted >= sum(sent.values())


@both_drivers
@pytest.mark.parametrize("are_ready", [False, True])
def test_one_computer_that_asks_many_times_at_once_is_answered_one_after_the_other(run: Run, are_ready: bool) -> None:
    queue(60)
    computer, other = population(nusers=2)[:2]
    computer.ask(now=NOON)
    if are_ready:
        # Then no request locks the computer before it writes.
        other.ask(0, 1, now=NOON)
        fill_ready_jobs()
    request = parse_request(computer.request(0, 2, ncpus=4))
    got: list[list[str]] = []

    def work(_: int) -> None:
        got.extend(
            names(reply.decode(), "result") for reply in run(*[rpc_answer.answer(request, now=NOON) for _ in range(3)])
        )

    in_threads(work)
    assert len(got) == 3 * NSCHEDULERS
    # Each request names no job, so whatever went out before is sent again, and nothing more.
    assert len({name for jobs in got for name in jobs}) == 2
    assert Result.objects.filter(server_state=ServerState.IN_PROGRESS, host=computer.hostid).count() == 2


def deliver(name: str, md5: str) -> None:
    result = Result.objects.get(name=name)
    Upload.objects.get_or_create(
        name=f"{name}_0",
        defaults={"result": result, "path": f"outputs/{name}_0", "nbytes": 9, "md5": md5, "completed_at": NOON},
    )


def step(computer: Computer, draw: random.Random, now: dt.datetime) -> list[Steps[None]]:
    """Anything that a client may do: report some jobs well or badly, twice or late; ask; lose the reply."""
    reports = ""
    for name in list(computer.jobs):
        fate = draw.random()
        if fate < 0.45:
            deliver(name, "a" * 32)
            reports += result_xml(name, files={f"{name}_0": "a" * 32})
        elif fate < 0.55:
            reports += result_xml(name, state=3, exit_status=1)
        elif fate < 0.6:
            # Without its output
            reports += result_xml(name)
    if draw.random() < 0.1:
        reports += result_xml("unheard_of")
    request = parse_request(computer.request(0, draw.choice([0, 1, 3]), results=reports * draw.choice([1, 1, 2])))

    is_lost = draw.random() < 0.15

    async def asks(*, is_last: bool) -> None:
        reply = await rpc_answer.answer(request, now=now, draw=draw)
        if is_last and not is_lost:
            computer.read(reply.decode())

    # Some send the same once more, as if the reply had been lost: nothing counts twice.
    return [asks(is_last=False), asks(is_last=True)] if draw.random() < 0.2 else [asks(is_last=True)]


def test_the_last_two_results_of_a_workunit_reported_at_once_are_validated_together() -> None:
    app = queue(1)
    first, second = population(nusers=2)[:2]
    for computer in (first, second):
        computer.ask(0, 1, now=NOON)
        deliver(computer.jobs[0], "a" * 32)
    later = NOON + dt.timedelta(hours=1)

    def report(computer: Computer) -> str:
        [name] = computer.jobs
        return computer.ask(results=result_xml(name, files={f"{name}_0": "a" * 32}), now=later)

    with meanwhile(lambda: report(second)) as begin:
        with transaction.atomic():
            report(first)
            reply = begin()
            # The second one waits for the workunit, so that it sees what the first one has woken.
            assert not reply.done()
        assert "<result_ack>" in reply.result()
    assert Workunit.objects.get().transition_at == later
    settle(app, later)
    results = Result.objects.values_list("server_state", "outcome", "validate_state")
    assert list(results) == [(ServerState.OVER, Outcome.SUCCESS, ValidateState.VALID)] * 2
    assert Workunit.objects.get().canonical_result is not None


def settle(app: App, now: dt.datetime) -> None:
    """What the background tasks do until nothing is left to do."""
    transitioner.run(now)
    while passes.run_pass(app.pk, now).nworkunits:
        transitioner.run(now)


@both_drivers
@pytest.mark.parametrize("seed", range(2))
def test_any_order_of_events_ends_every_workunit_in_a_legal_state(run: Run, seed: int) -> None:
    app = queue(20)
    computers = population(nusers=10)
    now = NOON
    for turn in range(8):
        now += dt.timedelta(hours=7)

        def work(number: int, now: dt.datetime = now, turn: int = turn) -> None:
            draw = random.Random(f"{seed} {turn} {number}")
            steps = [each for computer in computers[number::NSCHEDULERS] for each in step(computer, draw, now)]
            assert not any(run(*steps))
            transitioner.run_pass(now)

        in_threads(work)
        settle(app, now)
    # Then jobs are fetched and never reported: what is open comes to its end by deadlines and limits.
    while Workunit.objects.filter(canonical_result=None, error_mask=0).exists():
        assert now < NOON + dt.timedelta(days=100)
        now += dt.timedelta(days=2)
        for computer in computers:
            if Result.objects.filter(server_state=ServerState.UNSENT).exists():
                computer.ask(0, 4, now=now)
        settle(app, now)
    settle(app, now + dt.timedelta(days=2))
    assert not Result.objects.exclude(server_state=ServerState.OVER).exists()
    for workunit in Workunit.objects.exclude(canonical_result=None):
        valid = workunit.results.filter(validate_state=ValidateState.VALID)
        assert workunit.canonical_result in valid
        assert valid.count() >= workunit.min_quorum
    assert not Result.objects.exclude(validate_state=ValidateState.VALID).exclude(granted_credit=None).exists()
    copies = Counter(Result.objects.exclude(user=None).values_list("workunit_id", "user_id"))
    assert max(copies.values()) == 1
    # Nothing was granted twice: what people have is what their results were granted.
    granted: dict[int, float] = {}
    for user_id, credit in Result.objects.exclude(granted_credit=None).values_list("user_id", "granted_credit"):
        granted[user_id or 0] = granted.get(user_id or 0, 0.0) + (credit or 0.0)
    totals = dict(UserCredit.objects.filter(total_credit__gt=0).values_list("user_id", "total_credit"))
    assert totals == pytest.approx(granted)
    assert totals
