"""The mails that volunteers can choose: who gets which, once, and how they end."""

from __future__ import annotations

import datetime as dt
import re
from typing import Any

import pytest
from allauth.account.models import EmailAddress
from django.conf import settings as site_settings
from django.core import mail
from django.core.mail import EmailMessage
from django.test import Client
from pytest_django import DjangoAssertNumQueries, Settings

from accounting import tasks
from accounting.mails import send
from accounting.models import HostProject
from portal.models import Host, MailChoice, SentMail, User
from portal.ops.mail_choices import Mail, claim, unsubscribe
from portal.ops.mails import MailServerDown, read_token, unsubscribe_url
from tests.support.accounting_factories import credit, make_host, make_project
from tests.support.mail_server import MailServer
from tests.support.page_reader import Page, page_of

pytestmark = pytest.mark.django_db

# A Tuesday; the week before it is 2 to 8 March, 2026-W10.
NOW = dt.datetime(2026, 3, 10, 12, tzinfo=dt.UTC)
DAY = dt.timedelta(days=1)
CREDIT, HOUR = 1_000_000, 3_600_000_000
PAGE = "/account/email-preferences/"


def confirm(user: User) -> None:
    EmailAddress.objects.create(user=user, email=user.email, verified=True, primary=True)


@pytest.fixture
def confirmed(alice: User) -> User:
    confirm(alice)
    return alice


@pytest.fixture
def studio(confirmed: User) -> Host:
    """Alice's computer, heard of an hour ago."""
    host = make_host(confirmed, "studio")
    Host.objects.filter(pk=host.pk).update(last_contact_at=NOW - dt.timedelta(hours=1))
    return host


def seen(host: Host, moment: dt.datetime) -> None:
    Host.objects.filter(pk=host.pk).update(last_contact_at=moment)


def wants(user: User, **fields: Any) -> None:
    MailChoice.objects.update_or_create(user=user, defaults=fields)


def only_mail() -> EmailMessage:
    (message,) = mail.outbox
    return message


# --- status, and the first week -----------------------------------------------------------------------------


def test_the_status_comes_at_the_volunteers_own_interval(studio: Host, confirmed: User) -> None:
    """With 12 credits of yesterday; the computer in the attic has been silent for eight days."""
    credit(studio, make_project("Alpha"), "2026-03-09", (12 * CREDIT, 0, 2 * HOUR, 0, 3, 0))
    seen(make_host(confirmed, "attic"), NOW - 8 * DAY)
    wants(confirmed, status_days=7)
    assert [_sent(day) for day in range(8)] == [1, 0, 0, 0, 0, 0, 0, 1]
    message = mail.outbox[0]
    assert "In the last 7 days, your computers did:\n\n  12 credits" in message.body
    assert "- attic: last sync" in message.body and "- studio" not in message.body
    assert message.extra_headers["List-Unsubscribe-Post"] == "List-Unsubscribe=One-Click"


def _sent(day: int) -> int:
    """How many statuses are sent on a day from NOW on; what is noted as sent then was sent on that day."""
    sent = send.send_statuses(NOW + day * DAY)
    SentMail.objects.filter(key=f"{NOW + day * DAY:%Y-%m-%d}").update(sent_at=NOW + day * DAY)
    return sent


def test_without_work_the_status_says_so_and_without_a_computer_there_is_none(studio: Host, bob: User) -> None:
    confirm(bob)
    for user in (studio.owner, bob):
        wants(user, status_days=1)
    assert send.send_statuses(NOW) == 1
    assert "Your computers have reported no work in the last day." in only_mail().body


def test_an_unsubscribed_status_ends(studio: Host) -> None:
    wants(studio.owner, status_days=1)
    assert unsubscribe(studio.owner_id, Mail.STATUS)
    assert send.send_statuses(NOW) == 0


def test_who_has_no_computer_two_days_after_joining_is_written_to_once(confirmed: User, bob: User) -> None:
    for user in (confirmed, bob):
        User.objects.filter(pk=user.pk).update(created_at=NOW - DAY)
    confirm(bob)
    wants(bob, no_computer=False)
    assert [send.send_first_steps(NOW + day * DAY) for day in range(9)] == [0, 1, 0, 0, 0, 0, 0, 0, 0]
    assert only_mail().subject == f"{site_settings.SITE_NAME}: No computer yet"
    assert f"{site_settings.SITE_URL}connect/" in only_mail().body


def test_a_computer_makes_that_mail_needless(studio: Host) -> None:
    User.objects.filter(pk=studio.owner_id).update(created_at=NOW - 3 * DAY)
    assert send.send_first_steps(NOW) == 0


