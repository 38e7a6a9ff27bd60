"""Computers that make their first contact with a join token instead of an e-mail address and a password."""

from __future__ import annotations

import datetime as dt
import time

import pytest
from django.core import mail
from django.db import IntegrityError, connection, transaction
from django.test.utils import CaptureQueriesContext
from django.utils import timezone
from pytest_django import Settings

from accounting.models import Project
from portal.models import ClientKey, Host, JoinToken, SecurityEvent, User, WaitingMail
from portal.people.join_tokens import JoinTokenRefused, joinable_hosts, make_join_token, revoke_join_token
from portal.people.recovery import revoke_access
from portal.people.security_events import NOWHERE
from portal.wire.scanner import ProtocolError
from tests.support.am_rpc import HOUR, START, attach, call, copy_of, host_of, make_computer, post, sync
from tools.simulation.client import SimulatedComputer

WEEK = dt.timedelta(days=7)


def token_for(user: User, max_hosts: int = 3, group: str = "lab 2") -> tuple[JoinToken, str]:
    return make_join_token(user, group=group, max_hosts=max_hosts, lifetime=WEEK)


def newcomer(user: User, token: tuple[JoinToken, str], name: str = "pc-1", **fields: object) -> SimulatedComputer:
    """A computer whose client was given the two parts of the token."""
    return make_computer(user, name, email=token[0].login, password=token[1], **fields)


def test_a_computer_joins_with_a_token_and_lands_in_its_group(alice: User, projects: list[Project]) -> None:
    token = token_for(alice)
    computer = newcomer(alice, token)
    reply = sync(computer)
    assert reply.error == (0, "")
    host, key = Host.objects.get(), ClientKey.objects.get()
    assert (host.owner, host.groups, host.join_token) == (alice, ["lab 2"], token[0])
    assert (key.user, key.host, key.origin) == (alice, host, "join")
    assert set(reply.accounts) == {project.master_url for project in projects}
    # From here on it is like any other: it sends the key, and no more the token.
    assert sync(computer).error == (0, "")
    assert token[1].encode() not in computer.request(time.time())
    assert JoinToken.objects.get().joined_hosts == 1
    # A laboratory wants no mail and no alert for each computer.
    assert (mail.outbox, WaitingMail.objects.count()) == ([], 0)
    assert list(SecurityEvent.objects.values_list("kind", flat=True)) == ["join_made"]


def test_only_a_keyed_hash_of_the_token_is_stored(alice: User, settings: Settings, projects: list[Project]) -> None:
    made, text = token_for(alice)
    row = JoinToken.objects.filter(pk=made.pk).values().get()
    assert text not in str(row) and text.removeprefix("cobblejoin_").encode().hex() not in str(row)
    settings.ACCOUNT_KEY_SECRET = "another secret of thirty-two characters"
    assert "no such join token" in post(newcomer(alice, (made, text)).request(1.0)).error[1]


def test_a_token_is_for_its_number_of_computers(alice: User, projects: list[Project]) -> None:
    token = token_for(alice, max_hosts=2)
    first, second = (newcomer(alice, token, f"pc-{number}") for number in (1, 2))
    sync(first)
    sync(second)
    refused = post(newcomer(alice, token, "pc-3").request(time.time())).error
    assert refused[0] != 0
    assert "has been used for all its computers" in refused[1] and "/computers/joining/" in refused[1]
    assert Host.objects.count() == ClientKey.objects.count() == 2
    # One that is installed again is no other computer.
    sync(copy_of(first, authenticator="", opaque=""))
    assert (Host.objects.count(), JoinToken.objects.get().joined_hosts) == (2, 2)


def test_the_database_keeps_a_token_within_its_number(alice: User) -> None:
    token, _ = token_for(alice, max_hosts=2)
    with pytest.raises(IntegrityError, match="jointoken_within_its_number"), transaction.atomic():
        JoinToken.objects.filter(pk=token.pk).update(joined_hosts=3)


