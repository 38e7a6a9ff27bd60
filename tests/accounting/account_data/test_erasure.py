"""Closing an account: asked with the password, undone by a login, done after the grace period; nothing is left."""

from __future__ import annotations

import datetime as dt
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.apps import apps
from django.contrib.admin.models import LogEntry
from django.core import mail
from django.db import connection, transaction
from django.test import Client
from django.utils import timezone

from accounting.account_data import erasure
from accounting.ledger import check
from accounting.models import Day, HostLedger, HostProject, Note, Project
from accounting.preferences.save import save_set
from portal.models import Host, Session, User
from portal.people.api_tokens import issue_token
from portal.people.deletion import GRACE, OperatorCannotLeave, ask_deletion, cancel_deletion, due_for_erasure
from portal.templatetags.display import day
from portal.wire.boinc_errors import ERR_BAD_AUTHENTICATOR
from scheduler.models import HostRecord, UserPreferences
from tests.support.accounting_factories import credit, granted, make_host, make_note
from tests.support.am_rpc import attach, hours_pass, make_computer, post, sync, work
from tests.support.page_reader import page_of
from tests.support.sessions import sign_in_lately
from tests.support.wait import wait_until
from tools.simulation.client import SimulatedComputer

DELETE = "/account/delete/"


@pytest.fixture
def signed_in(client: Client, alice: User) -> Client:
    client.post("/account/login/", {"login": "alice@example.org", "password": "alice's secret"})
    assert client.get("/home/").status_code == 200
    return client


def ask(client: Client, password: str = "alice's secret") -> Any:
    return client.post(DELETE, {"password": password})


def asked_at(user: User) -> dt.datetime | None:
    return User.objects.values_list("deletion_asked_at", flat=True).get(pk=user.pk)


def test_asking_logs_out_everywhere_and_says_when_by_mail_too(signed_in: Client, alice: User) -> None:
    elsewhere = Client()
    elsewhere.post("/account/login/", {"login": "alice@example.org", "password": "alice's secret"})
    assert elsewhere.get("/home/").status_code == 200
    reply = ask(signed_in)
    due = day(timezone.now() + GRACE)
    assert due in page_of(signed_in, reply.headers["Location"]).words
    assert signed_in.get("/home/").status_code == elsewhere.get("/home/").status_code == 302
    (message,) = mail.outbox
    assert message.to == ["alice@example.org"] and due in message.body


def test_a_wrong_password_deletes_nothing(signed_in: Client, alice: User) -> None:
    reply = ask(signed_in, "guess")
    assert reply.status_code == 422
    assert asked_at(alice) is None and signed_in.get("/home/").status_code == 200


def test_a_login_undoes_it(signed_in: Client, alice: User) -> None:
    ask(signed_in)
    assert asked_at(alice) is not None
    back = signed_in.post("/account/login/", {"login": "alice@example.org", "password": "alice's secret"}, follow=True)
    assert "Your account will not be deleted" in back.content.decode()
    assert asked_at(alice) is None


def test_asking_again_does_not_prolong_it(alice: User) -> None:
    due = ask_deletion(alice)
    assert ask_deletion(alice) == due
    assert cancel_deletion(alice) and not cancel_deletion(alice)


def test_an_operator_is_not_deleted(desk: Client, operator: User) -> None:
    assert desk.post(DELETE, {"password": "operator's secret"}).status_code == 422
    with pytest.raises(OperatorCannotLeave):
        ask_deletion(operator)
    assert asked_at(operator) is None


def test_only_who_asked_a_fortnight_ago_is_due(alice: User, bob: User) -> None:
    now = timezone.now()
    ask_deletion(alice)
    assert list(due_for_erasure(now + GRACE - dt.timedelta(minutes=1))) == []
    assert list(due_for_erasure(now + GRACE + dt.timedelta(minutes=1))) == [alice]


def rows_about(user_id: int, host_ids: list[int]) -> dict[str, int]:
    """How many rows of each table name the user or one of the computers, by columns as the database has them."""
    references = {}
    with connection.cursor() as cursor:
        for model in apps.get_models():
            columns = {field.column for field in model._meta.concrete_fields if field.column}
            for column in columns & {"user_id", "owner_id", "host_id"}:
                ids = host_ids if column == "host_id" else [user_id]
                cursor.execute(f'SELECT count(*) FROM "{model._meta.db_table}" WHERE {column} = ANY(%s)', [ids])
                references[f"{model._meta.db_table}.{column}"] = cursor.fetchone()[0]
    return references


