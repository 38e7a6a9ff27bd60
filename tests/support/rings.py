"""The three rings of tests, each told by what a test uses, and what a unit test must not do.

- ``unit``: pure, or one transaction that is rolled back.
- ``system``: commits, has several connections, or starts processes.
- ``journeys``: a real browser or a real BOINC client.

A test that starts a process without a fixture that tells so is marked ``system`` by hand: a unit test that does, or
that commits, fails.
"""

from __future__ import annotations

import sys
from collections.abc import Generator
from typing import Any, Final

import psycopg
import pytest
from django.db.backends.base.base import BaseDatabaseWrapper

NAMES: Final = ("unit", "system", "journeys")
_OF_JOURNEYS: Final = frozenset({"browser", "boinc_client", "chromium"})
_OF_SYSTEMS: Final = frozenset({"transactional_db", "s3_server", "nginx"})
_OF_NIGHTS: Final = frozenset({"nginx", "mariadb"})
"""What needs a system package of its own beyond Chromium and the BOINC client; others are marked by hand."""
_STARTS: Final = frozenset({"subprocess.Popen", "os.fork", "os.forkpty", "os.posix_spawn"})


class _Watch:
    """What has been done in this process that only other rings may do."""

    def __init__(self) -> None:
        self.nprocesses = 0
        self.is_unit = False
        self.done: list[str] = []

    def note_event(self, event: str, arguments: tuple[object, ...]) -> None:
        if event in _STARTS:
            self.nprocesses += 1
            self.note(f"starts a process ({event} {str(arguments[:1])[:80]})")

    def note(self, what: str) -> None:
        if self.is_unit:
            self.done.append(what)


watch: Final = _Watch()


def ring_of(item: pytest.Item) -> str:
    fixtures = frozenset(getattr(item, "fixturenames", ()))
    if fixtures & _OF_JOURNEYS or item.get_closest_marker("journeys"):
        return "journeys"
    database = item.get_closest_marker("django_db")
    commits = database is not None and database.kwargs.get("transaction")
    return "system" if commits or fixtures & _OF_SYSTEMS or item.get_closest_marker("system") else "unit"


def pytest_configure(config: pytest.Config) -> None:
    sys.addaudithook(watch.note_event)
    commit, connect = BaseDatabaseWrapper.commit, psycopg.AsyncConnection.connect

    def noted_commit(self: BaseDatabaseWrapper) -> None:
        watch.note("commits")
        commit(self)

    async def noted_connect(*arguments: Any, **more: Any) -> Any:
        watch.note("opens a second connection")
        return await connect(*arguments, **more)

    patch = pytest.MonkeyPatch()
    config.add_cleanup(patch.undo)
    patch.setattr(BaseDatabaseWrapper, "commit", noted_commit)
    patch.setattr(psycopg.AsyncConnection, "connect", noted_connect)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        ring = ring_of(item)
        if item.get_closest_marker(ring) is None:
            item.add_marker(ring)
        if _OF_NIGHTS & frozenset(getattr(item, "fixturenames", ())):
            item.add_marker("nightly")


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(
    fixturedef: pytest.FixtureDef[object], request: pytest.FixtureRequest
) -> Generator[None, object, object]:
    """A fixture of one test is watched as the test is; those of a session may start what they like."""
    was_unit = watch.is_unit
    # One of a session may be asked for by one of a test.
    watch.is_unit = fixturedef.scope == "function" and request.node.get_closest_marker("unit") is not None
    try:
        return (yield)
    finally:
        watch.is_unit = was_unit


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    watch.is_unit = item.get_closest_marker("unit") is not None
    try:
        result = yield
    finally:
        watch.is_unit = False
        done, watch.done = watch.done, []
    if done:
        pytest.fail(f"a unit test {', '.join(dict.fromkeys(done))}: mark it `system`", pytrace=False)
    return result