def test_computers_with_a_token_are_beside_the_limit_of_a_day(
    alice: User, projects: list[Project], settings: Settings
) -> None:
    settings.NEW_HOSTS_PER_DAY = 1
    token = token_for(alice, max_hosts=5)
    for number in range(3):
        assert sync(newcomer(alice, token, f"pc-{number}")).error == (0, "")
    attach(alice)
    assert "has added 1 of the 1 computers" in post(make_computer(alice, "attic").request(time.time())).error[1]
    assert sync(newcomer(alice, token, "pc-3")).error == (0, "")


def test_a_token_that_ended_is_refused_and_its_computers_go_on(alice: User, projects: list[Project]) -> None:
    token = token_for(alice)
    computer = newcomer(alice, token)
    sync(computer)
    revoke_join_token(alice, token[0].pk)
    assert "This join token was revoked" in post(newcomer(alice, token, "pc-2").request(1.0)).error[1]
    assert sync(computer).error == (0, "")
    JoinToken.objects.update(revoked_at=None, expires_at=timezone.now())
    assert "This join token was valid until" in post(newcomer(alice, token, "pc-2").request(1.0)).error[1]
    assert Host.objects.count() == 1


@pytest.mark.parametrize(
    ("name", "secret"), [("join-000000000000", None), (None, "cobblejoin_" + "0" * 32), ("JOIN-", "")]
)
def test_a_wrong_token_is_refused_and_counted(
    name: str | None, secret: str | None, alice: User, projects: list[Project], settings: Settings
) -> None:
    settings.CLIENT_LOGIN_FAILURES = 2
    made, text = token_for(alice)
    wrong = make_computer(alice, email=name or made.login, password=text if secret is None else secret)
    # A room that was installed with one mistyped token repeats it, which is one failure.
    refusals = [post(copy_of(wrong, name=f"pc-{number}").request(1.0)).error for number in range(5)]
    assert {number for number, _ in refusals} == {-206}
    assert all("no such join token" in sentence for _, sentence in refusals)
    assert post(newcomer(alice, (made, text)).request(1.0)).error == (0, "")
    # Who guesses sends others.
    post(copy_of(wrong, password="cobblejoin_" + "1" * 32).request(1.0))
    assert "too many wrong logins" in post(newcomer(alice, (made, text), "pc-9").request(1.0)).error[1]
    assert Host.objects.count() == 1


@pytest.mark.parametrize(
    ("minutes", "name", "hosts"),
    [(11, "pc-1", 1), (9, "pc-1", 2), (11, "pc-2", 2)],
    ids=["reset", "one of several with one name", "another name"],
)
def test_a_computer_that_is_reset_whenever_it_starts_takes_one_place(
    minutes: int, name: str, hosts: int, alice: User, projects: list[Project]
) -> None:
    token = token_for(alice)
    call(newcomer(alice, token, cpid="1" * 32), START)
    call(newcomer(alice, token, name, cpid="2" * 32), START + dt.timedelta(minutes=minutes))
    assert Host.objects.count() == JoinToken.objects.get().joined_hosts == hosts


def test_a_known_computer_without_an_id_is_locked_as_the_write_locks_it(alice: User, projects: list[Project]) -> None:
    call(newcomer(alice, token_for(alice)), START)
    another = newcomer(alice, token_for(alice, group="lab 3"), cpid="")
    with CaptureQueriesContext(connection) as asked:
        call(another, START + HOUR)
    assert Host.objects.get().groups == ["lab 2", "lab 3"]
    places = [
        next(number for number, query in enumerate(asked) if begin in query["sql"])
        for begin in ('FROM "accounting_hostledger"', "UPDATE portal_host SET groups")
    ]
    assert "FOR UPDATE" in asked[places[0]]["sql"] and places == sorted(places)


def test_a_token_of_a_closed_account_attaches_nothing(alice: User, projects: list[Project]) -> None:
    token = token_for(alice)
    User.objects.update(is_active=False)
    assert "account of this join token is closed" in post(newcomer(alice, token).request(1.0)).error[1]


def test_taking_back_an_account_ends_its_tokens(alice: User, projects: list[Project]) -> None:
    token = token_for(alice)
    revoke_access(alice, NOWHERE)
    assert "was revoked" in post(newcomer(alice, token).request(1.0)).error[1]


