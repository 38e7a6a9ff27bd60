"""How a client logs in, what is handed to it, and every way to be refused."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import pytest
from allauth.account.models import EmailAddress
from django.core import mail
from django.utils import timezone
from pytest_django import Settings

from accounting.models import HostProject, Project
from accounting.rpc import answer as rpc_answer
from portal.models import ClientKey, Host, User, WaitingMail
from portal.operators import support
from portal.people.accounts import issue_client_key
from portal.people.key_mails import send_waiting
from portal.wire.credentials import client_password_hash, key_hash
from tests.support.am_requests import captured
from tests.support.am_rpc import (
    HOUR,
    START,
    attach,
    call,
    copy_of,
    credited,
    host_of,
    hours_credited,
    hours_pass,
    make_computer,
    post,
    sync,
    work,
)
from tools.simulation.client import SimulatedComputer

Commits = Callable[..., AbstractContextManager[list[Any]]]


def test_a_first_contact_makes_a_host_and_hands_over_a_key(alice: User, projects: list[Project]) -> None:
    computer = make_computer(alice)
    reply = sync(computer)
    host = Host.objects.get()
    key = ClientKey.objects.get()
    assert (host.owner, host.domain_name, host.ncpus, host.p_fpops) == (alice, "studio", 4, 4.32e9)
    assert (key.user, key.host, key.origin, key.revoked_at) == (alice, host, "attach", None)
    assert bytes(key.key_hash) == key_hash(computer.authenticator)
    assert len(computer.authenticator) == 32 and "_" not in computer.authenticator
    assert reply.text("opaque/host") == host.token
    assert set(reply.accounts) == {project.master_url for project in projects}
    assert "password_hash" not in computer.request(1.0).decode()


def test_an_account_attaches_so_many_computers_a_day_and_the_client_shows_it(
    alice: User, projects: list[Project], settings: Settings
) -> None:
    settings.NEW_HOSTS_PER_DAY = 1
    known = attach(alice)
    other = make_computer(alice, "attic")
    refused = post(other.request(time.time()))
    assert refused.text("error_msg").startswith(
        "This account has added 1 of the 1 computers that it may add within a day."
    )
    assert (Host.objects.count(), ClientKey.objects.count()) == (1, 1)
    # Who is there already goes on.
    assert sync(known).text("error_msg") == ""


def test_a_mail_tells_of_each_key_that_is_handed_over_for_the_password(alice: User, projects: list[Project]) -> None:
    EmailAddress.objects.create(user=alice, email=alice.email, verified=True, primary=True)
    computer = make_computer(alice)
    for _ in range(2):
        sync(computer)
        send_waiting(timezone.now())
        # Nothing is sent for a contact with the key.
        [sent] = mail.outbox
        assert sent.to == [alice.email]
        assert "has a new key to your account" in sent.subject and "127.0.0.1" in sent.body


def test_a_key_that_is_not_handed_over_brings_no_mail(
    alice: User, projects: list[Project], monkeypatch: pytest.MonkeyPatch, django_capture_on_commit_callbacks: Commits
) -> None:
    monkeypatch.setattr(rpc_answer, "MAX_ATTEMPTS", 0)
    with django_capture_on_commit_callbacks() as callbacks:
        assert post(make_computer(alice).request(time.time())).error[0] != 0
    assert (callbacks, WaitingMail.objects.count(), ClientKey.objects.count()) == ([], 0, 0)


def _with_its_key(alice: User) -> SimulatedComputer:
    return attach(alice)


def _by_password_again(alice: User) -> SimulatedComputer:
    return copy_of(attach(alice), authenticator="")


def _with_a_key_that_was_looked_up(alice: User) -> SimulatedComputer:
    return make_computer(alice, authenticator=issue_client_key(alice, ClientKey.Origin.LOOKUP), password="")


def _without_its_id(alice: User) -> SimulatedComputer:
    return copy_of(attach(alice), opaque="")


def _after_a_lost_reply(alice: User) -> SimulatedComputer:
    computer = make_computer(alice)
    post(computer.request(time.time()))
    return computer


@pytest.mark.parametrize(
    ("way", "is_handed_a_key", "nkeys"),
    [
        (make_computer, True, 1),
        (_with_its_key, False, 1),
        (_by_password_again, True, 2),
        (_with_a_key_that_was_looked_up, False, 1),
        (_without_its_id, False, 1),
        (_after_a_lost_reply, True, 2),
    ],
)
def test_each_way_to_log_in_leads_to_one_record_and_leaves_all_keys_valid(
    way: Callable[[User], SimulatedComputer], is_handed_a_key: bool, nkeys: int, alice: User, projects: list[Project]
) -> None:
    computer = way(alice)
    tokens = [host.token for host in Host.objects.all()]
    reply = sync(computer)
    host = Host.objects.get()
    assert bool(reply.text("authenticator")) is is_handed_a_key
    assert reply.text("opaque/host") == host.token
    assert tokens in ([], [host.token])
    keys = ClientKey.objects.all()
    assert [(key.host, key.revoked_at) for key in keys] == [(host, None)] * nkeys
    assert sync(computer).error == (0, "")


def test_a_client_that_lost_its_id_goes_on_from_where_it_was(alice: User, projects: list[Project]) -> None:
    alpha = projects[0]
    computer = attach(alice)
    hours_pass(computer, 10)
    work(computer, alpha, 3)
    sync(computer)
    computer.opaque = ""
    sync(computer)
    # Nothing is credited again, and what follows is.
    assert hours_credited(computer, alpha) == 3
    hours_pass(computer, 2)
    work(computer, alpha, 1)
    sync(computer)
    assert hours_credited(computer, alpha) == 4


def test_a_client_that_lost_its_id_keeps_the_allowance_of_its_record(alice: User, projects: list[Project]) -> None:
    alpha = projects[0]
    computer = make_computer(alice)
    for hour in (0, 10):
        call(computer, START + hour * HOUR)
    computer.authenticator = computer.opaque = ""
    work(computer, alpha, 20)
    call(computer, START + 10 * HOUR + HOUR / 60)
    # Four processors did nothing for ten hours, and 20 h of one processor fit into that. A minute is too short.
    assert hours_credited(computer, alpha) == 20


def test_a_lost_first_reply_leaves_full_credit(alice: User, projects: list[Project]) -> None:
    alpha = projects[0]
    computer = make_computer(alice)
    post(computer.request(time.time()))
    sync(computer)
    hours_pass(computer, 5)
    work(computer, alpha, 5)
    sync(computer)
    assert hours_credited(computer, alpha) == 5


def test_the_login_is_taken_in_any_letter_case(projects: list[Project]) -> None:
    user = User.objects.create_user("user@example.org", "secret", name="User")
    assert b"<name>User@Example.ORG</name>" in captured("am_request_second_password_no_project")
    first = post(captured("am_request_first_password"))
    second = post(captured("am_request_second_password_no_project"))
    assert first.error == second.error == (0, "")
    assert first.text("opaque/host") == second.text("opaque/host") == Host.objects.get(owner=user).token
    assert first.text("authenticator") != second.text("authenticator")


def test_after_a_change_of_address_the_new_one_logs_in_and_keys_go_on(alice: User, projects: list[Project]) -> None:
    computer = attach(alice)
    alice.email = "alice@example.com"
    alice.set_password("alice's secret")
    alice.save()
    assert post(copy_of(computer, authenticator="", email="alice@example.org").request(1.0)).error[0] == -136
    sync(copy_of(computer, authenticator="", email="Alice@Example.com"))
    sync(computer)
    assert Host.objects.count() == 1


def test_after_a_change_of_address_alone_the_client_is_told_to_log_in_on_the_web(
    alice: User, projects: list[Project]
) -> None:
    User.objects.update(email="alice@example.com")
    number, sentence = post(make_computer(alice, email="alice@example.com").request(1.0)).error
    assert number == -206
    assert "address was changed" in sentence


def test_a_computer_that_changes_hands_gets_a_record_of_its_new_owner(
    alice: User, bob: User, projects: list[Project]
) -> None:
    alpha = projects[0]
    computer = attach(alice)
    hours_pass(computer, 10)
    work(computer, alpha, 5)
    sync(computer)
    hers = host_of(computer)
    his = copy_of(computer, authenticator="", email=bob.email, password="bob's secret")
    sync(his)
    assert host_of(his).owner == bob
    assert host_of(his) != hers
    # What was done before is hers, and his begins where it stands.
    assert credited(his, alpha) == (0,) * 6
    assert HostProject.objects.get(host=hers, project=alpha).credited[2] == 5 * 3600 * 10**6


def test_the_key_is_marked_as_used_with_its_computer(alice: User, projects: list[Project]) -> None:
    computer = attach(alice)
    assert ClientKey.objects.get().last_used_at is None
    sync(computer)
    key = ClientKey.objects.get()
    assert key.host == host_of(computer)
    assert key.last_used_at is not None


def _wrong_password(alice: User) -> bytes:
    return make_computer(alice, password="wrong").request(1.0)


def _unknown_account(alice: User) -> bytes:
    return make_computer(alice, email="nobody@example.org").request(1.0)


def _no_hash(alice: User) -> bytes:
    hash_ = client_password_hash("alice's secret", alice.email)
    return make_computer(alice).request(1.0).replace(hash_.encode(), b"alice's secret")


def _nobody(alice: User) -> bytes:
    message = make_computer(alice).request(1.0)
    return message[: message.index(b"   <name>")] + message[message.index(b"   <host_cpid>") :]


def _unknown_key(alice: User) -> bytes:
    return make_computer(alice, authenticator="f" * 32).request(1.0)


def _unknown_key_and_id(alice: User) -> bytes:
    return make_computer(alice, authenticator="f" * 32, opaque=f"<host>{'a' * 32}</host>").request(1.0)


def _revoked_key(alice: User) -> bytes:
    computer = attach(alice)
    ClientKey.objects.update(revoked_at=timezone.now())
    return computer.request(1.0)


def _key_of_a_closed_account(alice: User) -> bytes:
    computer = attach(alice)
    User.objects.update(is_active=False)
    return computer.request(1.0)


def _closed_account(alice: User) -> bytes:
    User.objects.update(is_active=False)
    return make_computer(alice).request(1.0)


def _key_of_a_blocked_account(alice: User) -> bytes:
    computer = attach(alice)
    block(alice)
    return computer.request(1.0)


def _blocked_account(alice: User) -> bytes:
    block(alice)
    return make_computer(alice).request(1.0)


def block(user: User) -> None:
    operator = User.objects.create_superuser("operator@example.org", "a secret")
    support.block(user, operator, "a reason for operators")


def _key_as_another_people_write_it(alice: User) -> bytes:
    return attach(alice).request(1.0).replace(b"<authenticator>", b"<authenticator>" + b"1_" * 200)


@pytest.mark.parametrize(
    ("message", "number", "words"),
    [
        (_wrong_password, -206, "password is wrong"),
        (_unknown_account, -136, "no account with this e-mail"),
        (_no_hash, -1, "32 hexadecimal digits"),
        (_nobody, -1, "32 hexadecimal digits"),
        (_unknown_key, -155, "no longer valid"),
        (_unknown_key_and_id, -155, "no longer valid"),
        (_revoked_key, -155, "no longer valid"),
        (_key_of_a_closed_account, -155, "no longer valid"),
        (_closed_account, -1, "account is closed"),
        (_key_of_a_blocked_account, -1, "account is blocked"),
        (_blocked_account, -1, "account is blocked"),
        (_key_as_another_people_write_it, -112, "authenticator"),
        (lambda _: b"<html/>", -112, "acct_mgr_request"),
        (lambda _: b"", -112, "acct_mgr_request"),
    ],
)
def test_each_refusal_has_boincs_number_and_a_sentence(
    message: object, number: int, words: str, alice: User, projects: list[Project]
) -> None:
    assert callable(message)
    reply = post(message(alice))
    assert reply.error[0] == number
    assert words in reply.error[1]
    # Nothing else is in a refusal, and it says so once.
    assert [element.tag for element in reply.root] == ["error_num", "error_msg"]


def test_an_unblocked_account_works_again_with_the_same_key(alice: User, projects: list[Project]) -> None:
    computer = attach(alice)
    block(alice)
    assert post(computer.request(1.0)).error[0] == -1
    support.unblock(alice, User.objects.get(email="operator@example.org"), "it was a mistake")
    assert post(computer.request(1.0)).error == (0, "")


def test_guessing_passwords_is_limited(alice: User, projects: list[Project], settings: Settings) -> None:
    settings.CLIENT_LOGIN_FAILURES = 3
    wrong = make_computer(alice, password="wrong").request(1.0)
    assert [post(wrong).error[0] for _ in range(3)] == [-206] * 3
    number, sentence = post(make_computer(alice).request(1.0)).error
    assert number == -206
    assert "too many attempts" in sentence
    assert not Host.objects.exists()


def test_password_checks_are_limited_and_keys_are_not(alice: User, projects: list[Project], settings: Settings) -> None:
    settings.CLIENT_PASSWORD_CHECKS_PER_MINUTE = 2
    computer = attach(alice)
    by_password = copy_of(computer, authenticator="")
    post(by_password.request(time.time()))
    assert "too many attempts" in post(by_password.request(time.time())).error[1]
    for _ in range(5):
        sync(computer)
