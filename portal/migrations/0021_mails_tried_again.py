"""Mails that a server refused for now. Adds two columns without writing the table anew."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("portal", "0020_maintenance_runs"),
    ]

    operations = [
        migrations.AddField(
            model_name="sentmail",
            name="nrefused",
            field=models.PositiveSmallIntegerField(db_default=0, default=0),
        ),
        migrations.AddField(
            model_name="sentmail",
            name="retry_at",
            field=models.DateTimeField(blank=True, null=True),
        ),
    ]
