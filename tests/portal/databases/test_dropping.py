"""What becomes of Django's own connection after its server was lost."""

from __future__ import annotations

import pytest
from django.db import connection

from portal.databases.dropping import drop_connection


@pytest.mark.django_db(transaction=True)
def test_a_dropped_connection_is_closed_though_its_server_answers_and_the_next_one_is_another() -> None:
    connection.ensure_connection()
    before = connection.connection
    drop_connection()
    assert before.closed and connection.connection is None
    # A second time there is none.
    drop_connection()
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
    assert connection.connection is not before
