"""The history of one app of the site's own project: from its tasks, before and after they are archived."""

from __future__ import annotations

import datetime as dt
import json
from typing import Any

import pytest
from django.test import Client

from accounting.account_data import erasure
from accounting.computers.merge import merge
from accounting.exchange import exports
from accounting.exchange.day_rows import DayRange
from accounting.models import DataCopy, Project
from credit.models import (
    App,
    ArchivedDay,
    AssimilateState,
    FileDeleteState,
    Outcome,
    ProcessorType,
    ServerState,
    ValidateState,
    Workunit,
    WorkunitError,
)
from portal.models import Host, User
from portal.requested_work import queue
from scheduler.lifecycle import purge
from scheduler.models import ArchivedTask
from tests.support.accounting_factories import credit, make_host, make_project
from tests.support.credit_factories import NOON, make_app, make_success, make_workunit
from tests.support.page_reader import Page, page_of
from tools.benchmarks.harness.statements import statements

pytestmark = pytest.mark.django_db

DAY = dt.timedelta(days=1)
RANGE = f"from={NOON - 3 * DAY:%Y-%m-%d}&to={NOON + DAY:%Y-%m-%d}"
VALID: dict[str, Any] = {"validate_state": ValidateState.VALID, "granted_at": NOON + DAY}
FAILED: dict[str, Any] = {"outcome": Outcome.CLIENT_ERROR, "elapsed_secs": 100.0, "exit_status": 1}
ON_GPU: dict[str, Any] = {"processor_type": ProcessorType.NVIDIA}


@pytest.fixture
def own(studio: Host) -> Project:
    """The site's own project, for which Alice's computer has an estimate of another amount on the day of `NOON`."""
    project = make_project("Own project", is_own=True)
    credit(studio, project, "2026-11-20", (77_000_000, 0, 1_000_000, 0, 9, 0))
    return project


@pytest.fixture
def alpine(own: Project) -> App:
    return make_app()


def task(app: App, host: Host, **fields: Any) -> Workunit:
    """A task that was reported on the day of `NOON` after 3,000 s; all that can be purged with it is done."""
    workunit = make_workunit(app)
    result = make_success(workunit, host, **fields)
    is_valid = result.validate_state == ValidateState.VALID
    Workunit.objects.filter(pk=workunit.pk).update(
        canonical_result=result if is_valid else None,
        error_mask=0 if is_valid else WorkunitError.TOO_MANY_ERROR_RESULTS,
        assimilate_state=AssimilateState.DONE,
        assimilated_at=NOON,
        file_delete_state=FileDeleteState.DONE,
        transition_at=None,
    )
    return workunit


@pytest.fixture
def tasks(alpine: App, studio: Host, bob: User) -> list[Workunit]:
    """Of Alice's computer: 12.5 credits on a CPU, 30 on a GPU, a failure. Another app's, and one of Bob's computer."""
    other_app = make_app("birch")
    bobs = make_host(bob, "bobs")
    return [
        task(alpine, studio, granted_credit=12.5, **VALID),
        task(alpine, studio, granted_credit=30.0, **VALID, **ON_GPU),
        task(alpine, studio, **FAILED),
        task(other_app, studio, granted_credit=1000.0, **VALID),
        task(alpine, bobs, granted_credit=500.0, **VALID),
    ]


def archive() -> None:
    purge.run(NOON + 400 * DAY)


def shown(client: Client, query: str) -> tuple[dict[str, str | None], Page]:
    """The sums of the page's table, and the page."""
    reply = client.get(f"/history/?{RANGE}&{query}")
    assert reply.status_code == 200
    content = Page(reply.content.decode())
    kinds = ("ec", "cpu_time", "gpu_time", "njobs_success", "njobs_error")
    cells = {kind: content.one("td", within="tfoot", data_kind=kind).attributes for kind in kinds}
    return {kind: cell.get("data-micro") or cell.get("data-count") for kind, cell in cells.items()}, content


