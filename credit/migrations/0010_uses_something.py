from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("credit", "0009_version_totals"),
    ]

    operations = [
        # Such a version was never sent; now as before, until somebody releases another one.
        migrations.RunSQL(
            "UPDATE credit_appversion SET avg_ncpus = 1, is_deprecated = true"
            " WHERE avg_ncpus <= 0 AND (processor_type = 'CPU' OR avg_ncpus < 0)",
            migrations.RunSQL.noop,
        ),
        migrations.AddConstraint(
            model_name="appversion",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("avg_ncpus__gt", 0),
                    models.Q(models.Q(("processor_type", "CPU"), _negated=True), ("avg_ncpus", 0)),
                    _connector="OR",
                ),
                name="appversion_uses_something",
            ),
        ),
    ]