@pytest.fixture
def left(alice: User, projects: list[Project]) -> list[int]:
    """Alice has something of everything, and wants to be gone; the ids of her computers."""
    studio = attach(alice)
    hours_pass(studio, 2)
    work(studio, projects[0], hours=1, jobs=1)
    sync(studio)
    remaining = Host.objects.get()
    attic = make_host(alice, "attic")
    credit(attic, projects[1], "2024-02-29", (1, 1, 1, 1, 1, 1))
    granted(attic, projects[1], 5, {"2024-02-29": 1})
    make_note(attic, "reset", "2024-02-29", project=projects[1])
    merged = make_host(alice, "old", merged_into=remaining)
    issue_token(alice, name="x", scopes=["read:hosts"], lifetime=None)
    save_set(alice, "", {})
    UserPreferences.objects.create(user=alice, mod_time=1.7e9, text="<max_ncpus_pct>55</max_ncpus_pct>")
    ask_deletion(alice)
    return [remaining.pk, attic.pk, merged.pk]


def test_nothing_of_an_erased_account_is_left(alice: User, left: list[int]) -> None:
    before = rows_about(alice.pk, left)
    assert before["accounting_day.user_id"] == 2 and before["accounting_note.host_id"] >= 1
    assert before["accounting_grantedday.user_id"] == before["accounting_grantedtotal.host_id"] == 1
    assert before["portal_host.owner_id"] == 3 and before["portal_apitoken.user_id"] == 1
    assert before["scheduler_userpreferences.user_id"] == 1
    assert erasure.erase_due(timezone.now() + GRACE) == 1
    assert set(rows_about(alice.pk, left).values()) == {0}
    assert not User.objects.filter(pk=alice.pk).exists()
    assert erasure.erase_due(timezone.now() + GRACE) == 0


def test_the_log_of_the_admin_keeps_that_somebody_looked_and_neither_name_nor_reason(
    alice: User, operator: User, left: list[int]
) -> None:
    desk = Client()
    sign_in_lately(desk, operator)
    desk.post(f"/admin/portal/account/{alice.pk}/change/", {"reason": "Their mail, with a private matter"})
    assert str(alice) in LogEntry.objects.get(user=operator).object_repr
    assert erasure.erase_due(timezone.now() + GRACE) == 1
    logged = LogEntry.objects.get(user=operator)
    assert (logged.object_id, logged.object_repr) == (str(alice.pk), "an erased account")
    assert "private" not in logged.change_message


def test_others_and_their_numbers_stay(alice: User, left: list[int], bob: User, projects: list[Project]) -> None:
    his = make_host(bob, "his")
    credit(his, projects[1], "2024-02-29", (7, 0, 7, 0, 7, 0))
    make_note(his, "reset", "2024-02-29", project=projects[1])
    erasure.erase_due(timezone.now() + GRACE)
    assert Day.objects.get().cpu_ec == 7
    assert HostProject.objects.get().credited[0] == 7
    assert Note.objects.get().host == his
    assert list(check.differences()) == []


def test_who_comes_back_at_the_last_moment_stays(alice: User, left: list[int]) -> None:
    cancel_deletion(alice)
    assert erasure.erase_due(timezone.now() + GRACE) == 0
    assert Host.objects.filter(owner=alice).count() == 3


def test_a_client_of_an_erased_account_hears_that_its_key_is_not_valid(alice: User, projects: list[Project]) -> None:
    studio = attach(alice)
    ask_deletion(alice)
    # During the grace period it goes on.
    assert sync(studio).error == (0, "")
    erasure.erase_due(timezone.now() + GRACE)
    number, sentence = post(studio.request(timezone.now().timestamp())).error
    assert number != 0 and "no longer valid" in sentence


def test_sessions_end_even_if_they_began_after_the_wish(signed_in: Client, alice: User) -> None:
    signed_in.get("/home/")
    User.objects.filter(pk=alice.pk).update(deletion_asked_at=timezone.now() - GRACE)
    erasure.erase_due(timezone.now())
    assert not Session.objects.exists()
    assert signed_in.get("/home/").status_code == 302


def test_strangers_are_sent_to_sign_in(client: Client, db: None) -> None:
    for address in (DELETE, "/account/data/", "/account/data/1.zip"):
        assert client.get(address).status_code == 302
    assert client.post("/account/data/copy/").status_code == 302