# --- silence ----------------------------------------------------------------------------------------------


def test_a_silence_is_told_once_however_often_the_task_runs(studio: Host) -> None:
    seen(studio, NOW - 3 * DAY)
    assert send.send_silences(NOW - dt.timedelta(seconds=1)) == 0
    assert [send.send_silences(NOW + hour * dt.timedelta(hours=1)) for hour in range(3)] == [1, 0, 0]
    message = only_mail()
    assert message.to == ["alice@example.org"]
    assert message.subject == f"{site_settings.SITE_NAME}: One of your computers has not synced"
    assert "- studio: last sync 7 Mar 2026, 12:00 UTC, 3 days ago" in message.body


def test_the_next_silence_is_told_again(studio: Host) -> None:
    seen(studio, NOW - 3 * DAY)
    send.send_silences(NOW)
    seen(studio, NOW + DAY)
    assert send.send_silences(NOW + 2 * DAY) == 0
    assert send.send_silences(NOW + 4 * DAY) == 1


def test_several_computers_come_in_one_mail(studio: Host, confirmed: User) -> None:
    for host in (studio, make_host(confirmed, "attic"), make_host(confirmed, "retired", retired_at=NOW)):
        seen(host, NOW - 3 * DAY)
    send.send_silences(NOW)
    body = only_mail().body
    assert "- studio:" in body and "- attic:" in body and "retired:" not in body


def test_the_owner_says_after_how_many_days(studio: Host, confirmed: User) -> None:
    wants(confirmed, silent_days=10)
    seen(studio, NOW - 10 * DAY)
    assert (send.send_silences(NOW - DAY), send.send_silences(NOW)) == (0, 1)


def test_old_silences_are_no_news(studio: Host) -> None:
    """When the tasks come back after a pause, or the first time that they run."""
    seen(studio, NOW - 10 * DAY)
    assert send.send_silences(NOW) == 0


def test_nobody_is_written_to_who_does_not_want_it_or_cannot_be(confirmed: User, bob: User) -> None:
    seen(make_host(bob, "unconfirmed"), NOW - 3 * DAY)
    host = make_host(confirmed, "studio")
    seen(host, NOW - 3 * DAY)
    wants(confirmed, silence=False)
    assert send.send_silences(NOW) == 0
    wants(confirmed, silence=True)
    User.objects.filter(pk=confirmed.pk).update(deletion_asked_at=NOW)
    assert send.send_silences(NOW) == 0
    User.objects.filter(pk=confirmed.pk).update(deletion_asked_at=None)
    assert send.send_silences(NOW) == 1


def test_silences_cost_the_same_however_many_were_told_already(
    studio: Host, confirmed: User, django_assert_num_queries: DjangoAssertNumQueries
) -> None:
    for number in range(5):
        seen(make_host(confirmed, f"node-{number}"), NOW - 3 * DAY)
    assert send.send_silences(NOW) == 1
    # The computers with their owners, and what was told.
    with django_assert_num_queries(2):
        assert send.send_silences(NOW) == 0


# --- no work, failing jobs ----------------------------------------------------------------------------------


def idle(host: Host) -> None:
    since = int((NOW - 2 * DAY).timestamp())
    state = {"troubles": [["no_work", "CPU", since]]}
    HostProject.objects.create(host=host, project=make_project("Alpha"), listed=True, state=state)


def test_no_work_and_failing_jobs_are_told_to_who_asked_once_a_week(studio: Host, confirmed: User) -> None:
    idle(studio)
    credit(studio, make_project("Beta"), "2026-03-10", (0, 0, 0, 0, 0, 3))
    assert send.send_concerns(NOW) == 0
    wants(confirmed, no_work=True, failing_jobs=True)
    assert [send.send_concerns(NOW), send.send_concerns(NOW + dt.timedelta(hours=6))] == [2, 0]
    no_work, failing = mail.outbox
    assert "- studio has had no work for its processors since 8 Mar 2026, 12:00 UTC" in no_work.body
    assert "- studio failed 3 of 3 tasks of Beta in the last 7 days." in failing.body
    # On the next Monday the failures of Tuesday are among the last seven days still; what a silent computer said of
    # projects is out of date.
    assert send.send_concerns(NOW + 6 * DAY) == 1
    seen(studio, NOW + 6 * DAY)
    assert send.send_concerns(NOW + 6 * DAY) == 1


# --- the week -----------------------------------------------------------------------------------------------


