"""Alerts to volunteers with channels, and the cost of an evaluation."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import DatabaseError, connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone, translation
from pytest_django import Settings

from accounting.models import Announcement, HostProject, ProjectTrouble
from extras.alerts import channels, evaluation
from extras.alerts.models import AlertChannel, AlertMessage, AlertTrouble, AlertWatch
from extras.alerts.rules import AlertKind
from extras.alerts.tests.receivers import add_ntfy, add_webhook
from extras.alerts.texts import lines_of, title_of
from portal.models import Host, SecurityEvent, User
from portal.people.security_events import Kind, Source, record
from tests.support.accounting_factories import credit, make_host, make_project

pytestmark = pytest.mark.django_db
HOUR = dt.timedelta(hours=1)
DAY = dt.timedelta(days=1)
HOOK = "https://hook.example.org/"


@pytest.fixture
def channel(alice: User) -> AlertChannel:
    """Alice's channel, after the first evaluation, which reports everything that it can."""
    made = add_webhook(alice, HOOK)
    channels.choose(alice, made.pk, ["silent", "failing", "project", "security", "news"], tells_end=True)
    evaluation.evaluate_user(alice.pk, timezone.now())
    return made


def told(user: User, now: dt.datetime) -> list[tuple[str, list[str]]]:
    """Return the messages of an evaluation at this time: title and lines of each new message."""
    known = set(AlertMessage.objects.values_list("pk", flat=True))
    evaluation.evaluate_user(user.pk, now)
    new = AlertMessage.objects.exclude(pk__in=known).order_by("pk")
    return [(message.title, message.lines) for message in new]


def last_seen(host: Host, ago: dt.timedelta) -> None:
    Host.objects.filter(pk=host.pk).update(last_contact_at=timezone.now() - ago)


def test_a_computer_that_falls_silent_and_comes_back_is_told_twice(
    alice: User, studio: Host, channel: AlertChannel
) -> None:
    now = timezone.now()
    last_seen(studio, 3 * DAY + HOUR)
    assert told(alice, now) == [("A computer is silent", ["studio has not synced for 3 days."])]
    assert told(alice, now + HOUR) == []
    last_seen(studio, dt.timedelta(0))
    assert told(alice, now + HOUR) == []
    assert told(alice, now + 2 * HOUR) == [("Over: A computer is silent", ["studio has not synced for 3 days."])]
    assert not AlertTrouble.objects.exists()


def test_an_alert_is_in_the_language_of_who_gets_it(alice: User, channel: AlertChannel) -> None:
    User.objects.filter(pk=alice.pk).update(language="de")
    for number in range(12):
        last_seen(make_host(alice, f"node{number:02}"), 4 * DAY)
    ((title, lines),) = told(alice, timezone.now())
    with translation.override("de"):
        assert lines[-1] == lines_of(["x"] * 12, 10)[-1] != "and 3 more"
        assert title == title_of(AlertKind.SILENT, 12, is_over=False) != "12 computers are silent"


def test_computers_that_fall_silent_together_are_one_message(alice: User, channel: AlertChannel) -> None:
    for number in range(12):
        last_seen(make_host(alice, f"node{number:02}"), 4 * DAY)
    ((title, lines),) = told(alice, timezone.now())
    assert title == "12 computers are silent" and len(lines) == 10 and lines[-1] == "and 3 more"


def test_failing_tasks_are_told_for_each_project(alice: User, studio: Host, channel: AlertChannel) -> None:
    alpha, beta = make_project("Alpha"), make_project("Beta")
    today = str(timezone.now().date())
    credit(studio, alpha, today, (0, 0, 0, 0, 1, 5))
    assert told(alice, timezone.now()) == [
        ("Tasks fail on a computer", ["studio failed 5 of 6 tasks of Alpha in the last 7 days."])
    ]
    credit(studio, beta, today, (0, 0, 0, 0, 1, 7))
    ((_, lines),) = told(alice, timezone.now())
    assert lines == ["studio failed 7 of 8 tasks of Beta in the last 7 days."]


def test_trouble_of_a_project_is_told_to_those_who_have_it(
    alice: User, bob: User, studio: Host, channel: AlertChannel
) -> None:
    project, now = make_project("Alpha"), timezone.now()
    HostProject.objects.create(host=studio, project=project, listed=True)
    add_webhook(bob, HOOK)
    evaluation.evaluate_user(bob.pk, now)
    for kind, type_ in (("failing", ""), ("no_work", "CPU")):
        ProjectTrouble.objects.create(
            project=project, kind=kind, processor_type=type_, since=now, last_at=now, volunteers=5, of_volunteers=6
        )
    assert told(bob, now) == []
    ((title, lines),) = told(alice, now)
    assert title == "2 problems with projects"
    assert lines == ["Alpha does not answer.", "Alpha has no work for processors."]


