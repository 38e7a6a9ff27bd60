from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("portal", "0012_new_hosts_per_day"),
    ]

    operations = [
        migrations.AddField(
            model_name="requestedwork",
            name="is_given_up",
            field=models.BooleanField(default=False, verbose_name="given up"),
        ),
        migrations.AddConstraint(
            model_name="requestedwork",
            constraint=models.CheckConstraint(
                condition=models.Q(("is_given_up", False), ("finished_at__isnull", False), _connector="OR"),
                name="requestedwork_given_up_is_over",
            ),
        ),
    ]