def test_last_weeks_summary_has_the_sums_of_its_days(studio: Host, confirmed: User) -> None:
    alpha, beta = make_project("Alpha"), make_project("Beta")
    credit(studio, alpha, "2026-03-02", (100 * CREDIT, 0, 5 * HOUR, 0, 3, 1))
    credit(studio, alpha, "2026-03-08", (20 * CREDIT, 3 * CREDIT, 0, 2 * HOUR, 2, 0))
    credit(studio, beta, "2026-03-05", (200 * CREDIT, 0, 1 * HOUR, 0, 1, 0))
    credit(studio, beta, "2026-03-01", (50 * CREDIT, 0, HOUR, 0, 1, 0))
    credit(studio, beta, "2026-03-09", (999 * CREDIT, 0, HOUR, 0, 1, 0))
    wants(confirmed, weekly_summary=True)
    assert [send.send_summaries(NOW), send.send_summaries(NOW + DAY)] == [1, 0]
    body = only_mail().body.replace("\u00a0", " ")
    # 100 + 20 + 3 + 200 credits, 5 + 2 + 1 hours, 3 + 2 + 1 jobs; the week before: the first of March.
    assert "323 credits, 8 h of run time, 6 tasks finished, 1 failed" in body
    assert "The week before: 50 credits, 1 h of run time, 1 task finished" in body
    assert "- Beta: 200 credits, 1 h of run time, 1 task finished\n- Alpha: 123 credits, 7 h of run time" in body
    assert "- studio: 323 credits" in body
    assert "from 2 Mar 2026 to 8 Mar 2026" in only_mail().subject


def test_a_week_without_work_and_late_in_the_week_nothing_is_sent(studio: Host, confirmed: User) -> None:
    wants(confirmed, weekly_summary=True)
    assert send.send_summaries(NOW) == 0
    credit(studio, make_project(), "2026-03-02", (CREDIT, 0, 0, 0, 0, 0))
    assert send.send_summaries(dt.datetime(2026, 3, 12, 12, tzinfo=dt.UTC)) == 0
    assert send.send_summaries(NOW) == 1


def test_summaries_are_for_those_who_asked(studio: Host) -> None:
    credit(studio, make_project(), "2026-03-02", (CREDIT, 0, 0, 0, 0, 0))
    assert send.send_summaries(NOW) == 0


# --- sending ------------------------------------------------------------------------------------------------


def test_a_mail_that_could_not_be_sent_is_sent_by_the_next_run(studio: Host, settings: Settings) -> None:
    seen(studio, NOW - 3 * DAY)
    backend = settings.EMAIL_BACKEND
    settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
    # Nobody listens on port 9.
    settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", 9
    with pytest.raises(MailServerDown):
        send.send_silences(NOW)
    assert not SentMail.objects.exists()
    tasks.send_mails()
    tasks.send_concerns()
    settings.EMAIL_BACKEND = backend
    assert send.send_silences(NOW) == 1


@pytest.mark.parametrize(
    ("reply", "is_told"),
    [
        ("550 5.1.1 no such user", True),
        ("550 no such user", True),
        ("450 4.7.1 try again later", False),
        # The operator's mail server refuses every mail until it is set up: nobody was told.
        ("554 5.7.1 Relay access denied", False),
        ("550 relay not permitted", False),
    ],
)
def test_a_refused_person_does_not_hold_up_others_and_is_tried_again_if_refused_for_now(
    studio: Host, bob: User, settings: Settings, reply: str, is_told: bool
) -> None:
    confirm(bob)
    seen(studio, NOW - 3 * DAY)
    seen(make_host(bob, "attic"), NOW - 3 * DAY)
    with MailServer(settings) as server:
        server.refused["alice@example.org"] = reply
        assert send.send_silences(NOW) == 1
        assert server.taken == ["bob@example.org"]
        server.refused.clear()
        assert send.send_silences(NOW) == (0 if is_told else 1)
    assert ("alice@example.org" in server.taken) is not is_told


def test_what_two_runs_claim_at_once_one_gets(confirmed: User) -> None:
    assert claim(confirmed, Mail.SILENCE, ["a", "b", "a"]) == ["a", "b"]
    assert claim(confirmed, Mail.SILENCE, ["b", "c"]) == ["c"]
    assert claim(confirmed, Mail.NO_WORK, ["a"]) == ["a"]


def test_a_name_with_line_breaks_or_markup_does_no_harm(confirmed: User) -> None:
    host = make_host(confirmed, "x", given_name="<b>\nBcc: eve@example.org")
    seen(host, NOW - 3 * DAY)
    send.send_silences(NOW)
    message = only_mail()
    assert message.recipients() == ["alice@example.org"] and "<b>" in message.body
    assert "Bcc" not in dict(message.message().items())


