"""Real beat processes: one is killed, the next one paused, and too much waits."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import psycopg
import pytest
from kombu.exceptions import OperationalError
from redis import Redis

from portal import beat
from portal.celery import MAX_WAITING, app
from portal.databases.params import psycopg_params
from portal.ops import heartbeats
from tests.support.guarded_program import GuardedProgram
from tests.support.site_process import celery_beat, environment
from tests.support.wait import wait_until

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def queue() -> Iterator[Redis]:
    """The broker's, empty."""
    channel: Any = app.connection_for_read().default_channel
    app.control.purge()
    yield channel.client
    app.control.purge()


@pytest.fixture
def beats(tmp_path: Path, queue: Redis) -> Iterator[list[GuardedProgram]]:
    variables = environment(tmp_path, TRANSITIONER_EVERY_SECS="1")
    with ExitStack() as stack:
        yield [stack.enter_context(celery_beat(variables, tmp_path / f"beat{number}.log")) for number in range(3)]


def wait_for_more(queue: Redis, number: int = 1) -> None:
    """Until messages are sent that are not there yet."""
    nsent = queue.llen("celery")
    wait_until(lambda: queue.llen("celery") >= nsent + number, "the next tasks", 60)


def test_another_beat_takes_over_from_one_that_is_killed_or_paused(beats: list[GuardedProgram], queue: Redis) -> None:
    def is_ready() -> bool:
        return len([process for process in heartbeats.processes() if process.kind == "beat"]) == 3

    def is_another(*others: str) -> bool:
        return beat.holder() not in ("", *others)

    wait_until(is_ready, "three beats", 90)
    wait_for_more(queue)
    first = beat.holder()
    _of(beats, first).kill()
    wait_until(lambda: is_another(first), "the second beat", 60)
    wait_for_more(queue)
    second = beat.holder()
    _of(beats, second).pause()
    wait_until(lambda: is_another(first, second), "the third beat", 60)
    wait_for_more(queue)
    third = beat.holder()
    _of(beats, second).pause(resume=True)
    wait_for_more(queue, 5)
    assert beat.holder() == third
    messages = [json.loads(text)["headers"] for text in queue.lrange("celery", 0, -1)]
    # No worker compares a time in them with its own clock, and each says how often its task is due.
    assert {(message["expires"], message["eta"]) for message in messages} == {(None, None)}
    assert {message["every_secs"] for message in messages if message["task"] == "scheduler.tasks.transition"} == {1}


def _of(beats: list[GuardedProgram], name: str) -> GuardedProgram:
    """The program of the process with this name, which ends with its number."""
    pid = int(name.rpartition(":")[2])
    return next(each for each in beats if pid in each.pids())


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch) -> Iterator[psycopg.Connection[Any]]:
    """For a beat of this process, whose child only sleeps."""
    monkeypatch.setattr(beat, "_COMMAND", ("sleep", "60"))
    monkeypatch.setattr(beat, "LOOK_SECS", 0.0)
    with psycopg.connect(**psycopg_params(), autocommit=True) as made:
        yield made


def commands_until_the_clock_is_set(
    session: psycopg.Connection[Any], monkeypatch: pytest.MonkeyPatch, ahead_secs: list[float]
) -> list[str]:
    """What is done with the child while the clock is this far ahead at each look."""
    done: list[str] = []
    course = iter(ahead_secs)
    start, end = subprocess.Popen, beat._end

    def note_start(command: list[str]) -> Any:
        done.append("start")
        return start(command)

    def note_end(child: Any) -> None:
        done.extend(["end"] if child else [])
        end(child)

    monkeypatch.setattr(subprocess, "Popen", note_start)
    monkeypatch.setattr(beat, "_end", note_end)
    monkeypatch.setattr(beat, "ahead_secs", lambda _session: next(course))
    beat._send(session)
    return done


@pytest.mark.system
@pytest.mark.parametrize("step_secs", [5.5, -5.5])
def test_a_step_of_the_clock_ends_beat(
    session: psycopg.Connection[Any], monkeypatch: pytest.MonkeyPatch, queue: Redis, step_secs: float
) -> None:
    # A clock that is wrong all the time, or drifts a little, does no harm.
    course = [100.0, 100.0, 104.0, 97.0, 100 + step_secs]
    assert commands_until_the_clock_is_set(session, monkeypatch, course) == ["start", "end"]


@pytest.mark.system
def test_beat_pauses_while_too_much_waits(
    session: psycopg.Connection[Any], monkeypatch: pytest.MonkeyPatch, queue: Redis
) -> None:
    queue.rpush("celery", *["{}"] * (MAX_WAITING + 1))
    assert commands_until_the_clock_is_set(session, monkeypatch, [0.0, 0.0, 9.0]) == []


@pytest.mark.system
def test_beat_waits_by_itself_for_a_broker_that_is_away(
    session: psycopg.Connection[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_queue: str) -> bool:
        raise OperationalError("no broker")

    monkeypatch.setattr(beat, "is_full", refuse)
    assert commands_until_the_clock_is_set(session, monkeypatch, [0.0, 0.0, 9.0]) == ["start", "end"]
