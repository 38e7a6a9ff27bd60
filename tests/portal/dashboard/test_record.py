"""Figures are taken, thinned out and kept once; a reading that fails leaves the others."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator

import pytest
from django.db import connection

from portal.dashboard import record, registry, thinning
from portal.dashboard.registry import Panel, Sample
from portal.models import OperatingFigure, RequestedWork, User
from portal.ops import heartbeats

NOON = dt.datetime(2026, 11, 20, 12, tzinfo=dt.UTC)


def value(name: str, label: str = "") -> float:
    return OperatingFigure.objects.filter(name=name, label=label).latest("taken_at").value


@pytest.mark.django_db
def test_the_sites_own_figures_are_what_the_site_has(running: None, alice: User) -> None:
    asked_at = NOON - dt.timedelta(hours=7)
    RequestedWork.objects.create(user=alice, kind="run", subject=1, asked_at=asked_at)
    record.take_all(NOON)
    assert value("services.web", "web") == 1
    assert value("services.workers", "requested") == 1
    assert value("services.requested_waiting") == 1
    assert value("services.requested_oldest") == 7 * 3600
    assert value("services.task_secs", "portal.tasks.tidy_up") == 0.5
    assert value("services.task_failures", "portal.tasks.tidy_up") == 0
    assert value("services.database_size") > 1e6
    assert 0 < value("services.database_sessions") <= 100
    assert value("services.valkey_memory") > 0
    assert 0 <= OperatingFigure.objects.filter(name="services.free_share").latest("taken_at").value <= 100


@pytest.mark.django_db
def test_a_queue_without_a_worker_counts_none(running: None) -> None:
    heartbeats.tell("worker", "celery@a", ["celery"])
    record.take_all(NOON)
    assert value("services.workers", "requested") == 0


@pytest.mark.django_db
def test_processes_that_serve_pages_alone_do_not_stand_for_those_of_clients() -> None:
    heartbeats.tell("pages", "a:1")
    record.take_all(NOON)
    assert (value("services.web", "web"), value("services.web", "pages")) == (0, 1)


@pytest.mark.django_db
def test_a_repeat_changes_nothing(running: None) -> None:
    record.take_all(NOON)
    count = OperatingFigure.objects.count()
    record.take_all(NOON)
    assert OperatingFigure.objects.count() == count > 10


@pytest.mark.django_db
def test_a_reading_that_fails_leaves_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    def take(now: dt.datetime) -> Iterator[Sample]:
        yield Sample("x.first", 1)
        raise RuntimeError("no such table")

    fine = [Sample("x.second", 2), Sample("x.nan", float("nan"))]
    monkeypatch.setattr(registry, "panels", lambda: {"services": Panel(readings=[take, lambda now: fine])})
    # The task fails, so that the dashboard says so.
    with pytest.raises(record.FiguresNotTaken, match="services: RuntimeError"):
        record.take_all(NOON)
    assert list(OperatingFigure.objects.values_list("name", "value")) == [("x.second", 2.0)]


@pytest.mark.django_db
def test_figures_are_taken_outside_of_transactions(monkeypatch: pytest.MonkeyPatch) -> None:
    """A reading asks Valkey and adds results up, hour by hour: what it has done must stay, and lock nothing longer."""
    depths = []

    def take(now: dt.datetime) -> Iterator[Sample]:
        depths.append(len(connection.savepoint_ids))
        yield Sample("x.first", 1)

    before = len(connection.savepoint_ids)
    monkeypatch.setattr(registry, "panels", lambda: {"services": Panel(readings=[take])})
    record.take_all(NOON)
    assert depths == [before]


@pytest.mark.django_db
def test_old_figures_become_hourly_and_then_daily() -> None:
    midnight = NOON.replace(hour=0)

    def take(first: dt.datetime, hours: int) -> None:
        OperatingFigure.objects.bulk_create(
            OperatingFigure(name="x", label=label, taken_at=first + dt.timedelta(minutes=10 * place), value=place)
            for label in ("a", "b")
            for place in range(6 * hours)
        )

    take(midnight - dt.timedelta(days=2), 2)  # younger than three days
    take(midnight - dt.timedelta(days=10), 2)
    take(midnight - dt.timedelta(days=40), 30)  # more than a day
    # Of each label: of two hours all but the last of each, 2 × 5; of a day and six hours all but two, 180 - 2.
    assert thinning.thin(NOON, batch=7) == 2 * (10 + 178)
    kept = OperatingFigure.objects.filter(label="a").order_by("taken_at").values_list("value", flat=True)
    # 23:50 of the first day is place 143, then the last; 00:50 and 01:50 are places 5 and 11; then all twelve.
    assert list(kept) == [143, 179, 5, 11, *range(12)]
    assert thinning.thin(NOON) == 0


def test_figures_have_names_of_their_own_and_lead_to_pages_that_there_are() -> None:
    from portal.dashboard.reads import address

    figures = [figure for panel in registry.panels().values() for figure in panel.figures]
    assert len({figure.name for figure in figures}) == len(figures) > 40
    assert [figure.link for figure in figures if figure.link and not address(figure.link)] == []
