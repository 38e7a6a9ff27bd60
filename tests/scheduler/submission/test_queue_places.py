"""The position of a new result in the queue: drawn at random, over a window that grows with the queue."""

from __future__ import annotations

from itertools import pairwise

import pytest
from django.db import connection

from credit.models import App, Result, ServerState, Workunit
from scheduler.engine.submission.fair_queue import MIN_WINDOW
from scheduler.lifecycle import transitioner
from tests.support.credit_factories import NOON, make_app, make_result, make_workunit

pytestmark = pytest.mark.django_db


@pytest.fixture
def app(db: None) -> App:
    with connection.cursor() as cursor:
        cursor.execute("SELECT setseed(0.25)")
    return make_app()


def submit(app: App, prefix: str, nworkunits: int) -> None:
    """Workunits, and two results of each, which the transitioner makes in passes of a thousand."""
    Workunit.objects.bulk_create(
        Workunit(app=app, name=f"{prefix}{n}", fpops_est=1e13, fpops_bound=1e15, transition_at=NOON)
        for n in range(nworkunits)
    )
    transitioner.run(NOON)


def queue(app: App) -> list[tuple[int, int, int]]:
    """(place, id, workunit) of the results that wait, in the queue's order."""
    rows = Result.objects.filter(app=app, server_state=ServerState.UNSENT).values_list(
        "queue_shift", "pk", "workunit_id"
    )
    return sorted((shift + id_, id_, workunit) for shift, id_, workunit in rows)


def ntwice(workunits: list[int]) -> int:
    return len(workunits) - len(set(workunits))


def test_the_copies_of_a_workunit_are_anywhere_in_the_queue(app: App) -> None:
    submit(app, "w", 1000)
    workunits = [workunit for _, _, workunit in queue(app)]
    # By chance 1,000 pairs lie side by side 1,000 × 2 / 2,000 times, and in order of making all of them would.
    assert sum(one == other for one, other in pairwise(workunits)) <= 6
    # Of the first 40 results, 40 × 39 / 2 pairs, each is a workunit's two with a chance of 1 / 1,999: 0.4 are usual.
    assert ntwice(workunits[:40]) <= 3


def test_the_head_of_a_queue_that_was_filled_in_passes_is_of_all_of_them(app: App) -> None:
    for number in range(4):
        submit(app, f"{number}_", 250)
    ids = [id_ for _, id_, _ in queue(app)]
    first, last = min(ids), max(ids)
    # Of the first quarter of the queue, some were made in the last quarter, and the head is not the oldest one.
    early = ids[:500]
    assert sum(id_ > last - (last - first) / 4 for id_ in early) > 40
    assert early != sorted(early)


def test_nothing_new_comes_before_the_head_or_further_behind_it_than_the_queue_is_long(app: App) -> None:
    submit(app, "w", 300)
    old = queue(app)
    head, newest = old[0][0], max(id_ for _, id_, _ in old)
    submit(app, "x", 50)
    new = [(place, id_) for place, id_, _ in queue(app) if id_ > newest]
    length = newest - head
    assert all(head <= place < newest + 100 + max(length, MIN_WINDOW) for place, _ in new)
    # Half of the window lies before what is new.
    assert 25 <= sum(place <= newest for place, _ in new) <= 75


def test_a_short_queue_is_shuffled_over_a_few_hundred_places(app: App) -> None:
    submit(app, "w", 10)
    places = [place for place, _, _ in queue(app)]
    assert 100 < max(places) - min(places) < MIN_WINDOW + 20


def test_priorities_are_obeyed_and_each_has_a_queue_of_its_own(app: App) -> None:
    submit(app, "w", 300)
    urgent = make_workunit(app, priority=5, transition_at=NOON)
    transitioner.run(NOON)
    newest = Result.objects.exclude(workunit=urgent).latest("pk").pk
    # There is no queue of its priority yet, so its window begins where it is made.
    assert all(0 < r.pk + r.queue_shift - newest <= MIN_WINDOW + 2 for r in urgent.results.all())
    by_hand = make_result(make_workunit(app))
    assert by_hand.queue_shift == 0
