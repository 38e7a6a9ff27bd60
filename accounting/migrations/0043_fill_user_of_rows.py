"""Fills the user of the rows that are there, a batch of computers at a time: it locks nobody out for long."""

from functools import partial

from django.apps.registry import Apps
from django.db import connection, migrations
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

from accounting.ledger.old_keys import OF_HOSTS
from portal.databases.short_waits import in_short_waits

BATCH_HOSTS = 500

NEXT = "SELECT max(id) FROM (SELECT id FROM portal_host WHERE id > %s ORDER BY id LIMIT %s) found"
# As all who write rows of computers; a report waits for a batch at most.
LOCK = "SELECT FROM accounting_hostledger WHERE host_id > %s AND host_id <= %s ORDER BY host_id FOR NO KEY UPDATE"
FILL = """
UPDATE accounting_{name} t SET user_id = h.owner_id FROM portal_host h
 WHERE h.id = t.host_id AND t.host_id > %s AND t.host_id <= %s AND t.user_id IS NULL
"""


def fill(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Rows that are made meanwhile get it by the trigger."""
    last = 0
    with connection.cursor() as cursor:
        while True:
            cursor.execute(NEXT, [last, BATCH_HOSTS])
            (until,) = cursor.fetchone()
            if until is None:
                return
            in_short_waits(partial(fill_batch, [last, until]))
            last = until


def fill_batch(bounds: list[int]) -> None:
    """Gives way to who has rows of these computers without their ledgers' locks, such as an import."""
    with connection.cursor() as cursor:
        cursor.execute(LOCK, bounds)
        for name in OF_HOSTS:
            cursor.execute(FILL.format(name=name), bounds)


class Migration(migrations.Migration):
    # Each batch by itself: a transaction would keep the locks of all until the last is done.
    atomic = False
    safe_because = "It fills a column that the old version does not know, a batch at a time"
    dependencies = [("accounting", "0042_user_of_rows")]
    operations = [migrations.RunPython(fill)]
