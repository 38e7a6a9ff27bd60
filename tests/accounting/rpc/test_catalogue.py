"""The catalogue of projects is read by one thread at a time, and never lost or mixed up over it."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from accounting.models import Project
from accounting.rpc import catalogue
from tests.support.wait import join


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    catalogue.forget()
    yield
    catalogue.forget()


class SlowLoad:
    """Reading that waits until it is let go, and counts how often it was begun."""

    def __init__(self) -> None:
        self.begun = threading.Event()
        self.go_on = threading.Event()
        self.times = 0

    def __call__(self) -> catalogue.Catalogue:
        self.times += 1
        self.begun.set()
        assert self.go_on.wait(60)
        return catalogue.Catalogue({}, (), ())


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> SlowLoad:
    load = SlowLoad()
    monkeypatch.setattr(catalogue, "_load", load)
    return load


def in_threads(number: int, catalogues: list[catalogue.Catalogue]) -> list[threading.Thread]:
    threads = [threading.Thread(target=lambda: catalogues.append(catalogue.current())) for _ in range(number)]
    for thread in threads:
        thread.start()
    return threads


def test_at_the_start_one_thread_reads_for_all(slow: SlowLoad) -> None:
    catalogues: list[catalogue.Catalogue] = []
    threads = in_threads(8, catalogues)
    assert slow.begun.wait(60)
    slow.go_on.set()
    join(*threads)
    assert (slow.times, len(catalogues), len({id(each) for each in catalogues})) == (1, 8, 1)


def test_while_one_reads_anew_the_others_go_on_with_what_there_was(
    slow: SlowLoad, monkeypatch: pytest.MonkeyPatch
) -> None:
    slow.go_on.set()
    old = catalogue.current()
    slow.go_on.clear()
    slow.begun.clear()
    kept = catalogue.cache._kept
    assert kept is not None
    monkeypatch.setattr(catalogue.cache, "_kept", kept._replace(read_at=kept.read_at - catalogue.KEPT_SECS - 1))
    catalogues: list[catalogue.Catalogue] = []
    reader = in_threads(1, catalogues)
    assert slow.begun.wait(60)
    assert all(catalogue.current() is old for _ in range(5))
    slow.go_on.set()
    join(*reader)
    assert (slow.times, catalogues[0] is old) == (2, False)


def test_a_change_during_the_reading_is_not_missed(slow: SlowLoad) -> None:
    catalogues: list[catalogue.Catalogue] = []
    reader = in_threads(1, catalogues)
    assert slow.begun.wait(60)
    catalogue.forget()
    slow.go_on.set()
    join(*reader)
    catalogue.current()
    assert slow.times == 2


@pytest.mark.django_db
def test_a_reading_that_fails_stops_nobody(projects: list[Project], monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> catalogue.Catalogue:
        raise RuntimeError("no database")

    with monkeypatch.context() as patch:
        patch.setattr(catalogue, "_load", fail)
        with pytest.raises(RuntimeError):
            catalogue.current()
    assert set(catalogue.current().by_id) == {project.pk for project in projects}
