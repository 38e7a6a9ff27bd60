from __future__ import annotations

from django.db import migrations


class Migration(migrations.Migration):
    """Let the new version of a computer's record, which each RPC writes, lie beside the old one: no index is touched."""

    dependencies = [("scheduler", "0003_host_hardware_digest")]

    operations = [
        migrations.RunSQL(
            "ALTER TABLE scheduler_hostrecord SET (fillfactor = 50)",
            "ALTER TABLE scheduler_hostrecord RESET (fillfactor)",
        )
    ]