# 12.5 + 30 credits; 3,000 + 100 s on CPUs, 3,000 s on a GPU; two succeeded, one failed
ALPINE = {
    "ec": "42500000",
    "cpu_time": "3100000000",
    "gpu_time": "3000000000",
    "njobs_success": "2",
    "njobs_error": "1",
}


@pytest.mark.parametrize("is_archived", [False, True])
def test_an_app_shows_what_its_tasks_were_granted(
    signed_in: Client, tasks: list[Workunit], alpine: App, is_archived: bool
) -> None:
    if is_archived:
        archive()
        assert not Workunit.objects.exists()
    sums, content = shown(signed_in, f"app={alpine.pk}")
    assert sums == ALPINE
    assert "Granted credit per day" in content.words


@pytest.mark.parametrize(
    ("query", "credit_micro"),
    [
        ("processor=gpu", "30000000"),
        ("processor=cpu", "12500000"),
        ("by=computer", "42500000"),
        ("by=processor", "42500000"),
    ],
)
def test_other_choices_hold_beside_an_app(
    signed_in: Client, tasks: list[Workunit], alpine: App, query: str, credit_micro: str
) -> None:
    assert shown(signed_in, f"app={alpine.pk}&{query}")[0]["ec"] == credit_micro
    archive()
    assert shown(signed_in, f"app={alpine.pk}&{query}")[0]["ec"] == credit_micro
    assert shown(signed_in, f"app={alpine.pk}&{query}&step=month")[0]["ec"] == credit_micro


def test_without_an_app_the_estimates_stay(signed_in: Client, tasks: list[Workunit]) -> None:
    assert shown(signed_in, "")[0]["ec"] == "77000000"


def test_a_foreign_project_beside_an_app_is_told(
    signed_in: Client, tasks: list[Workunit], alpine: App, studio: Host
) -> None:
    foreign = make_project("Foreign")
    credit(studio, foreign, "2026-11-20", (1_000_000, 0, 0, 0, 0, 0))
    sums, content = shown(signed_in, f"app={alpine.pk}&project={foreign.pk}")
    assert sums == ALPINE and "Only that project is shown" in content.words
    assert "is not an app of this site" in shown(signed_in, "app=x")[1].words


def test_apps_are_offered_to_who_computes_for_the_own_project(signed_in: Client, studio: Host, settings: Any) -> None:
    make_app()
    credit(studio, make_project("Foreign"), "2026-11-20", (1_000_000, 0, 0, 0, 0, 0))
    assert not shown(signed_in, "")[1].all("select", id="app")
    credit(studio, make_project("Own", is_own=True), "2026-11-20", (1, 0, 0, 0, 0, 0))
    assert shown(signed_in, "")[1].all("select", id="app")


def test_the_statements_do_not_grow_with_the_tasks(
    signed_in: Client, tasks: list[Workunit], alpine: App, alice: User, studio: Host
) -> None:
    shown(signed_in, f"app={alpine.pk}")
    few = statements(lambda: shown(signed_in, f"app={alpine.pk}"))
    for _ in range(5):
        task(alpine, studio, granted_credit=1.0, **VALID)
    archive()
    task(alpine, make_host(alice, "second"), granted_credit=1.0, **VALID)
    assert statements(lambda: shown(signed_in, f"app={alpine.pk}")) == few


# --- the archive's days ------------------------------------------------------------------------------------


def totals(user: User) -> list[float]:
    rows = ArchivedDay.objects.filter(user=user)
    return [sum(row.credit for row in rows), sum(row.nsucceeded for row in rows), sum(row.nfailed for row in rows)]


def test_tasks_are_counted_once_however_often_the_purge_runs(tasks: list[Workunit], alice: User, bob: User) -> None:
    for _ in range(2):
        archive()
    assert totals(alice) == [1042.5, 3, 1] and totals(bob) == [500, 1, 0]


def test_what_came_with_a_project_that_moved_here_is_counted_with_the_next_purge(
    tasks: list[Workunit], alice: User
) -> None:
    archive()
    ArchivedDay.objects.all().delete()
    ArchivedTask.objects.update(is_counted=False)
    purge.run(NOON)
    purge.run(NOON)
    assert totals(alice) == [1042.5, 3, 1]


