from django.db import migrations

OLD, NEW = "scheduler.trickles.grant_partial_credit", "scheduler.rpc.trickles.grant_partial_credit"
RENAME = "UPDATE credit_app SET trickle_function = '{}' WHERE trickle_function = '{}'"


class Migration(migrations.Migration):
    """Apps name the function for partial credit by its dotted path, and its module has moved."""

    dependencies = [("scheduler", "0009_shelf_blocks"), ("credit", "0014_how_a_version_is_started")]

    operations = [migrations.RunSQL(RENAME.format(NEW, OLD), RENAME.format(OLD, NEW))]
