"""A preview predicts what the validator grants: the same reports, in a second database with the new settings."""

from __future__ import annotations

import datetime as dt
import os
from typing import Any

import pytest

from credit.changes import reset
from credit.models import App, AppVersion, Preview, RuleSet, StatisticsSnapshot
from credit.previews.request import ask
from credit.previews.worker import carry_out as make_preview
from credit.statistics.feeder import feed
from extras.laboratory.trials.population import KINDS
from portal.audit.carry_out import carry_out
from portal.audit.proposals import Proposal
from portal.models import User
from tests.support.credit_factories import NOON
from tests.support.preview_site import Site, make_site, same
from tests.support.second_database import copy_database, drop_database, in_database

pytestmark = pytest.mark.django_db(transaction=True)
# Each test process has its own.
_PROCESS = os.environ.get("PYTEST_XDIST_WORKER", "")
START, SECOND = f"test_start_of_preview{_PROCESS}", f"test_second_of_preview{_PROCESS}"


def of_app(app: App, **values: Any) -> tuple[dict[str, Any], Proposal]:
    pairs = {name: [getattr(app, name), value] for name, value in values.items()}
    return {"app": pairs}, Proposal(model=App._meta.label, pk=app.pk, changes=pairs)


def withdrawn(version: AppVersion) -> tuple[dict[str, Any], Proposal]:
    pairs = {"is_deprecated": [False, True]}
    return {"versions": {str(version.pk): pairs}}, Proposal(model=AppVersion._meta.label, pk=version.pk, changes=pairs)


def totals(site: Site, boss: User, changes: dict[str, Any]) -> dict[str, float]:
    """The credit of the window that the preview's page shows, as it is and as it would be."""
    preview = ask(boss, site.app, changes, NOON)
    make_preview(preview.pk)
    preview = Preview.objects.get(pk=preview.pk)
    assert preview.failure is None and preview.result is not None
    found: dict[str, float] = preview.result["total"]
    return found


def test_the_totals_of_a_preview_are_those_of_a_second_database_under_the_new_settings() -> None:
    site = make_site()
    boss = User.objects.create_superuser("boss@example.org", "a long password")
    app = site.app
    gpu, cpu = (AppVersion.objects.filter(app=app, plan_class=c).order_by("pk")[0] for c in ("cuda", ""))
    changes = {
        "a setting": of_app(app, host_scale_check=True),
        "rules and limits": of_app(app, rule_set=RuleSet.LETTER, host_avg_samples=3, max_granted_credit=20.0),
        "a withdrawn version": withdrawn(gpu),
        "a reset": ({"reset": [cpu.pk]}, reset.proposal(cpu)),
    }
    copy_database(START)
    granted = sum(site.work())
    previews = {name: totals(site, boss, wanted) for name, (wanted, _) in changes.items()}
    try:
        for name, (_, proposal) in changes.items():
            with in_database(START):
                copy_database(SECOND)
            with in_database(SECOND):
                carry_out(proposal, boss, name)
                again = sum(site.work())
            assert same(previews[name]["before"], granted), name
            assert same(previews[name]["after"], again), name
            # A withdrawn version keeps its factor.
            assert name == "a withdrawn version" or not same(again, granted), name
    finally:
        drop_database(SECOND)
        drop_database(START)


def test_the_preview_of_a_factor_from_other_projects_set_or_taken_back_is_what_is_granted_with_it() -> None:
    site = make_site(kinds=[kind for kind in KINDS if kind.gpu_usage])
    boss = User.objects.create_superuser("boss@example.org", "a long password")
    first, second = AppVersion.objects.filter(app=site.app, plan_class="cuda").order_by("pk")
    AppVersion.objects.filter(pk=first.pk).update(cross_project_scale=0.2)
    feed(NOON - dt.timedelta(hours=1))
    copy_database(START)
    granted = sum(site.work())
    try:
        for version, before, after in ((first, 0.2, None), (second, None, 0.1)):
            pairs = {"cross_project_scale": [before, after]}
            predicted = totals(site, boss, {"versions": {str(version.pk): pairs}})
            with in_database(START):
                copy_database(SECOND)
            with in_database(SECOND):
                carry_out(Proposal(model=AppVersion._meta.label, pk=version.pk, changes=pairs), boss, "a test")
                again = sum(site.work())
            assert same(predicted["before"], granted) and same(predicted["after"], again) and not same(again, granted)
    finally:
        drop_database(SECOND)
        drop_database(START)


def reset_at(version: AppVersion, boss: User, at: dt.datetime) -> int:
    """Reset its statistics then; the number of those that are kept."""
    carry_out(reset.proposal(version), boss, "a test")
    StatisticsSnapshot.objects.update(taken_at=at)
    return StatisticsSnapshot.objects.get().pk


@pytest.mark.parametrize("when", ["before the jobs that are replayed", "in their midst"])
def test_the_preview_of_an_undone_reset_is_what_is_granted_without_the_reset(when: str) -> None:
    site = make_site()
    boss = User.objects.create_superuser("boss@example.org", "a long password")
    gpu = AppVersion.objects.filter(app=site.app, plan_class="cuda").order_by("pk")[0]
    copy_database(SECOND)
    try:
        if when == "in their midst":
            # After the feeder's run of the third step
            granted = sum(site.work(lambda: reset_at(gpu, boss, NOON + dt.timedelta(hours=3, minutes=10))))
        else:
            reset_at(gpu, boss, NOON)
            granted = sum(site.work())
        predicted = totals(site, boss, {"restore": [StatisticsSnapshot.objects.get().pk]})
        with in_database(SECOND):
            without = sum(site.work())
    finally:
        drop_database(SECOND)
    assert same(predicted["before"], granted)
    assert same(predicted["after"], without)
    assert not same(granted, without)
