"""The account manager's figures, against rows in the database and counts of web processes."""

from __future__ import annotations

import datetime as dt

import pytest
from django.utils import timezone

from accounting import figures
from accounting.engine.states import NoteKind
from accounting.ledger.partitions import create_months
from accounting.models import Note, Project, ProjectTrouble
from portal.models import ClientKey, Host, User
from portal.ops import heartbeats, metrics
from tests.support.operating_figures import samples

DAY = dt.timedelta(days=1)


@pytest.mark.django_db
def test_the_figures_are_what_there_is(alice: User) -> None:
    now = timezone.now()
    for days in (0.5, 3, 20, 50):
        host = Host.objects.create(owner=alice, created_at=now - days * DAY, last_contact_at=now - days * DAY)
        Note.objects.create(
            host=host, kind=NoteKind.DROPPED, day=(now - days * DAY).date() if days > 1 else now.date(),
            first_at=now, last_at=now,
        )  # fmt: skip
    ClientKey.objects.create(user=alice, origin="attach", key_hash=b"a" * 32, hint="a")
    ClientKey.objects.create(user=alice, origin="attach", key_hash=b"b" * 32, hint="b", revoked_at=now)
    project = Project.objects.create(name="Alpha", master_url="https://alpha.example.org/", down_since=now)
    ProjectTrouble.objects.create(
        project=project, kind="no_work", since=now, last_at=now, volunteers=3, of_volunteers=4
    )
    create_months(now.date(), now.date() + dt.timedelta(days=92))
    readings = samples(figures.READINGS, now)
    assert [readings["am.active", within] for within in ("day", "week", "month")] == [1, 2, 3]
    assert readings["am.first_contacts", ""] == 1
    assert readings["am.capped", ""] == 1
    assert readings["am.keys", ""] == 1
    assert readings["am.limit_requests", ""] == 0
    assert readings["am.troubles", "no work"] == 1
    assert readings["am.troubles", "its server fails"] == 0
    assert readings["am.projects_down", ""] == 1
    assert readings["services.partitions", ""] >= 3
    rows = figures.read_troubles(now)
    assert rows[0][1:] == ["no work", "all types", {"at": now.isoformat()}, {"number": "3", "all": "4"}]


@pytest.mark.django_db
def test_rpcs_are_counted_over_all_web_processes() -> None:
    def totals() -> tuple[float, float]:
        readings = samples(figures.READINGS, timezone.now())
        return readings["am.rpcs", ""], readings.get(("am.refused", "-206"), 0)

    one, other = heartbeats.WebHeartbeat("web"), heartbeats.WebHeartbeat("web")
    one.beat()
    other.beat()
    before = totals()
    metrics.count_rpc("/rpc.php", 0, 0.01)
    metrics.count_rpc("/rpc.php", -206, 0.01)
    one.beat()
    one.beat()
    # Here both are the same process, so each tells its counts: in the field they count on their own.
    other.beat()
    after = totals()
    assert (after[0] - before[0], after[1] - before[1]) == (4, 2)
