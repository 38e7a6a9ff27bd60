"""Settling what statistics granted, in the database: what begins, what is added up, what is never taken away."""

from __future__ import annotations

import datetime as dt
import random

import pytest

from accounting.computers.merge import merge
from accounting.engine.reconciliation import SettledCredit, stand
from accounting.ledger.partitions import create_months
from accounting.models import (
    Day,
    GrantedDay,
    GrantedTotal,
    HostProject,
    Project,
    ProjectRatio,
    Settlement,
    StatisticsImport,
)
from accounting.reconciliation.reads import chart_data, last_days, read_reconciled, read_standings, total_of
from accounting.reconciliation.refresh import MOST_GRANTED, refresh, refresh_due
from portal.models import Host, User
from tests.support.accounting_factories import at, credit, granted, make_host, make_project

pytestmark = pytest.mark.django_db

MICRO = 1_000_000


def estimate(host: Host, project: Project, day: str, credits: int) -> None:
    credit(host, project, day, (credits * MICRO, 0, 0, 0, 0, 0))


def export(host: Host, project: Project, day: str, credits: int, *, first: bool = False, whole: bool = False) -> None:
    """What the import leaves behind of an export that was made and read on a day, and its reconciliation."""
    number = host.pk * 1_000 + project.pk
    grant = credits * MICRO if whole or not first else 0
    made = {"project": project, "project_host_id": number, "host": host, "avg_at": at(day), "made_at": at(day)}
    total = GrantedTotal.objects.filter(project=project, project_host_id=number).first()
    if total is None:
        total = GrantedTotal(**made, total_credit=0, highest_credit=0, fits_since=at(day))
    total.total_credit += credits * MICRO
    total.highest_credit, total.as_of = total.total_credit, at(day)
    total.counted_credit += grant
    total.save()
    if grant:
        same, _ = GrantedDay.objects.get_or_create(
            user=host.owner, day=at(day).date(), project=project, host=host, defaults={"credit": 1}
        )
        GrantedDay.objects.filter(pk=same.pk).update(credit=same.credit - (same.credit == 1) + grant)
    row, _ = StatisticsImport.objects.get_or_create(project=project)
    row.update_time, row.first_update_time = at(day), row.first_update_time or at(day)
    row.save()
    refresh(project.pk, at(day, 6))


@pytest.fixture
def alpha() -> Project:
    return make_project("Alpha")


def total(user: User) -> float:
    return total_of(read_standings(user)) / MICRO


def provisional(user: User, day: str) -> float:
    starts, days = last_days(at(day).date(), 30)
    return read_reconciled(user, starts, days, days[1]).provisional / MICRO


def test_without_statistics_the_total_is_the_estimate(alice: User, studio: Host, alpha: Project) -> None:
    estimate(studio, alpha, "2026-03-01", 10)
    assert (total(alice), provisional(alice, "2026-03-01")) == (10, 0)


def test_from_the_first_statistics_on_only_grants_are_added(alice: User, studio: Host, alpha: Project) -> None:
    estimate(studio, alpha, "2026-03-01", 10)
    export(studio, alpha, "2026-03-01", 900, first=True)
    assert total(alice) == 10
    estimate(studio, alpha, "2026-03-02", 8)
    assert (total(alice), provisional(alice, "2026-03-02")) == (10, 8)
    export(studio, alpha, "2026-03-03", 5)
    assert (total(alice), provisional(alice, "2026-03-03")) == (15, 3)


def test_what_is_estimated_later_on_the_day_of_the_first_statistics_stays_too(
    alice: User, studio: Host, alpha: Project
) -> None:
    estimate(studio, alpha, "2026-03-01", 10)
    export(studio, alpha, "2026-03-01", 900, first=True)
    Day.objects.update(gpu_ec=4 * MICRO)
    assert total(alice) == 14