def test_tasks_of_one_day_are_added_to_those_that_were_archived_before(
    tasks: list[Workunit], alpine: App, alice: User, studio: Host
) -> None:
    archive()
    task(alpine, studio, granted_credit=0.5, **VALID)
    archive()
    assert totals(alice) == [1043, 4, 1]
    assert ArchivedDay.objects.filter(user=alice, app=alpine, on_gpu=False, day=NOON.date() + DAY).count() == 1


def test_a_day_beyond_what_a_bigint_holds_has_the_most_that_is_shown(
    signed_in: Client, tasks: list[Workunit], alpine: App, alice: User
) -> None:
    archive()
    # 1e13 credits are 1e19 of 1e-6 credits; a bigint ends at 9.2e18, and 9e18 is shown.
    ArchivedDay.objects.filter(user=alice, app=alpine, on_gpu=False, credit__gt=0).update(credit=1e13)
    assert shown(signed_in, f"app={alpine.pk}&processor=cpu")[0]["ec"] == "9000000000000000000"


def test_days_follow_a_merged_computer(tasks: list[Workunit], alpine: App, alice: User, studio: Host) -> None:
    old = make_host(alice, "attic", "2026-01-01", "2026-02-10")
    new = make_host(alice, "attic", "2026-02-10", "2026-03-20")
    for host in (old, new):
        task(alpine, host, granted_credit=2.0, **VALID)
    archive()
    merge(alice.pk, old.pk, new.pk)
    assert not ArchivedDay.objects.filter(host=old).exists()
    assert sum(row.credit for row in ArchivedDay.objects.filter(host=new)) == 4
    assert totals(alice) == [1046.5, 5, 1]


def test_an_erased_account_leaves_no_days(tasks: list[Workunit], alice: User, bob: User) -> None:
    archive()
    User.objects.filter(pk=alice.pk).update(deletion_asked_at=NOON)
    erasure.erase_due(NOON + 400 * DAY)
    assert not User.objects.filter(pk=alice.pk).exists()
    assert {row.user_id for row in ArchivedDay.objects.all()} == {bob.pk}


def test_running_tasks_are_not_in_the_history(signed_in: Client, own: Project, alpine: App, studio: Host) -> None:
    workunit = make_workunit(alpine)
    make_success(
        workunit,
        studio,
        server_state=ServerState.IN_PROGRESS,
        outcome=Outcome.INIT,
        received_at=None,
        elapsed_secs=None,
    )
    content = page_of(signed_in, f"/history/?{RANGE}&app={alpine.pk}")
    assert not content.all("tfoot")


# --- downloads -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_archived", [False, True])
def test_downloads_have_the_days_of_the_app(
    signed_in: Client, tasks: list[Workunit], alpine: App, own: Project, studio: Host, is_archived: bool
) -> None:
    if is_archived:
        archive()
    reply = signed_in.get(f"/history/history.json?{RANGE}&app={alpine.pk}")
    content = json.loads(b"".join(reply))
    rows = [(row["day"], row["host_id"], row["granted_credit"], row["jobs_succeeded"]) for row in content["rows"]]
    assert rows == [("2026-11-20", studio.pk, "0.000000", 2), ("2026-11-21", studio.pk, "42.500000", 0)]
    assert {row["project_id"] for row in content["rows"]} == {own.pk}
    assert content["sums"]["granted_credit"] == "42.500000"
    assert content["sums"]["gpu_secs"] == "3000.000000"


def test_a_made_file_is_of_the_app_that_was_asked_for(
    signed_in: Client, tasks: list[Workunit], alpine: App, own: Project, alice: User
) -> None:
    day_range = DayRange(NOON.date(), NOON.date() + DAY, own.pk, app_id=alpine.pk)
    copy = exports.ask(alice, DataCopy.Content.CSV, day_range)
    assert exports.ask(alice, DataCopy.Content.CSV, day_range).pk == copy.pk
    assert queue.carry_out_next()
    copy.refresh_from_db()
    assert copy.state == DataCopy.State.READY
    assert f"-app-{alpine.pk}." in exports.file_name(day_range, "csv")
