"""Fills and checks the rows that are there for 0010, a batch at a time: it locks no table for long."""

from typing import Any

from django.apps.registry import Apps
from django.contrib.postgres.operations import ValidateConstraint
from django.db import migrations, transaction
from django.db.backends.base.schema import BaseDatabaseSchemaEditor

BATCH_HOSTS = 2000


def begin_at_zero(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """The totals at resets before this are not known: zero. Locks the rows of a batch of computers at a time."""
    model: Any = apps.get_model("accounting", "HostProject")
    rows = model.objects.filter(high__isnull=False, restart=None)
    last: int | None = 0
    while last is not None:
        with transaction.atomic():
            hosts = rows.filter(host_id__gt=last).order_by("host_id").values_list("host_id", flat=True).distinct()
            ids = list(hosts[:BATCH_HOSTS])
            rows.filter(host_id__in=ids).update(restart=[0] * 6)
        last = ids[-1] if ids else None


class Migration(migrations.Migration):
    # Each by itself: a transaction would keep the locks of all until the last is done.
    atomic = False
    dependencies = [("accounting", "0011_host_client")]
    operations = [
        migrations.RunPython(begin_at_zero, migrations.RunPython.noop),
        ValidateConstraint("hostproject", "hostproject_restart_six"),
        ValidateConstraint("hostproject", "hostproject_high_and_restart"),
    ]