def test_who_signs_in_is_told_and_wrong_passwords_are_not(alice: User, channel: AlertChannel) -> None:
    browser = Source("192.0.2.1", "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0")
    record(alice, Kind.LOGIN, browser)
    for _ in range(50):
        record(alice, Kind.LOGIN_FAILED, browser)
    ((title, (line,)),) = told(alice, timezone.now())
    assert title.startswith("Your account at ") and line.endswith("UTC: signed in, in Firefox 128 (Linux).")


def test_an_event_that_was_written_late_is_told_and_none_twice(alice: User, channel: AlertChannel) -> None:
    now = timezone.now() + HOUR
    assert told(alice, now) == []
    # A transaction that began before the evaluation, and ended after it
    SecurityEvent.objects.create(user=alice, kind=Kind.TOKEN_MADE, at=now - dt.timedelta(minutes=2))
    assert len(told(alice, now + dt.timedelta(minutes=1))) == 1
    for hours in range(1, 30):
        assert told(alice, now + hours * HOUR) == []


def test_what_happened_before_the_first_channel_is_not_told(alice: User, studio: Host) -> None:
    record(alice, Kind.LOGIN, Source())
    last_seen(studio, 9 * DAY)
    add_webhook(alice, HOOK)
    assert told(alice, timezone.now()) == []


def test_news_for_everybody_are_told_and_drafts_are_not(alice: User, channel: AlertChannel) -> None:
    Announcement.objects.create(title="Maintenance", text="x")
    Announcement.objects.create(title="Draft", text="x", is_draft=True)
    Announcement.objects.create(title="For some", text="x", platform="win")
    ((title, lines),) = told(alice, timezone.now())
    assert title.startswith("News from ") and lines == ["Maintenance"]
    assert AlertMessage.objects.get().path.startswith("/news/#announcement-")


def test_each_channel_gets_what_was_chosen_for_it(alice: User, studio: Host, channel: AlertChannel) -> None:
    phone = add_ntfy(alice, "https://ntfy.example.org/t")
    channels.choose(alice, phone.pk, ["security"], tells_end=False)
    last_seen(studio, 4 * DAY)
    record(alice, Kind.LOGIN, Source())
    evaluation.evaluate_user(alice.pk, timezone.now())
    assert sorted(AlertMessage.objects.filter(channel=phone).values_list("kind", flat=True)) == ["security"]
    assert sorted(AlertMessage.objects.filter(channel=channel).values_list("kind", flat=True)) == ["security", "silent"]


def test_a_name_with_signs_of_its_own_begins_no_line(alice: User, channel: AlertChannel) -> None:
    last_seen(make_host(alice, "bad\r\nTitle: x"), 4 * DAY)
    ((_, lines),) = told(alice, timezone.now())
    assert lines == ["bad Title: x has not synced for 4 days."]


def test_beyond_the_limit_of_the_day_messages_are_left_out(
    alice: User, channel: AlertChannel, settings: Settings
) -> None:
    settings.ALERTS_PER_CHANNEL_DAY = 2
    now = timezone.now()
    for number in range(4):
        Announcement.objects.create(title=f"News {number}", text="x")
        evaluation.evaluate_user(alice.pk, timezone.now())
    assert list(AlertMessage.objects.order_by("pk").values_list("outcome", flat=True)) == [
        "waiting",
        "waiting",
        "left_out",
        "left_out",
    ]
    AlertMessage.objects.update(created_at=now - DAY)
    Announcement.objects.create(title="Next day", text="x")
    assert evaluation.evaluate_user(alice.pk, timezone.now()) == 1


def test_messages_about_the_account_have_a_limit_of_their_own(
    alice: User, channel: AlertChannel, settings: Settings
) -> None:
    settings.SECURITY_ALERTS_PER_CHANNEL_DAY = 2
    now = timezone.now()
    for _ in range(3):
        record(alice, Kind.LOGIN, Source())
        evaluation.evaluate_user(alice.pk, timezone.now())
    assert list(AlertMessage.objects.order_by("pk").values_list("outcome", flat=True)) == [
        "waiting",
        "waiting",
        "left_out",
    ]
    # The limit is of 24 hours.
    AlertMessage.objects.update(created_at=now - DAY)
    record(alice, Kind.LOGIN, Source())
    assert evaluation.evaluate_user(alice.pk, timezone.now()) == 1