@pytest.mark.django_db(transaction=True)
def test_reports_that_come_during_the_erasure_leave_nothing_behind(
    transactional_db: None, alice: User, projects: list[Project]
) -> None:
    computers = [attach(alice, name) for name in ("studio", "attic", "cellar")]
    hosts = list(Host.objects.values_list("pk", flat=True))
    User.objects.filter(pk=alice.pk).update(deletion_asked_at=timezone.now() - GRACE)
    begun = threading.Barrier(len(computers) + 2)

    def report(computer: SimulatedComputer) -> list[int]:
        begun.wait(timeout=30)
        numbers = []
        try:
            for _ in range(12):
                computer.projects[projects[0].master_url].totals[4] += 1
                numbers.append(post(computer.request(time.time())).error[0])
        finally:
            connection.close()
        return numbers

    newcomer = make_computer(alice, "newcomer")
    with ThreadPoolExecutor(len(computers) + 1) as pool:
        reporting = [pool.submit(report, computer) for computer in computers]
        logging_in = pool.submit(_log_in, newcomer, begun)
        begun.wait(timeout=30)
        assert erasure.erase_due(timezone.now()) == 1
        answers = [future.result(timeout=60) for future in reporting]
        logging_in.result(timeout=60)
    # In the end nobody is known any more, and no answer was a server error.
    assert {numbers[-1] for numbers in answers} == {ERR_BAD_AUTHENTICATOR}
    assert {number for numbers in answers for number in numbers} <= {0, ERR_BAD_AUTHENTICATOR}
    assert set(rows_about(alice.pk, hosts).values()) == {0}
    assert not Host.objects.exists() and not Day.objects.exists()


@pytest.mark.django_db(transaction=True)
def test_a_report_half_written_when_the_erasure_begins_does_not_stand_in_its_way(
    transactional_db: None, alice: User, projects: list[Project]
) -> None:
    attach(alice)
    host = Host.objects.get()
    _erase_while_it_waits(
        alice,
        # The order of a report: its ledger row, then its days, which share their user's key.
        lambda: HostLedger.objects.select_for_update().get(pk=host.pk),
        lambda: Day.objects.create(user=alice, host=host, project=projects[0], day=timezone.now().date(), cpu_time=1),
    )
    assert set(rows_about(alice.pk, [host.pk]).values()) == {0}


def test_an_account_that_cannot_be_erased_keeps_no_other_from_being(alice: User, bob: User) -> None:
    User.objects.filter(pk__in=[alice.pk, bob.pk]).update(deletion_asked_at=timezone.now() - GRACE)
    with connection.cursor() as cursor:
        cursor.execute(
            "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$BEGIN RAISE 'refused'; END$$;"
            f"CREATE TRIGGER refuse BEFORE DELETE ON portal_user FOR EACH ROW WHEN (old.id = {alice.pk})"
            " EXECUTE FUNCTION refuse()"
        )
    assert erasure.erase_due(timezone.now()) == 1
    assert list(User.objects.filter(pk__in=[alice.pk, bob.pk])) == [alice]


@pytest.mark.django_db(transaction=True)
def test_a_request_for_work_that_has_its_computer_does_not_stand_in_the_way_of_the_erasure(
    transactional_db: None, alice: User, projects: list[Project]
) -> None:
    attach(alice)
    host = Host.objects.get()
    HostRecord.objects.create(host=host)
    _erase_while_it_waits(
        alice,
        # The order of a request: its computer, at last the scheduler's record of it.
        lambda: Host.objects.select_for_update(no_key=True).get(pk=host.pk),
        lambda: HostRecord.objects.filter(host=host).update(rpc_seqno=5),
    )
    assert set(rows_about(alice.pk, [host.pk]).values()) == {0}


def _erase_while_it_waits(user: User, lock: Callable[[], object], write: Callable[[], object]) -> None:
    """The account is due, and its erasure begins between the two steps of another transaction."""
    User.objects.filter(pk=user.pk).update(deletion_asked_at=timezone.now() - GRACE)
    with ThreadPoolExecutor(1) as pool:
        with transaction.atomic():
            lock()
            erasing = pool.submit(_erase)
            wait_until(_somebody_waits, "somebody to wait for a lock", 30, poll_secs=0.01)
            write()
        assert erasing.result(timeout=60) == 1


def _erase() -> int:
    try:
        return erasure.erase_due(timezone.now())
    finally:
        connection.close()


def _somebody_waits() -> bool:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
        )
        return bool(cursor.fetchone()[0])


def _log_in(computer: SimulatedComputer, begun: threading.Barrier) -> None:
    """A new computer of the same person comes with the password."""
    begun.wait(timeout=30)
    try:
        for _ in range(3):
            post(computer.request(time.time()))
    finally:
        connection.close()
