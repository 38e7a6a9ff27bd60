"""A version's statistics and its computers' records are reset; a snapshot is kept and can be restored."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import Permission
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from credit.models import (
    App,
    AppVersion,
    HostAppVersion,
    HostRecordSnapshot,
    Preview,
    StatisticsSnapshot,
    VersionAverage,
)
from portal.models import Host, User
from tests.support.credit_factories import NOON, make_version
from tests.support.settings_changes import last_change, save, undo

pytestmark = pytest.mark.django_db

STATISTICS: dict[str, Any] = {
    "pfc_n": 40,
    "pfc_avg": 1.1,
    "clean_pfc_n": 30,
    "clean_pfc_avg": 1 / 3,
    "waiting_pfc_n": 6,
    "waiting_pfc_avg": 1.2,
    "recent_pfc_n": 4,
    "recent_pfc_avg": 1.3,
    "samples_at": NOON,
    "et_n": 40,
    "et_avg": 2e-9,
    "et_var": 1e-19,
    "et_q": 0.1 + 0.2,
}
OF_VERSION: dict[str, Any] = {"pfc_n": 1000, "pfc_avg": 1.5000000000000002, "pfc_scale": 2 / 3, "is_counted": True}
EMPTY: dict[str, Any] = {name: 0 if name.endswith("_n") or name == "et_q" else None for name in STATISTICS}


@pytest.fixture
def version(app: App) -> AppVersion:
    return make_version(app, total_credit=5000.0, ngranted=77, **OF_VERSION)


def make_record(version: AppVersion, **fields: Any) -> HostAppVersion:
    owner = User.objects.get_or_create(email="mara@example.org")[0]
    host = Host.objects.create(owner=owner)
    return HostAppVersion.objects.create(host=host, app=version.app, app_version=version, **fields)


def statistics(row: AppVersion | HostAppVersion, names: dict[str, Any]) -> dict[str, Any]:
    row.refresh_from_db()
    return {name: getattr(row, name) for name in names}


def reset_path(version: AppVersion) -> str:
    return reverse("admin:credit_appversion_reset_statistics", args=[version.pk])


def reset(client: Client, version: AppVersion) -> str:
    """Press "Reset statistics"; the address of the step."""
    return str(client.get(reset_path(version))["Location"])


def test_a_reset_empties_the_averages_and_leaves_credit_and_turnaround(desk: Client, version: AppVersion) -> None:
    record = make_record(version, **STATISTICS, turnaround_n=3, turnaround_avg=5.0, consecutive_valid=9)
    other = make_record(make_version(version.app, 101), **STATISTICS)
    step = reset(desk, version)
    page = desk.get(step).content.decode()
    assert "Computers with samples" in page
    assert statistics(version, OF_VERSION) == OF_VERSION
    assert save(desk, step, "").status_code == 200
    assert save(desk, step).status_code == 302
    assert statistics(version, OF_VERSION) == {"pfc_n": 0, "pfc_avg": None, "pfc_scale": None, "is_counted": False}
    assert (version.total_credit, version.ngranted) == (5000.0, 77)
    assert statistics(record, STATISTICS) == EMPTY
    assert (record.turnaround_n, record.consecutive_valid) == (3, 9)
    assert statistics(other, STATISTICS) == STATISTICS
    assert last_change().changes["pfc_avg"] == [1.5000000000000002, None]


def test_an_undone_reset_puts_back_every_number_and_can_be_undone_too(desk: Client, version: AppVersion) -> None:
    record = make_record(version, **STATISTICS)
    save(desk, reset(desk, version))
    was_reset = last_change()
    # Validators gather new samples.
    AppVersion.objects.filter(pk=version.pk).update(pfc_n=5, pfc_avg=9.0)
    HostAppVersion.objects.filter(pk=record.pk).update(pfc_n=5, pfc_avg=9.0)
    late = make_record(version, pfc_n=2, pfc_avg=7.0)
    assert undo(desk, was_reset).status_code == 302
    assert statistics(version, OF_VERSION) == OF_VERSION
    assert statistics(record, STATISTICS) == STATISTICS
    # It had no samples at the reset.
    assert statistics(late, STATISTICS) == EMPTY
    assert undo(desk, last_change()).status_code == 302
    assert statistics(version, {"pfc_n": 5, "pfc_avg": 9.0}) == {"pfc_n": 5, "pfc_avg": 9.0}
    assert statistics(late, {"pfc_n": 2, "pfc_avg": 7.0}) == {"pfc_n": 2, "pfc_avg": 7.0}


def test_an_undo_of_a_reset_after_a_later_one_wants_to_be_confirmed(desk: Client, version: AppVersion) -> None:
    """As when two operators undo it at once: the second would throw away what came since the first."""
    save(desk, reset(desk, version))
    was_reset = last_change()
    first, second = (str(desk.post(f"/admin/portal/change/{was_reset.pk}/undo/")["Location"]) for _ in range(2))
    assert save(desk, first).status_code == 302
    AppVersion.objects.filter(pk=version.pk).update(pfc_n=2000)
    response = save(desk, second)
    assert response.status_code == 200
    assert "This was changed again later" in response.content.decode()
    assert statistics(version, {"pfc_n": 0}) == {"pfc_n": 2000}
    assert save(desk, second, anyway="on").status_code == 302
    assert statistics(version, OF_VERSION) == OF_VERSION


def test_records_that_are_gone_do_not_keep_a_reset_from_being_undone(desk: Client, version: AppVersion) -> None:
    record = make_record(version, **STATISTICS)
    save(desk, reset(desk, version))
    assert HostRecordSnapshot.objects.count() == 1
    HostAppVersion.objects.filter(pk=record.pk).delete()
    assert undo(desk, last_change()).status_code == 302
    assert statistics(version, OF_VERSION) == OF_VERSION


def test_a_reset_has_a_preview(desk: Client, version: AppVersion) -> None:
    step = reset(desk, version)
    desk.post(step, {"do": "preview"})
    preview = Preview.objects.get()
    assert preview.changes["reset"] == [version.pk]
    Preview.objects.update(finished_at=timezone.now(), progress=1)
    save(desk, step)
    assert last_change().credit.preview == preview


def test_the_undo_of_a_reset_has_a_preview_of_its_own(desk: Client, version: AppVersion) -> None:
    save(desk, reset(desk, version))
    snapshot = StatisticsSnapshot.objects.get()
    step = str(desk.post(f"/admin/portal/change/{last_change().pk}/undo/")["Location"])
    assert desk.post(step, {"do": "preview"}).status_code == 302
    preview = Preview.objects.get()
    assert preview.changes == {"app": {}, "versions": {}, "reset": [], "restore": [snapshot.pk]}
    page = desk.get(f"/admin/credit/preview/{preview.pk}/result/").content.decode()
    assert f"as before {snapshot.taken_at:%Y-%m-%d}" in page


def test_the_step_of_an_undo_says_why_it_has_no_preview(desk: Client, version: AppVersion) -> None:
    App.objects.update(version_average=VersionAverage.MEDIAN)
    save(desk, reset(desk, version))
    step = str(desk.post(f"/admin/portal/change/{last_change().pk}/undo/")["Location"])
    page = desk.get(step).content.decode()
    assert "the earlier ones are not kept" in page
    assert "which jobs are done" not in page
    assert desk.post(step, {"do": "preview"}).status_code == 403


def test_a_reset_that_is_sent_twice_is_made_once(desk: Client, version: AppVersion) -> None:
    make_record(version, **STATISTICS)
    first, second = reset(desk, version), reset(desk, version)
    assert save(desk, first).status_code == 302
    response = save(desk, second)
    assert response.status_code == 200
    assert "it has these values already" in response.content.decode()
    assert StatisticsSnapshot.objects.count() == 1


def test_who_may_only_see_versions_resets_nothing(client: Client, version: AppVersion) -> None:
    user = User.objects.create_user("helper@example.org", "a long password", is_staff=True)
    user.user_permissions.add(Permission.objects.get(codename="view_appversion"))
    client.force_login(user)
    assert client.get(f"/admin/credit/appversion/{version.pk}/change/").status_code == 200
    assert client.get(reset_path(version)).status_code == 403
    assert statistics(version, OF_VERSION) == OF_VERSION
