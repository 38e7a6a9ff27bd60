"""Badges are awarded by the sums of months and the open days, once, dated, and never taken away."""

from __future__ import annotations

import datetime as dt

import pytest
from django.db import IntegrityError, connection, transaction
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone, translation

from accounting.ledger.months import close_months
from accounting.models import ClosedMonths
from extras.badges import award
from extras.badges.award import award_due
from extras.badges.models import Badge, BadgeAward, BadgeCheck
from extras.badges.reads import read_page, titles_until
from extras.badges.rules import BadgeKind
from portal.audit.carry_out import carry_out
from portal.audit.proposals import Proposal
from portal.models import Host, User
from tests.support.accounting_factories import at, credit, make_host, make_project
from tools.benchmarks.harness.statements import statements

pytestmark = pytest.mark.django_db
CREDIT = 1_000_000
NOW = at("2026-05-20", 12)


def badge(kind: BadgeKind, threshold: int, **more: object) -> Badge:
    title = f"{kind} {threshold}"
    badge = Badge.objects.create(title=title, kind=kind, threshold=threshold, is_active=True, **more)
    Badge.objects.filter(pk=badge.pk).update(changed_at=NOW - dt.timedelta(days=1))
    return badge


@pytest.fixture
def host(alice: User) -> Host:
    """Forty credits on each of three days: two in months that are closed, one in May."""
    host = make_host(alice, "studio", last="2026-05-20")
    project = make_project("Alpha")
    for day in ("2026-03-30", "2026-04-02", "2026-05-19"):
        credit(host, project, day, (40 * CREDIT, 0, 0, 0, 1, 0))
    close_months(NOW)
    return host


def awarded() -> dict[str, str]:
    return {award.badge.title: str(award.day) for award in BadgeAward.objects.select_related("badge")}


def test_badges_are_dated_by_the_day_on_which_they_were_reached(host: Host) -> None:
    badge(BadgeKind.TASKS, 1)
    badge(BadgeKind.CREDIT, 80)
    badge(BadgeKind.DAYS, 3)
    badge(BadgeKind.CREDIT, 121)
    assert award_due(NOW) == 3
    assert awarded() == {"tasks 1": "2026-03-30", "credit 80": "2026-04-02", "days 3": "2026-05-19"}


def test_a_second_run_changes_nothing(host: Host) -> None:
    badge(BadgeKind.CREDIT, 80)
    award_due(NOW)
    assert award_due(NOW) == award_due(NOW + dt.timedelta(days=2)) == 0
    assert BadgeAward.objects.count() == 1


def test_a_badge_that_is_off_is_not_awarded(host: Host) -> None:
    Badge.objects.update(is_active=False)
    assert award_due(NOW) == 0
    assert not BadgeAward.objects.exists()


def test_a_harder_rule_takes_no_badge_away_and_says_what_it_was_for(host: Host, alice: User, client: Client) -> None:
    rule = badge(BadgeKind.CREDIT, 80)
    award_due(NOW)
    rule.threshold = 5_000
    rule.save()
    award_due(timezone.now() + dt.timedelta(days=1))
    award = BadgeAward.objects.get()
    assert (award.rule, str(award.day)) == ("80 credits", "2026-04-02")
    client.force_login(alice)
    assert "the rule has changed since; you keep the badge" in client.get("/history/badges/").content.decode()
    # Nobody mistakes it for 5,000 credits on a certificate.
    assert titles_until(alice, NOW.date()) == ["credit 80 (80 credits)"]


def test_a_rule_in_another_language_is_the_same_rule(host: Host, alice: User) -> None:
    badge(BadgeKind.CREDIT, 80)
    award_due(NOW)
    with translation.override("de"):
        (held,) = read_page(alice).held
        assert (held.rule, held.was_changed) == ("80 Credits", False)
        assert titles_until(alice, NOW.date()) == ["credit 80"]


def test_an_easier_rule_is_awarded_soon_and_dated_in_the_past(host: Host) -> None:
    rule = badge(BadgeKind.CREDIT, 5_000)
    award_due(NOW)
    Badge.objects.filter(pk=rule.pk).update(threshold=40, changed_at=NOW + dt.timedelta(hours=1))
    assert award_due(NOW + dt.timedelta(hours=2)) == 1
    assert awarded() == {"credit 5000": "2026-03-30"}


def test_work_of_a_later_day_is_seen_when_the_computer_has_reported(host: Host) -> None:
    badge(BadgeKind.DAYS, 4)
    award_due(NOW)
    later = NOW + dt.timedelta(days=1)
    credit(host, make_project("Beta"), "2026-05-20", (1, 0, 0, 0, 0, 0))
    assert award_due(later) == 0  # nobody has reported since
    Host.objects.filter(pk=host.pk).update(last_contact_at=NOW + dt.timedelta(hours=3))
    assert award_due(later) == 1


def test_a_month_that_is_closed_meanwhile_counts_once(host: Host) -> None:
    badge(BadgeKind.CREDIT, 121)
    badge(BadgeKind.DAYS, 4)
    # The content of a run that began before April was closed; its sums exist by now.
    ClosedMonths.objects.update(until=dt.date(2026, 4, 1))
    assert award_due(NOW) == 0


def test_undoing_a_harder_rule_awards_it_to_those_who_reached_the_easier_one(host: Host) -> None:
    rule = badge(BadgeKind.CREDIT, 5_000)
    award_due(NOW)
    carry_out(Proposal("badges.Badge", rule.pk, {"threshold": [5_000, 40]}), None, "")
    assert award_due(timezone.now()) == 1


def test_an_account_that_is_being_deleted_gets_none(host: Host, alice: User) -> None:
    badge(BadgeKind.CREDIT, 80)
    User.objects.filter(pk=alice.pk).update(deletion_asked_at=NOW)
    assert award_due(NOW) == 0


def test_the_number_of_statements_does_not_depend_on_volunteers(host: Host, alice: User, bob: User) -> None:
    badge(BadgeKind.CREDIT, 1_000_000)
    one = statements(lambda: award_due(NOW))
    project = make_project("Beta")
    for number in range(5):
        owner = User.objects.create_user(f"v{number}@example.org", "x")
        credit(make_host(owner, "h"), project, "2026-04-02", (CREDIT, 0, 0, 0, 0, 0))
    assert statements(lambda: award_due(NOW + dt.timedelta(minutes=1))) == one


def test_all_accounts_are_looked_at_once_for_all_batches(
    host: Host, bob: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    badge(BadgeKind.CREDIT, 80)
    monkeypatch.setattr(award, "BATCH", 1)
    with CaptureQueriesContext(connection) as asked:
        assert award_due(NOW) == 1
    assert len([query for query in asked if "LEFT JOIN badges_badgecheck" in query["sql"]]) == 1
    assert BadgeCheck.objects.count() == User.objects.count()


def test_the_database_keeps_rules_and_awards_sound(host: Host, alice: User) -> None:
    rule = badge(BadgeKind.CREDIT, 80)
    award_due(NOW)
    wrong = (
        lambda: badge(BadgeKind.CREDIT, 0),
        lambda: badge(BadgeKind.CREDIT, 10**13),
        lambda: badge(BadgeKind.SUBJECT_HOURS, 5),
        lambda: badge(BadgeKind.CREDIT, 5, subject=1),
        lambda: BadgeAward.objects.create(user=alice, badge=rule, day=NOW.date(), rule=""),
    )
    for make in wrong:
        with pytest.raises(IntegrityError), transaction.atomic():
            make()