def test_a_computer_that_a_project_got_to_know_lately_is_granted_what_was_estimated_and_no_more(
    alice: User, studio: Host, alpha: Project
) -> None:
    estimate(studio, alpha, "2026-03-01", 10)
    export(studio, alpha, "2026-03-01", 4, first=True, whole=True)
    assert (total(alice), provisional(alice, "2026-03-01")) == (10, 0)
    export(studio, alpha, "2026-03-02", 5)
    assert total(alice) == 10  # 4 + 5 are in the 10
    export(studio, alpha, "2026-03-03", 2)
    assert total(alice) == 11


def test_a_record_whose_grants_another_computer_has_is_not_all_that_a_computer_was_granted(
    alice: User, studio: Host, alpha: Project
) -> None:
    """A copy was told apart and took its number at the project along: what it grants from then on is added."""
    apart = make_host(alice, "copy")
    record = granted(studio, alpha, 17, {"2026-03-01": 50 * MICRO})
    GrantedTotal.objects.filter(pk=record.pk).update(host=apart)
    estimate(apart, alpha, "2026-03-01", 30)
    StatisticsImport.objects.create(project=alpha, update_time=at("2026-03-01"), first_update_time=at("2026-02-01"))
    refresh(alpha.pk, at("2026-03-01", 6))
    assert total(alice) == 30
    GrantedDay.objects.create(user=alice, day=dt.date(2026, 3, 2), project=alpha, host=apart, credit=20 * MICRO)
    StatisticsImport.objects.update(update_time=at("2026-03-02"))
    refresh(alpha.pk, at("2026-03-02", 6))
    assert total(alice) == 50  # 30 + 20


def test_settling_again_changes_nothing(alice: User, studio: Host, alpha: Project) -> None:
    estimate(studio, alpha, "2026-03-01", 10)
    export(studio, alpha, "2026-03-01", 900, first=True)
    export(studio, alpha, "2026-03-02", 5)
    before = list(Settlement.objects.values())
    refresh(alpha.pk, at("2026-03-02", 8))
    assert list(Settlement.objects.values()) == before
    assert refresh_due(at("2026-03-02", 9)) == 0


def test_only_projects_with_newer_statistics_are_settled(studio: Host, alpha: Project) -> None:
    estimate(studio, alpha, "2026-03-01", 10)
    export(studio, alpha, "2026-03-01", 900, first=True)
    StatisticsImport.objects.update(update_time=at("2026-03-02"))
    assert refresh_due(at("2026-03-02", 9)) == 1
    assert Settlement.objects.get().read_on == dt.date(2026, 3, 2)


def test_a_day_that_gets_more_grants_later_is_added_up_once(alice: User, studio: Host, alpha: Project) -> None:
    export(studio, alpha, "2026-03-01", 900, first=True)
    for credits in (5, 6):
        export(studio, alpha, "2026-03-02", credits)
    export(studio, alpha, "2026-03-04", 7)
    assert total(alice) == 18  # 5 + 6 + 7


@pytest.mark.parametrize("is_whole", [False, True])
@pytest.mark.parametrize("is_older_seen", [False, True])
def test_merging_two_records_keeps_their_total(
    alice: User, alpha: Project, is_older_seen: bool, is_whole: bool
) -> None:
    old = make_host(alice, "studio", "2026-01-01", "2026-02-10")
    new = make_host(alice, "studio", "2026-02-11", "2026-03-01")
    estimate(old, alpha, "2026-02-10", 30)
    estimate(new, alpha, "2026-02-11", 20)
    if is_older_seen:
        export(old, alpha, "2026-02-09", 7, first=True, whole=True)
        export(old, alpha, "2026-02-10", 7)
    export(new, alpha, "2026-02-11", 15, first=True, whole=is_whole)
    export(new, alpha, "2026-02-12", 9)
    before = total(alice)
    merge(alice.pk, old.pk, new.pk)
    assert total(alice) == before
    export(new, alpha, "2026-02-14", 100)
    assert total(alice) > before
    assert Settlement.objects.get().host == new