def test_the_tasks_run_by_the_clock() -> None:
    scheduled = {entry["task"] for entry in site_settings.CELERY_BEAT_SCHEDULE.values()}
    assert {"accounting.tasks.send_mails", "accounting.tasks.send_concerns"} <= scheduled


# --- ending them --------------------------------------------------------------------------------------------


def leave_path(message: EmailMessage) -> str:
    header = str(message.extra_headers["List-Unsubscribe"])
    assert re.findall(r"https?://\S+/mails/end/\S+", str(message.body)) == [header.strip("<>")]
    return "/" + header.strip("<>").removeprefix(site_settings.SITE_URL)


def test_every_mail_has_an_address_that_ends_its_kind_signed_out(studio: Host, confirmed: User) -> None:
    wants(confirmed, weekly_summary=True)
    seen(studio, NOW - 3 * DAY)
    send.send_silences(NOW)
    message = only_mail()
    assert message.extra_headers["List-Unsubscribe-Post"] == "List-Unsubscribe=One-Click"
    path = leave_path(message)
    # No cookie and no form of ours: a mail program presses the button.
    stranger = Client(enforce_csrf_checks=True)
    asked = stranger.get(path)
    assert "Unsubscribe?" in Page(asked.content.decode()).words
    assert MailChoice.objects.get(user=confirmed).silence
    reply = stranger.post(path, "List-Unsubscribe=One-Click", content_type="application/x-www-form-urlencoded")
    assert "You have unsubscribed" in Page(reply.content.decode()).words
    choice = MailChoice.objects.get(user=confirmed)
    assert (choice.silence, choice.weekly_summary) == (False, True)
    assert stranger.post(path).status_code == 200
    seen(studio, NOW - 2 * DAY)
    assert send.send_silences(NOW + DAY) == 0


@pytest.mark.parametrize("kind", Mail)
def test_each_kind_has_a_column_of_its_own(confirmed: User, kind: Mail) -> None:
    wants(confirmed, silence=True, no_work=True, failing_jobs=True, weekly_summary=True, status_days=7, lapsed=True)
    assert unsubscribe(confirmed.pk, kind)
    choice = MailChoice.objects.get(user=confirmed)
    assert [each for each in Mail if not getattr(choice, each.value)] == [kind]


def test_a_made_up_address_ends_nothing(client: Client, confirmed: User) -> None:
    good = unsubscribe_url(confirmed.pk, Mail.SILENCE).rstrip("/").rpartition("/")[2]
    assert read_token(good) == (confirmed.pk, Mail.SILENCE)
    for token in (good[:-1] + "x", "x", "a" * 5000, good.upper()):
        assert read_token(token) is None
        assert client.post(f"/mails/end/{token}/").status_code == 404
    assert not MailChoice.objects.exists()
    gone = unsubscribe_url(10**9, Mail.SILENCE).rstrip("/").rpartition("/")[2]
    assert client.post(f"/mails/end/{gone}/").status_code == 404


# --- the page -----------------------------------------------------------------------------------------------


def test_the_page_shows_and_keeps_the_choice(client: Client, confirmed: User) -> None:
    client.force_login(confirmed)
    mail_page = page_of(client, PAGE)
    boxes = {e.attributes["name"]: "checked" in e.attributes for e in mail_page.all("input", type="checkbox")}
    assert {name for name, is_on in boxes.items() if is_on} == {"silence", "no_computer"}
    assert boxes.keys() == {"silence", "no_work", "failing_jobs", "weekly_summary", "no_computer", "lapsed"}
    client.post(PAGE, {"silent_days": "7", "status_days": "30", "weekly_summary": "on"})
    choice = MailChoice.objects.get(user=confirmed)
    assert (choice.silence, choice.silent_days, choice.status_days, choice.weekly_summary) == (False, 7, 30, True)
    client.post(PAGE, {"silent_days": "8", "status_days": "0", "no_work": "on"})
    choice.refresh_from_db()
    assert (choice.silent_days, choice.weekly_summary, choice.no_work) == (8, False, True)


@pytest.mark.parametrize("days", ["0", "61", "-1", "x", "", "1e304", "nan", "9" * 400])
def test_a_number_of_days_that_cannot_be_is_refused(client: Client, confirmed: User, days: str) -> None:
    client.force_login(confirmed)
    assert client.post(PAGE, {"silent_days": days}).status_code == 422
    assert not MailChoice.objects.exists()


def test_an_address_that_is_not_confirmed_is_told_so(client: Client, bob: User) -> None:
    client.force_login(bob)
    assert "Until it is, none of the e-mails below are sent" in page_of(client, PAGE).words
