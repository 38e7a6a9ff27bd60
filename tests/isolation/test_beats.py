"""Beat processes that ask for the lease at once: at no time do two have it, and each due task is sent once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest
from django.db import connection

from portal.celery import app
from portal.models import BeatLease, PeriodicTask
from portal.periodic import broker_mark
from portal.periodic.lease import Lease
from tests.support.beat_messages import Beat, empty_broker, sent
from tests.support.interleavings import Scene, Work, try_all

pytestmark = pytest.mark.django_db(transaction=True)
# Once a day: nothing is due again meanwhile.
DAILY = {name: app.conf.beat_schedule[name] for name in ("erase", "tidy-up")}
SECS = 600.0
NTURNS = 4


@pytest.fixture(autouse=True)
def _broker() -> Iterator[None]:
    with empty_broker():
        yield


def expire(lease: Lease) -> None:
    BeatLease.objects.update(expires_at="2020-01-01T00:00:00Z")
    lease._held_until = 0.0


def nobody_has_it(leases: list[Lease]) -> None:
    BeatLease.objects.all().delete()


def the_first_one_has_it(leases: list[Lease]) -> None:
    nobody_has_it(leases)
    assert leases[0].ask()


def the_first_ones_has_expired(leases: list[Lease]) -> None:
    the_first_one_has_it(leases)
    expire(leases[0])


def holders() -> set[Any]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT token FROM portal_beatlease WHERE expires_at > clock_timestamp()")
        return {token for (token,) in cursor}


@pytest.mark.parametrize("nbeats", [2, 3])
@pytest.mark.parametrize("begin", [nobody_has_it, the_first_one_has_it, the_first_ones_has_expired])
def test_beats_take_and_renew_a_lease(begin: Callable[[list[Lease]], None], nbeats: int) -> None:
    def make() -> Scene:
        leases = [Lease(f"beat {number}", SECS) for number in range(nbeats)]
        PeriodicTask.objects.all().delete()
        PeriodicTask.objects.create(name="erase", due_at="2020-01-01T00:00:00Z")
        begin(leases)

        def work(mine: Lease) -> list[bool]:
            """Whether it had the lease each time, which nobody else has then."""
            had = []
            for step in (mine.ask, lambda: mine.reserve("erase"), mine.ask):
                had.append(step())
                assert not had[-1] or not [each for each in leases if each is not mine and each.secs_left() > 0]
            return had

        def check(outcomes: list[Any]) -> None:
            assert not [each for each in outcomes if isinstance(each, Exception)], outcomes
            # Who had it once had it to the end, and nobody else at any time.
            assert sorted(outcomes) == [[False] * 3] * (nbeats - 1) + [[True] * 3]
            assert holders() == {each.token for each in leases if each.secs_left() > 0}
            assert begin is not the_first_one_has_it or leases[0].secs_left() > 0

        return Scene([partial(work, each) for each in leases], check)

    try_all(make)


def test_a_lease_is_given_back_while_others_ask_for_it() -> None:
    def make() -> Scene:
        leases = [Lease(f"beat {number}", SECS) for number in range(3)]
        the_first_one_has_it(leases)

        def check(outcomes: list[Any]) -> None:
            had = [each for each in leases if each.secs_left() > 0]
            assert sum(outcomes[1:]) == len(had) <= 1, outcomes
            assert holders() == {each.token for each in had}

        return Scene([leases[0].release, leases[1].ask, leases[2].ask], check)

    try_all(make)


@pytest.mark.parametrize("nbeats", [2, 3])
@pytest.mark.parametrize("has_expired", [False, True])
def test_each_due_task_is_sent_once(nbeats: int, has_expired: bool) -> None:
    def make() -> Scene:
        BeatLease.objects.all().delete()
        PeriodicTask.objects.all().delete()
        app.control.purge()
        broker_mark.put()
        beats = [Beat(DAILY) for _ in range(nbeats)]
        beats[0].asks_and_sends(NTURNS)
        PeriodicTask.objects.update(due_at="2020-01-01T00:00:00Z", begun_at="2020-01-01T00:00:00Z")
        if has_expired:
            # The first one has slept: it still believes that both are due.
            expire(beats[0].lease)
        beats[0]._due = dict.fromkeys(DAILY, 0.0)

        def check(_: list[Any]) -> None:
            for each in beats:
                each.asks_and_sends(NTURNS)
            assert Counter(each.entry for each in sent()) == Counter(list(DAILY))
            assert PeriodicTask.objects.filter(sent_at=None).count() == 0
            assert [each.lease.secs_left() > 0 for each in beats].count(True) == 1

        works: list[Work] = [partial(each.asks_and_sends, NTURNS) for each in beats]
        return Scene(works, check)

    try_all(make)
