"""Moves the highest totals before resets to the new list, a batch at a time: it locks no table for long."""

from typing import Any

from django.apps.registry import Apps
from django.contrib.postgres.operations import ValidateConstraint
from django.db import connection, migrations, transaction
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

BATCH_HOSTS = 2000
BATCH_CLIENTS = 500

# Locks the rows of these computers.
MOVE = """
UPDATE accounting_hostproject SET earlier = ARRAY[high], high = NULL
 WHERE host_id = ANY (%s) AND high IS NOT NULL
"""


def move_highest(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    model: Any = apps.get_model("accounting", "HostProject")
    rows = model.objects.filter(high__isnull=False)
    while ids := list(rows.order_by("host_id").values_list("host_id", flat=True).distinct()[:BATCH_HOSTS]):
        with connection.cursor() as cursor:
            cursor.execute(MOVE, [ids])


def move_highest_of_other_clients(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """The same in the totals with which clients go on that another one has taken the place of."""
    rows = apps.get_model("accounting", "HostClient").objects
    last: int | None = 0
    while last is not None:
        with transaction.atomic():
            batch = list(rows.select_for_update().filter(pk__gt=last).order_by("pk")[:BATCH_CLIENTS])
            for client in batch:
                for totals in client.books.get("projects", {}).values():
                    _move(totals)
            rows.bulk_update(batch, ["books"])
        last = batch[-1].pk if batch else None


def _move(totals: dict[str, Any]) -> None:
    if "high" in totals:
        high = totals.pop("high")
        totals["earlier"] = [] if high is None else [high]


class Migration(migrations.Migration):
    # Each by itself: a transaction would keep the locks of all until the last is done.
    atomic = False
    dependencies = [("accounting", "0017_earlier_totals")]
    operations = [
        migrations.RunPython(move_highest, migrations.RunPython.noop),
        migrations.RunPython(move_highest_of_other_clients, migrations.RunPython.noop),
        ValidateConstraint("hostproject", "hostproject_earlier_sixes"),
        ValidateConstraint("hostproject", "hostproject_earlier_and_restart"),
        migrations.RemoveField("hostproject", "high"),
    ]