def test_computers_of_one_image_with_one_id_are_several(alice: User, projects: list[Project]) -> None:
    """BOINC ran once before the image was made, so that all have its cross-project id, and names of their own."""
    token = token_for(alice)
    computers = [newcomer(alice, token, f"pc-{number}", cpid="c" * 32) for number in range(3)]
    for computer in computers:
        sync(computer)
    assert len({host_of(computer).pk for computer in computers}) == 3


def test_an_image_of_an_attached_computer_gets_records_in_its_group(alice: User, projects: list[Project]) -> None:
    """Its copies carry its key and its id. Each makes an id of its own, or a project tells them apart."""
    token = token_for(alice, max_hosts=2)
    original = newcomer(alice, token)
    call(original, START)
    copies = [copy_of(original, cpid=f"{number:032x}", name=f"pc-{number}") for number in (2, 3)]
    for round_ in range(1, 4):
        for minute, computer in enumerate((original, *copies)):
            call(computer, START + dt.timedelta(hours=6 * round_, minutes=minute))
    hosts = [host_of(computer) for computer in (original, *copies)]
    assert len({host.pk for host in hosts}) == 3
    assert [host.groups for host in hosts] == [["lab 2"]] * 3
    # The second copy found no place any more: it counts within the limit of a day.
    assert JoinToken.objects.get().joined_hosts == 2
    assert sorted(host.join_token_id is None for host in hosts) == [False, False, True]


def test_copies_beyond_all_limits_keep_their_work_until_there_is_room(
    alice: User, projects: list[Project], settings: Settings
) -> None:
    original = newcomer(alice, token_for(alice, max_hosts=1))
    settings.NEW_HOSTS_PER_DAY = 1
    for hour, computer in enumerate((original, make_computer(alice, "attic"))):
        call(computer, START + hour * HOUR)
    copied = copy_of(original, cpid="2" * 32, name="pc-2")
    # The id of the first comes back, so they are two; the copy gets a record at its next report, if it may.
    for hour, computer in enumerate((copied, original), start=2):
        call(computer, START + hour * HOUR)
    with pytest.raises(ProtocolError, match="has added 1 of the 1 computers"):
        call(copied, START + 4 * HOUR)
    assert sorted(copied.projects) == sorted(project.master_url for project in projects)
    settings.NEW_HOSTS_PER_DAY = 2
    call(copied, START + 5 * HOUR)
    assert host_of(copied) != host_of(original)


# The setting, the account's own limit, and tokens as (days ago, computers, joined, revoked): room for tokens now
ROOM: list[tuple[int, int | None, list[tuple[int, int, int, bool]], int]] = [
    (300, None, [], 300),
    (300, None, [(0, 200, 0, False)], 100),
    (300, None, [(0, 300, 0, False)], 0),
    (300, None, [(1, 200, 50, True)], 250),
    (300, None, [(31, 200, 200, True)], 300),
    (300, 40, [], 300),
    (300, 1000, [(2, 300, 10, False)], 700),
    (300, 0, [], 0),
    (0, None, [], 0),
]


@pytest.mark.parametrize(("most", "own", "tokens", "room"), ROOM)
def test_tokens_are_for_a_limited_number_of_computers_within_30_days(
    most: int, own: int | None, tokens: list[tuple[int, int, int, bool]], room: int, alice: User, settings: Settings
) -> None:
    settings.JOIN_TOKEN_HOSTS = most
    alice.new_hosts_per_day = own
    alice.save()
    now = timezone.now()
    for number, (days, max_hosts, joined, is_revoked) in enumerate(tokens):
        made_at = now - dt.timedelta(days=days)
        JoinToken.objects.create(
            user=alice,
            login=f"join-{number}",
            token_hash=b"",
            group="lab",
            max_hosts=max_hosts,
            joined_hosts=joined,
            created_at=made_at,
            expires_at=made_at + dt.timedelta(days=60),
            revoked_at=now if is_revoked else None,
        )
    assert joinable_hosts(alice, now) == room
    with pytest.raises(JoinTokenRefused, match=f"for {room} more computers"):
        token_for(alice, max_hosts=room + 1)
