"""Three real beat processes; one is killed and the next one paused: nothing is sent twice, or skipped for long."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from portal.celery import app
from portal.ops import heartbeats
from portal.periodic import broker_mark
from portal.periodic.lease import last_holder
from tests.support.beat_messages import client, sent
from tests.support.guarded_program import GuardedProgram
from tests.support.site_process import celery_beat, environment
from tests.support.wait import wait_until

pytestmark = pytest.mark.django_db(transaction=True)
LEASE_SECS = 3.0
# As the settings below have it.
TRANSITION_SECS, FINISH_SECS = 1.0, 3.0
# A process that waits for the lease asks every two seconds, and this machine may be busy.
TAKEOVER_SECS = LEASE_SECS + 2.0
BUSY_SECS = 8.0


@pytest.fixture
def beats(tmp_path: Path) -> Iterator[list[GuardedProgram]]:
    app.control.purge()
    variables = environment(tmp_path, BEAT_LEASE_SECS=str(int(LEASE_SECS)), TRANSITIONER_EVERY_SECS="1")
    with ExitStack() as stack:
        yield [stack.enter_context(celery_beat(variables, tmp_path / f"beat{number}.log")) for number in range(3)]
    app.control.purge()
    client().delete(broker_mark.MARK)


def holder() -> str:
    """The process that has the lease now."""
    found = last_holder()
    return found.name if found is not None and found.left_secs > 0 else ""


def test_another_beat_takes_over_from_one_that_is_killed_or_paused(beats: list[GuardedProgram]) -> None:
    def is_ready() -> bool:
        return len([each for each in heartbeats.processes() if each.kind == "beat"]) == 3

    def sends(number: int) -> bool:
        return len(sent("transition")) > number

    wait_until(is_ready, "three beats", 60)
    wait_until(lambda: sends(1), "the first tasks", 30)
    first = holder()
    _of(beats, first).kill()
    wait_until(lambda: holder() not in ("", first), "the second beat", 30)
    second = holder()
    number = len(sent("transition"))
    wait_until(lambda: sends(number), "its tasks", 30)
    _of(beats, second).pause()
    wait_until(lambda: holder() not in ("", second), "the third beat", 30)
    third = holder()
    number = len(sent("transition"))
    wait_until(lambda: sends(number), "its tasks", 30)
    _of(beats, second).pause(resume=True)
    number = len(sent("transition"))
    # It asks for the lease within two seconds, and does not get it.
    wait_until(lambda: sends(number + 3), "more tasks", 30)
    assert holder() == third

    for entry, interval_secs in (("transition", TRANSITION_SECS), ("finish", FINISH_SECS)):
        gaps = [(later.at - each.at).total_seconds() for each, later in itertools.pairwise(sent(entry))]
        assert min(gaps) > 0.8 * interval_secs
        assert max(gaps) < interval_secs + TAKEOVER_SECS + BUSY_SECS
    # What is due once a day was sent by none of them.
    assert {each.entry for each in sent()} <= {"transition", "finish", "delete-files", "start-validators"}


def _of(beats: list[GuardedProgram], name: str) -> GuardedProgram:
    """The program of the process with this name, which ends with its number."""
    pid = int(name.rpartition(":")[2])
    return next(beat for beat in beats if pid in beat.pids())
