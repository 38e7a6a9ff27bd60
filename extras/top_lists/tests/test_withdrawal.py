"""Withdrawing works whatever else happens: while credit is being counted, and whatever else the form contains."""

from __future__ import annotations

import threading
import time

import pytest
from django.db import connection, transaction
from django.test import Client
from django.utils import timezone

from extras.top_lists import consent, sql
from extras.top_lists.models import ListedAppCredit, ListedVolunteer
from portal.models import ConsentEvent, User
from tests.support.credit_factories import make_app


@pytest.mark.django_db
def test_a_name_that_cannot_be_shown_does_not_keep_anybody_from_withdrawing(alice: User, signed_in: Client) -> None:
    consent.give(alice, "", timezone.now())
    assert signed_in.post("/project/top/choice/", {"shown_name": "x" * 101}).status_code == 302
    assert not ListedVolunteer.objects.exists()


def waiting() -> int:
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
        )
        return int(cursor.fetchone()[0])


@pytest.mark.django_db(transaction=True)
def test_who_withdraws_while_the_credit_of_apps_is_being_counted_is_in_no_list(alice: User) -> None:
    app = make_app("alpine")
    consent.give(alice, "", timezone.now())
    faults: list[BaseException] = []

    def withdraw() -> None:
        try:
            consent.withdraw(alice, timezone.now())
        except BaseException as fault:
            faults.append(fault)
        finally:
            connection.close()

    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute(sql.KEEP_APP_CREDIT, ([alice.pk], [app.pk], [10.0]))
        withdrawing = threading.Thread(target=withdraw)
        withdrawing.start()
        while not waiting() and withdrawing.is_alive():
            time.sleep(0.01)  # only the database knows that a session waits for a lock, and it notifies nobody
    withdrawing.join()
    assert faults == []
    assert not ListedVolunteer.objects.exists() and not ListedAppCredit.objects.exists()
    assert [event.is_given for event in ConsentEvent.objects.order_by("pk")] == [True, False]