def test_pages_and_rule_agree(alice: User, alpha: Project) -> None:
    """What three statements and the tables say is what the rule says of the days as they are."""
    chance = random.Random(1)
    today = dt.date(2026, 3, 31)
    create_months(dt.date(2026, 1, 1), today)
    first = dt.date(2026, 1, 1)
    expected_total = expected_provisional = 0
    for number in range(6):
        host = make_host(alice, f"node {number}")
        seen_on = first + dt.timedelta(days=chance.randrange(90))
        estimates = {first + dt.timedelta(days=day): chance.randrange(100) for day in chance.sample(range(90), 40)}
        grants = {
            day: chance.randrange(1, 150)
            for day in (first + dt.timedelta(days=day) for day in chance.sample(range(90), 30))
            if day > seen_on
        }
        Day.objects.bulk_create(
            Day(user=alice, day=day, project=alpha, host=host, cpu_ec=ec) for day, ec in estimates.items()
        )
        GrantedDay.objects.bulk_create(
            GrantedDay(user=alice, day=day, project=alpha, host=host, credit=ec) for day, ec in grants.items()
        )
        HostProject.objects.create(host=host, project=alpha, credited=[sum(estimates.values()), 0, 0, 0, 0, 0])
        read_on, is_whole = max([seen_on, *grants]), number % 2 == 0
        before = sum(ec for day, ec in estimates.items() if day < seen_on)
        Settlement.objects.create(
            host=host, project=alpha, seen_on=seen_on, read_on=read_on, estimated_before=before,
            granted=sum(grants.values()), is_whole=is_whole,
        )  # fmt: skip
        seen = SettledCredit(seen_on, read_on, before + estimates.get(seen_on, 0), sum(grants.values()), is_whole)
        expected_total += seen.settled
        expected_provisional += sum(each.provisional for each in stand(seen, estimates, grants, today).values())
    starts, days = last_days(today, 90)
    reconciled = read_reconciled(alice, starts, days, today)
    assert (reconciled.settled, reconciled.provisional) == (expected_total, expected_provisional)
    assert reconciled.sums.provisional == expected_provisional
    assert reconciled.sums.granted == reconciled.granted


def test_a_computer_far_from_its_project_is_marked(alice: User, alpha: Project) -> None:
    hosts = [make_host(alice, f"node {number}") for number in range(9)]
    for number, host in enumerate(hosts):
        export(host, alpha, "2026-01-01", 1, first=True)
        estimate(host, alpha, "2026-02-01", 2_000)
        # Eight are granted half of it, one a fiftieth.
        export(host, alpha, "2026-02-02", 40 if number == 8 else 1_000)
    ratio = ProjectRatio.objects.get()
    assert (ratio.median, ratio.computers) == (0.5, 9)
    assert Settlement.objects.get(is_outside=True).host == hosts[8]
    # Work that was waiting is granted: the mark goes.
    export(hosts[8], alpha, "2026-02-03", 900)
    assert not Settlement.objects.filter(is_outside=True).exists()


def test_a_project_that_grants_more_than_can_be_added_up_stops_neither_pages_nor_other_projects(
    alice: User, alpha: Project
) -> None:
    """Each record may have 9e12 credits; two of them are more than 64 bits hold in millionths."""
    most = 9 * 10**12
    beta = make_project("Beta")
    hosts = [make_host(alice, name) for name in ("studio", "attic")]
    for host in hosts:
        for day in ("2026-03-01", "2026-03-02"):
            granted(host, alpha, host.pk * 10 + int(day[-1]), {day: most * MICRO})
    granted(hosts[0], beta, 1, {"2026-03-02": 7 * MICRO})
    for project in (alpha, beta):
        StatisticsImport.objects.create(
            project=project, update_time=at("2026-03-02"), first_update_time=at("2026-02-01")
        )
    assert refresh_due(at("2026-03-02", 6)) == 2
    assert total(alice) == 2 * float(MOST_GRANTED / MICRO) + 7
    assert refresh_due(at("2026-03-02", 7)) == 0
    starts, days = last_days(dt.date(2026, 3, 2), 30)
    reconciled = read_reconciled(alice, starts, days, days[1])
    assert reconciled.sums.granted == (4 * most + 7) * MICRO
    assert chart_data(reconciled, "day")[0]["series"][0]["values"][-1] == 2 * most + 7