def test_other_messages_take_no_room_from_those_about_the_account(
    alice: User, channel: AlertChannel, settings: Settings
) -> None:
    """Nor do these take room from others: the one message of the day is still available for news."""
    settings.ALERTS_PER_CHANNEL_DAY = 1
    for _ in range(3):
        record(alice, Kind.LOGIN, Source())
        assert evaluation.evaluate_user(alice.pk, timezone.now()) == 1
    for number, expected in enumerate([1, 0]):
        Announcement.objects.create(title=f"News {number}", text="x")
        assert evaluation.evaluate_user(alice.pk, timezone.now()) == expected
    record(alice, Kind.LOGIN, Source())
    Announcement.objects.create(title="More", text="x")
    assert evaluation.evaluate_user(alice.pk, timezone.now()) == 1
    last = AlertMessage.objects.order_by("-pk")[:2]
    assert {(message.kind, message.outcome) for message in last} == {("security", "waiting"), ("news", "left_out")}


def test_a_paused_channel_gets_nothing_and_what_came_meanwhile_is_not_made_up_for(
    alice: User, channel: AlertChannel
) -> None:
    AlertChannel.objects.update(paused_at=timezone.now())
    record(alice, Kind.LOGIN, Source())
    assert told(alice, timezone.now()) == []
    channels.resume(alice, channel.pk)
    assert told(alice, timezone.now()) == []
    record(alice, Kind.LOGIN, Source())
    assert len(told(alice, timezone.now())) == 1


# --- who is evaluated ------------------------------------------------------------------------------------


def test_only_those_with_channels_are_evaluated_and_not_too_often(alice: User, bob: User) -> None:
    now = timezone.now()
    add_webhook(alice, HOOK)
    assert evaluation.due(now) == [alice.pk]
    evaluation.evaluate_user(alice.pk, now)
    assert evaluation.due(now + evaluation.EVERY / 2) == []
    assert evaluation.due(now + evaluation.EVERY) == [alice.pk]
    User.objects.filter(pk=alice.pk).update(deletion_asked_at=now)
    assert evaluation.due(now + evaluation.EVERY) == []


def test_a_security_event_is_evaluated_at_once(alice: User, channel: AlertChannel) -> None:
    now = timezone.now()
    evaluation.evaluate_user(alice.pk, now)
    record(alice, Kind.LOGIN_FAILED, Source())
    assert evaluation.due(timezone.now()) == []
    record(alice, Kind.LOGIN, Source())
    assert evaluation.due(timezone.now()) == [alice.pk]


def test_after_the_last_channel_is_removed_all_begins_anew(alice: User, studio: Host, channel: AlertChannel) -> None:
    channels.remove(alice, channel.pk)
    assert evaluation.due(timezone.now() + DAY) == []
    last_seen(studio, 5 * DAY)
    add_webhook(alice, HOOK)
    assert told(alice, timezone.now()) == []


def test_a_look_costs_the_same_however_many_computers_there_are(alice: User, channel: AlertChannel) -> None:
    def cost(ncomputers: int, name: str) -> int:
        for number in range(ncomputers):
            last_seen(make_host(alice, f"{name}{number}"), 5 * DAY)
        with CaptureQueriesContext(connection) as seen:
            assert evaluation.evaluate_user(alice.pk, timezone.now()) == 1
        return len(seen)

    evaluation.evaluate_user(alice.pk, timezone.now())
    few = cost(1, "few")
    assert few <= 25 and cost(20, "many") == few


@pytest.mark.django_db(transaction=True)
def test_two_looks_at_once_make_one_message(alice: User, studio: Host) -> None:
    add_webhook(alice, HOOK)
    now = timezone.now()
    evaluation.evaluate_user(alice.pk, now)
    last_seen(studio, 5 * DAY)

    def run(_: int) -> int:
        try:
            return evaluation.evaluate_user(alice.pk, now)
        finally:
            connection.close()

    with ThreadPoolExecutor(4) as pool:
        assert sorted(pool.map(run, range(4))) == [0, 0, 0, 1]
    assert AlertMessage.objects.count() == 1


@pytest.mark.parametrize("error", [DatabaseError, OverflowError])
def test_an_error_with_one_volunteer_does_not_keep_others_from_their_alerts(
    alice: User, bob: User, monkeypatch: pytest.MonkeyPatch, error: type[Exception]
) -> None:
    """Any error: a volunteer who could not be evaluated is first in line the next time too."""
    real: Callable[[int, dt.datetime], int] = evaluation.evaluate_user

    def broken(user_id: int, now: dt.datetime) -> int:
        if user_id == alice.pk:
            raise error
        return real(user_id, now)

    for user in (alice, bob):
        add_webhook(user, HOOK)
    monkeypatch.setattr(evaluation, "evaluate_user", broken)
    evaluation.evaluate_all(timezone.now())
    assert list(AlertWatch.objects.exclude(looked_at=None).values_list("pk", flat=True)) == [bob.pk]
