"""Identification of clients: accounts, keys, computers and their records, cross-project ids; with the real use case."""

from __future__ import annotations

import hashlib

import pytest
from django.utils import timezone

from credit.models import App
from portal.models import ClientKey, Host, User
from portal.operators import support
from portal.people.accounts import weak_key
from portal.wire import credentials
from tests.support.credit_factories import make_app, make_version
from tests.support.scheduler_clients import (
    Computer,
    computer_of,
    messages,
    post,
    value,
)

pytestmark = pytest.mark.django_db


@pytest.fixture
def app(db: None) -> App:
    app = make_app()
    make_version(app)
    return app


def test_a_new_computer_gets_its_number_and_the_account_its_totals(app: App, alice: User) -> None:
    computer = computer_of(alice)
    reply = computer.ask()
    host = Host.objects.get()
    assert value(reply, "hostid") == str(host.pk)
    assert value(reply, "userid") == str(alice.pk)
    assert value(reply, "user_name") == "Alice"
    assert value(reply, "master_url") == "http://127.0.0.1:8000/project/"
    assert value(reply, "email_hash") == hashlib.md5(b"alice@example.org").hexdigest()
    assert value(reply, "cross_project_id") == User.objects.get(pk=alice.pk).cross_project_id
    assert "1024\n" in value(reply, "code_sign_key") + "\n"
    assert (host.ncpus, host.p_fpops, host.os_name) == (4, 4e9, "Linux Debian")
    assert "<hostid>" not in computer.ask()


def test_both_rooms_have_one_record_of_a_computer(app: App, alice: User) -> None:
    known = Host.objects.create(
        owner=alice, host_cpid="c" * 32, domain_name="studio", os_name="Linux Debian", p_vendor="GenuineIntel",
        p_model="Test CPU",
    )  # fmt: skip
    computer = computer_of(alice, cpid="c" * 32, name="studio")
    computer.ask()
    assert computer.hostid == known.pk
    assert Host.objects.count() == 1


def test_another_account_never_gets_the_same_record(app: App, alice: User, bob: User) -> None:
    first, second = computer_of(alice, cpid="c" * 32), computer_of(bob, cpid="c" * 32)
    first.ask()
    second.hostid = first.hostid
    second.ask()
    assert first.hostid != second.hostid
    assert set(Host.objects.values_list("owner__email", flat=True)) == {"alice@example.org", "bob@example.org"}


def test_clients_that_share_a_machine_are_told_apart_by_their_cpids(app: App, alice: User) -> None:
    first = computer_of(alice, name="farm", extra="<allow_multiple_clients>1</allow_multiple_clients>\n")
    second = computer_of(alice, name="farm", extra="<allow_multiple_clients>1</allow_multiple_clients>\n")
    first.ask()
    second.ask()
    assert first.hostid != second.hostid


@pytest.mark.parametrize("key", ["", "0" * 32, "1_" + "0" * 32, "nonsense", "'; drop table", "9" * 19 + "_" + "0" * 32])
def test_a_wrong_key_is_refused_in_words_and_sent_away_for_a_minute(app: App, key: str) -> None:
    reply = post(Computer(key).request())
    assert messages(reply)[0].startswith("Invalid or missing account key.")
    # The account manager may have given it another key by then.
    assert value(reply, "request_delay") == "60"
    assert not Host.objects.exists()


def test_the_weak_form_of_a_key_opens_the_scheduler_until_the_key_is_revoked(app: App, alice: User) -> None:
    strong = computer_of(alice).key
    weak = weak_key(alice.pk, credentials.key_hash(strong))
    assert weak.startswith(f"{alice.pk}_")
    assert value(post(Computer(weak).request()), "userid") == str(alice.pk)
    ClientKey.objects.update(revoked_at=timezone.now())
    assert messages(post(Computer(weak).request()))[0].startswith("Invalid")


def test_a_blocked_account_is_told_so_and_nobody_else_learns_of_it(app: App, alice: User, operator: User) -> None:
    strong = computer_of(alice).key
    weak = weak_key(alice.pk, credentials.key_hash(strong))
    support.block(alice, operator, "a reason for operators")
    for key in (strong, weak):
        reply = post(Computer(key).request())
        assert messages(reply)[0].startswith("This account is blocked.")
        # No key that comes in a minute helps, so its computers need not ask every minute.
        assert value(reply, "request_delay") == "3600"
    forged = f"{alice.pk}_{'0' * 32}"
    assert messages(post(Computer(forged).request()))[0].startswith("Invalid or missing account key.")
    support.unblock(alice, operator, "it was a mistake")
    assert value(post(Computer(weak).request()), "userid") == str(alice.pk)


def test_somebody_elses_number_makes_no_weak_key(app: App, alice: User, bob: User) -> None:
    weak = weak_key(alice.pk, credentials.key_hash(computer_of(alice).key))
    forged = f"{bob.pk}_{weak.split('_')[1]}"
    assert messages(post(Computer(forged).request()))[0].startswith("Invalid")


def test_the_cross_project_id_converges_by_strong_keys_only(app: App, alice: User) -> None:
    computer = computer_of(alice)
    weak = Computer(weak_key(alice.pk, credentials.key_hash(computer.key)))
    weak.ask(cross_project_id="b" * 32)
    assert User.objects.get(pk=alice.pk).cross_project_id != "b" * 32
    computer.ask(cross_project_id="not an id")
    computer.ask(cross_project_id="a" * 32)
    assert User.objects.get(pk=alice.pk).cross_project_id == "a" * 32


def test_projects_converge_on_the_id_of_the_oldest_account(app: App, alice: User) -> None:
    """A client keeps, for each address, the id of the oldest account that it sees, and sends that everywhere."""
    alice.cross_project_id = "0123456789abcdef0123456789abcdef"
    alice.email = "user@example.org"
    alice.save()
    computer = computer_of(alice)
    first = computer.ask()
    assert value(first, "email_hash") == hashlib.md5(b"user@example.org").hexdigest()
    assert value(first, "cross_project_id") == "0123456789abcdef0123456789abcdef"
    assert value(first, "external_cpid") == "5603948572131507c1ed8b902e8baef5"
    assert int(value(first, "user_create_time")) == int(alice.created_at.timestamp())
    seen = {int(alice.created_at.timestamp()): value(first, "cross_project_id"), 1_000_000_000: "b" * 32}
    oldest = seen[min(seen)]
    second = computer.ask(cross_project_id=oldest)
    assert value(second, "cross_project_id") == oldest, "in the same reply"
    assert value(second, "external_cpid") == hashlib.md5(f"{oldest}user@example.org".encode()).hexdigest()
    assert value(computer.ask(), "cross_project_id") == oldest
