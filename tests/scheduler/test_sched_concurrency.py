"""Twenty computers, four schedulers at once, lost and repeated requests: each result goes out once, and all work ends.

The schedulers are threads with connections of their own; the transitioner runs between and beside them.
"""

from __future__ import annotations

import datetime as dt
import random
import threading
from collections import Counter
from collections.abc import Callable

import pytest
from django.db import connections

from credit import validator
from credit.models import App, Result, ServerState, UserCredit, ValidateState, Workunit
from portal.models import User
from scheduler import catalogue, rpc, shelf, transitioner
from scheduler.models import HostRecord, Upload
from scheduler.protocol import parse_request
from tests.credit.factories import make_app, make_result, make_version, make_workunit
from tests.scheduler.clients import Computer, key_of, names, result_xml

pytestmark = pytest.mark.django_db(transaction=True)

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
    for thread in threads:
        thread.join(60)
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


def test_four_schedulers_never_send_a_result_twice_nor_two_copies_to_one_person() -> None:
    queue(60)
    computers = population(nusers=5)

    def work(number: int) -> None:
        draw = random.Random(number)
        for _ in range(3):
            for computer in computers[number::NSCHEDULERS]:
                computer.ask(0, 3, now=NOON, draw=draw)

    in_threads(work)
    sent = Counter(name for computer in computers for name in computer.jobs)
    assert max(sent.values()) == 1
    # 20 computers × 3 requests × 3 jobs are more than the 120 results: what one person must not get twice may be left.
    assert sum(sent.values()) >= 100
    assert Result.objects.filter(server_state=ServerState.IN_PROGRESS).count() == sum(sent.values())
    copies = Counter(Result.objects.exclude(user=None).values_list("workunit_id", "user_id"))
    assert max(copies.values()) == 1
    counted = sum(njobs for record in HostRecord.objects.all() for *_, njobs in record.jobs_of_day)
    # More if one person's two computers were after copies of one workunit at the same moment: docs/scheduler.md
    assert counted >= sum(sent.values())


@pytest.mark.parametrize("are_at_hand", [False, True])
def test_one_computer_that_asks_four_times_at_once_is_answered_one_after_the_other(are_at_hand: bool) -> None:
    queue(60)
    computer, other = population(nusers=2)[:2]
    computer.ask(now=NOON)
    if are_at_hand:
        # Then no request locks the computer before it writes.
        other.ask(0, 1, now=NOON)
        shelf.fill(catalogue.current())
    body = computer.request(0, 2, ncpus=4)
    got: list[list[str]] = []
    in_threads(lambda _: got.append(names(rpc.answer(parse_request(body), now=NOON).decode(), "result")))
    # Each request names no job, so whatever went out before is sent again, and nothing more.
    assert len({name for jobs in got for name in jobs}) == 2
    assert Result.objects.filter(server_state=ServerState.IN_PROGRESS, host=computer.hostid).count() == 2


def deliver(name: str, md5: str) -> None:
    result = Result.objects.get(name=name)
    Upload.objects.get_or_create(
        name=f"{name}_0",
        defaults={"result": result, "path": f"outputs/{name}_0", "nbytes": 9, "received_nbytes": 9, "md5": md5,
                  "completed_at": NOON},
    )  # fmt: skip


def step(computer: Computer, draw: random.Random, now: dt.datetime) -> None:
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
    body = computer.request(0, draw.choice([0, 1, 3]), results=reports * draw.choice([1, 1, 2]))
    reply = rpc.answer(parse_request(body), now=now, draw=draw).decode()
    if draw.random() < 0.2:
        # Once more the same, as if the reply had been lost: nothing counts twice.
        reply = rpc.answer(parse_request(body), now=now, draw=draw).decode()
    if draw.random() < 0.85:
        computer.read(reply)


def settle(app: App, now: dt.datetime) -> None:
    """What the background tasks do until nothing is left to do."""
    transitioner.run(now)
    while validator.run_pass(app.pk, now).nworkunits:
        transitioner.run(now)


@pytest.mark.parametrize("seed", range(2))
def test_any_order_of_events_ends_every_workunit_in_a_legal_state(seed: int) -> None:
    app = queue(20)
    computers = population(nusers=10)
    now = NOON
    for turn in range(8):
        now += dt.timedelta(hours=7)

        def work(number: int, now: dt.datetime = now, turn: int = turn) -> None:
            draw = random.Random(f"{seed} {turn} {number}")
            for computer in computers[number::NSCHEDULERS]:
                step(computer, draw, now)
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
