from django.db import migrations, models


class Migration(migrations.Migration):
    safe_because = "The index is there; no row is read"
    dependencies = [("portal", "0030_host_and_owner")]
    operations = [
        migrations.SeparateDatabaseAndState(
            [
                migrations.RunSQL(
                    "ALTER TABLE portal_host ADD CONSTRAINT host_id_owner UNIQUE USING INDEX host_id_owner"
                )
            ],
            [migrations.AddConstraint("host", models.UniqueConstraint(fields=("id", "owner"), name="host_id_owner"))],
        )
    ]
