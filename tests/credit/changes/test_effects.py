"""The effects of a change: the grants before and after it, measured from results."""

from __future__ import annotations

import datetime as dt

import pytest
from django.test import Client

from credit.changes import effects
from credit.models import App, AppVersion, CreditChange, ValidateState
from portal.models import Change, Host, User
from tests.support.credit_factories import NOON, make_success, make_workunit
from tests.support.settings_changes import last_change

pytestmark = pytest.mark.django_db

DAY = dt.timedelta(days=1)


@pytest.fixture
def host() -> Host:
    return Host.objects.create(owner=User.objects.create_user("mara@example.org", "a long password"))


def change_at(app: App, at: dt.datetime) -> Change:
    app.host_scale_check = not app.host_scale_check
    app.save()
    change = last_change()
    Change.objects.filter(pk=change.pk).update(timestamp=at)
    change.refresh_from_db()
    return change


def grant(version: AppVersion, host: Host, at: dt.datetime, credit: float, fpops_est: float = 1e13) -> None:
    workunit = make_workunit(version.app, fpops_est=fpops_est, created_at=at - DAY / 2)
    make_success(
        workunit, host, app_version=version, granted_at=at, granted_credit=credit, validate_state=ValidateState.VALID
    )


def test_both_sides_are_measured_per_version_with_their_spread(app: App, version: AppVersion, host: Host) -> None:
    change = change_at(app, NOON)
    for number in range(11):
        # 10 to 20 credits for 1e13 FLOPs: 1 to 2 per 1e12, of which the tenth and ninetieth percentile are 1.1, 1.9.
        grant(version, host, NOON - DAY, 10.0 + number)
    grant(version, host, NOON + DAY, 30.0)
    grant(version, host, NOON + DAY, 30.0, fpops_est=2e13)
    # Too long before and after
    grant(version, host, NOON - 8 * DAY, 1000.0)
    grant(version, host, NOON + 8 * DAY, 1000.0)
    [row] = effects.measure(app, change, NOON + 30 * DAY).rows
    assert row.version == version.pk
    assert row.before is not None
    assert row.before.ngranted == 11
    assert row.before.per_day == pytest.approx(165 / 7)
    assert (row.before.per_flops, row.before.lowest, row.before.highest) == pytest.approx((1.5, 1.1, 1.9))
    assert row.after is not None
    # 60 credits for 3e13 FLOPs
    assert row.after.ngranted == 2
    assert (row.after.per_day, row.after.per_flops) == pytest.approx((60 / 7, 2))


def test_other_changes_of_the_apps_credit_end_the_measured_time(app: App, version: AppVersion, host: Host) -> None:
    change_at(app, NOON - 2 * DAY)
    change = change_at(app, NOON)
    change_at(app, NOON + 3 * DAY)
    grant(version, host, NOON - 3 * DAY, 1000.0)
    grant(version, host, NOON - DAY, 20.0)
    grant(version, host, NOON + DAY, 30.0)
    grant(version, host, NOON + 4 * DAY, 1000.0)
    measured = effects.measure(app, change, NOON + 30 * DAY)
    assert (measured.since, measured.until, measured.is_over) == (NOON - 2 * DAY, NOON + 3 * DAY, True)
    [row] = measured.rows
    assert row.before is not None
    assert row.after is not None
    assert (row.before.per_day, row.after.per_day) == (10.0, 10.0)


def test_a_sentence_says_what_moved(app: App, version: AppVersion, host: Host) -> None:
    change = change_at(app, NOON)
    early = effects.measure(app, change, NOON + DAY)
    assert effects.sentence(early) == "No result has been granted credit since the change."
    grant(version, host, NOON + DAY, 30.0)
    only_after = effects.measure(app, change, NOON + 30 * DAY)
    assert effects.sentence(only_after).startswith("There is nothing to compare with")
    grant(version, host, NOON - DAY, 20.0)
    measured = effects.measure(app, change, NOON + 30 * DAY)
    assert effects.sentence(measured) == (
        "Credit per estimated FLOP: up by 50 %. Credit per day: up by 50 %. Results granted: 1 before, 1 after. Other "
        "things may have changed at the same time."
    )


def test_of_more_workunits_than_are_read_no_credit_a_day_is_told(
    app: App, version: AppVersion, host: Host, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before it were four, of which three are read; after it came two up to now, in a seventh of the time."""
    change = change_at(app, NOON)
    for day in (4, 3, 2, 1):
        grant(version, host, NOON - day * DAY, 20.0)
    for hour in (1, 2):
        grant(version, host, NOON + DAY / 2 + hour * DAY / 24, 20.0)
    whole = effects.measure(app, change, NOON + DAY)
    assert "Credit per day" in effects.sentence(whole)
    monkeypatch.setattr(effects, "MAX_WORKUNITS", 3)
    measured = effects.measure(app, change, NOON + DAY)
    assert effects.Effects.of_json(measured.as_json()) == measured
    assert effects.sentence(measured).startswith("Credit per estimated FLOP: unchanged. Results read: 3 ")
    client.force_login(User.objects.create_superuser("boss@example.org", "a long password"))
    CreditChange.objects.update_or_create(change=change, defaults={"effects": measured.as_json() | {"is_over": True}})
    page = client.get(f"/admin/portal/change/{change.pk}/change/").content.decode()
    assert "Credit per day" not in page
    assert "of the newest 3 jobs" in page


def test_what_was_measured_is_kept_and_shown_once_results_are_gone(
    client: Client, app: App, version: AppVersion, host: Host
) -> None:
    change = change_at(app, NOON)
    grant(version, host, NOON - DAY, 20.0)
    grant(version, host, NOON + DAY, 30.0)
    assert effects.measure_recent(NOON + 8 * DAY) == 1
    assert effects.measure_recent(NOON + 30 * DAY) == 0
    version.app.workunits.all().delete()
    stored = CreditChange.objects.get(change=change).effects
    assert stored is not None
    assert effects.Effects.of_json(stored).as_json() == stored
    client.force_login(User.objects.create_superuser("boss@example.org", "a long password"))
    page = client.get(f"/admin/portal/change/{change.pk}/change/").content.decode()
    assert "up by 50 %" in page
    assert "1.00 x86_64-pc-linux-gnu" in page


def test_changes_that_are_none_of_credit_have_no_figures(app: App) -> None:
    app.weight = 3
    app.save()
    change = last_change()
    assert effects.section(change) is None
