"""Fills and checks the rows that are there for 0019 and 0021. Reads and writes go on meanwhile."""

from django.contrib.postgres.operations import ValidateConstraint
from django.apps.registry import Apps
from django.db import migrations, transaction
from django.db.backends.base.schema import BaseDatabaseSchemaEditor
from django.db.models import F

BATCH_ROWS = 5000

_CONSTRAINTS = (
    ("hostcredit", "hostcredit_cpus_credited_until_range"),
    ("hostcredit", "hostcredit_gpus_credited_until_range"),
    ("result", "result_ninstances_range"),
    ("hostappversion", "hostappversion_clean_pfc_range"),
    ("hostappversion", "hostappversion_waiting_pfc_range"),
    ("hostappversion", "hostappversion_recent_pfc_range"),
    ("hostappversion", "hostappversion_failing_share_range"),
)


def begin_with_known_samples(apps: Apps, schema_editor: BaseDatabaseSchemaEditor) -> None:
    """Computers off probation start with all their samples as clean ones. Else an efficient one would lose its factor
    until it has ten more. Locks a batch of records at a time, by id as the validator does.
    """
    records = apps.get_model("credit", "HostAppVersion").objects.filter(
        scale_probation=False, clean_pfc_n=0, pfc_n__gt=0, pfc_avg__isnull=False
    )
    last: int | None = 0
    while last is not None:
        with transaction.atomic():
            batch = records.select_for_update(no_key=True).filter(pk__gt=last).order_by("pk")
            ids = list(batch.values_list("pk", flat=True)[:BATCH_ROWS])
            records.filter(pk__in=ids).update(clean_pfc_n=F("pfc_n"), clean_pfc_avg=F("pfc_avg"))
        last = ids[-1] if ids else None


class Migration(migrations.Migration):
    # Each by itself: a transaction would keep the locks of all until the last is done.
    atomic = False
    dependencies = [("credit", "0021_clean_samples")]
    operations = [
        migrations.RunPython(begin_with_known_samples, migrations.RunPython.noop),
        *(ValidateConstraint(model_name=model, name=name) for model, name in _CONSTRAINTS),
    ]
