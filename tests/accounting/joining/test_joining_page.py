"""The page for adding many computers: limits, join tokens, requests for more, and what operators do with these."""

from __future__ import annotations

import re
import time

import pytest
from django.core import mail
from django.db import transaction
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from accounting.models import Project
from portal.computers.limit_requests import decide, request_limit
from portal.models import HostLimitRequest, JoinToken, User
from tests.support.am_rpc import attach, make_computer, post, sync
from tests.support.lock_waits import meanwhile
from tests.support.page_text import text_of

PAGE = "/computers/joining/"
REQUESTS = "/admin/portal/hostlimitrequest/"


def test_a_token_is_shown_once_with_a_command_and_files_that_attach(
    signed_in: Client, alice: User, projects: list[Project]
) -> None:
    response = signed_in.post(PAGE, {"group": " room  12 ", "max_hosts": "2", "days": "30"})
    made = JoinToken.objects.get()
    assert (made.group, made.max_hosts, (made.expires_at - made.created_at).days) == ("room 12", 2, 30)
    page = response.content.decode()
    command = re.search(rf"boinccmd --acct_mgr attach \S+ {made.login} (cobblejoin_[0-9a-f]{{32}})", page)
    assert command is not None
    assert "no-store" in response.headers["Cache-Control"]
    assert command[1] not in signed_in.get(PAGE).content.decode()
    sync(make_computer(alice, email=made.login, password=command[1]))
    # The file for images has the value that the client makes of the token.
    sent = re.search(r"&lt;password_hash&gt;([0-9a-f]{32})&lt;/password_hash&gt;", page)
    assert sent is not None
    other = make_computer(alice, "pc-2", email=made.login, password=command[1])
    assert sent[1].encode() in other.request(time.time())
    assert "1 of 2 computers joined" in text_of(signed_in.get(PAGE))
    assert [message.subject for message in mail.outbox if "join token" in message.subject]


def test_a_token_is_made_only_by_who_signed_in_lately(client: Client, alice: User) -> None:
    client.force_login(alice)
    response = client.post(PAGE, {"group": "lab", "max_hosts": "2", "days": "30"})
    assert response.status_code == 302 and "/account/reauthenticate/" in response.headers["Location"]
    assert not JoinToken.objects.exists()


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"group": "a, b"}, "no commas"),
        ({"group": "x" * 31}, "at most 30 characters"),
        ({"max_hosts": "0"}, "greater than or equal to 1"),
        ({"max_hosts": "301"}, "for 300 more computers now"),
        ({"days": "1000"}, "1000"),
    ],
)
def test_a_token_that_cannot_be_is_refused_with_words(fields: dict[str, str], words: str, signed_in: Client) -> None:
    response = signed_in.post(PAGE, {"group": "lab", "max_hosts": "2", "days": "30"} | fields)
    assert response.status_code == 422
    assert words in text_of(response)
    assert not JoinToken.objects.exists()


def test_the_pages_say_the_limits_before_they_strike(
    signed_in: Client, alice: User, projects: list[Project], settings: Settings
) -> None:
    settings.NEW_HOSTS_PER_DAY, settings.HOSTS_PER_ACCOUNT = 2, 50
    attach(alice)
    for page in (PAGE, "/connect/"):
        text = text_of(signed_in.get(page))
        assert "Your account may add 2 computers within 24 hours, and has added 1." in text
        assert "It has 1 computer of at most 50, including retired ones." in text
        assert "next one can be added" not in text
    attach(alice, "attic")
    assert "The next one can be added from" in text_of(signed_in.get("/connect/"))
    refusal = post(make_computer(alice, "nas").request(time.time())).error[1]
    assert f"Ask for more, or make a join token, at {settings.SITE_URL}computers/joining/" in refusal


def test_operators_grant_what_volunteers_request(
    signed_in: Client, client: Client, alice: User, operator: User, projects: list[Project], settings: Settings
) -> None:
    settings.NEW_HOSTS_PER_DAY = 1
    for number in ("400", "500"):
        signed_in.post(f"{PAGE}request/", {"hosts_per_day": number, "reason": "a computing centre"})
    # A second one while the first waits is none.
    request = HostLimitRequest.objects.get()
    assert (request.user, request.hosts_per_day) == (alice, 400)
    assert "have not decided yet" in text_of(signed_in.get(PAGE))
    desk = Client()
    desk.force_login(operator)
    desk.post(REQUESTS, {"action": "grant", "_selected_action": [request.pk]})
    alice.refresh_from_db()
    request.refresh_from_db()
    assert (alice.new_hosts_per_day, request.is_granted, request.decided_by) == (400, True, operator)
    [message] = mail.outbox
    assert message.to == [alice.email] and "may add 400 computers within a day" in message.body
    for name in ("studio", "attic"):
        assert sync(make_computer(alice, name)).error == (0, "")
    # What is decided stays so.
    desk.post(REQUESTS, {"action": "decline", "_selected_action": [request.pk]})
    assert HostLimitRequest.objects.get().is_granted and len(mail.outbox) == 1


def test_a_declined_request_changes_nothing_and_may_be_made_again(
    signed_in: Client, alice: User, operator: User
) -> None:
    form = {"hosts_per_day": "400", "reason": "a computing centre"}
    signed_in.post(f"{PAGE}request/", form)
    desk = Client()
    desk.force_login(operator)
    desk.post(REQUESTS, {"action": "decline", "_selected_action": [HostLimitRequest.objects.get().pk]})
    alice.refresh_from_db()
    assert alice.new_hosts_per_day is None
    assert "declined your request" in mail.outbox[0].body
    assert "was declined" in text_of(signed_in.get(PAGE))
    signed_in.post(f"{PAGE}request/", form)
    assert HostLimitRequest.objects.filter(decided_at=None).count() == 1


@pytest.mark.django_db(transaction=True)
def test_of_two_operators_who_decide_at_once_the_second_is_told_that_it_was_decided(alice: User, bob: User) -> None:
    now = timezone.now()
    assert request_limit(alice, 300, "A laboratory", now)
    asked = HostLimitRequest.objects.get()
    with meanwhile(lambda: decide(asked.pk, bob, grant=True, now=now)) as begin:
        with transaction.atomic():
            decide(asked.pk, alice, grant=False, now=now)
            second = begin()
        assert second.result() is None
    alice.refresh_from_db()
    asked.refresh_from_db()
    assert (asked.is_granted, alice.new_hosts_per_day) == (False, None)
