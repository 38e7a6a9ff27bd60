"""What rows of computers will refer to, so that they have the computer's owner. 0031 makes a constraint of it."""

from django.db import migrations


class Migration(migrations.Migration):
    atomic = False
    safe_because = "It adds an index, made concurrently"
    dependencies = [("portal", "0029_beat_lease")]
    operations = [
        migrations.RunSQL(
            [
                # Of a run that was interrupted.
                "DROP INDEX CONCURRENTLY IF EXISTS host_id_owner",
                "CREATE UNIQUE INDEX CONCURRENTLY host_id_owner ON portal_host (id, owner_id)",
            ]
        ),
    ]
