import django.core.validators
import django.db.models.deletion
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("credit", "0010_uses_something"),
        ("portal", "0008_jobs_scope"),
        ("scheduler", "0005_version_totals_of_archived"),
    ]

    operations = [
        migrations.CreateModel(
            name="KeyChange",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                ("old_key", models.TextField(verbose_name="public key before")),
                ("new_key", models.TextField(verbose_name="public key after")),
                ("signature", models.TextField(verbose_name="the old key's signature of the new one")),
                ("changed_at", models.DateTimeField(default=django.utils.timezone.now)),
            ],
            options={
                "ordering": ["-id"],
            },
        ),
        migrations.CreateModel(
            name="SetAside",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False, verbose_name="ID")),
                (
                    "step",
                    models.CharField(
                        choices=[
                            ("transition", "state transition"),
                            ("assimilate", "taking its outputs"),
                            ("delete_files", "deleting its files"),
                            ("archive", "moving it to the archive"),
                        ],
                        max_length=16,
                    ),
                ),
                ("fault", models.CharField(max_length=500, verbose_name="what went wrong")),
                ("ntries", models.PositiveIntegerField(default=1, verbose_name="tries")),
                ("since", models.DateTimeField(default=django.utils.timezone.now)),
                ("retry_at", models.DateTimeField(verbose_name="tried again at")),
            ],
            options={
                "verbose_name": "workunit set aside",
                "verbose_name_plural": "workunits set aside",
                "ordering": ["-since"],
            },
        ),
        migrations.CreateModel(
            name="UserPreferences",
            fields=[
                (
                    "user",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="scheduler_preferences",
                        serialize=False,
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                ("mod_time", models.FloatField()),
                ("text", models.TextField(verbose_name="elements of <global_preferences>, as sent")),
            ],
            options={
                "verbose_name_plural": "user preferences",
            },
        ),
        migrations.RunSQL(
            """
UPDATE scheduler_planclass
   SET gpu_usage = CASE processor_type WHEN 'CPU' THEN 0 ELSE greatest(gpu_usage, 0) END,
       avg_ncpus = CASE WHEN processor_type = 'CPU' AND avg_ncpus <= 0 THEN 1 ELSE greatest(avg_ncpus, 0) END,
       max_ncpus = greatest(max_ncpus, 1)""",
            migrations.RunSQL.noop,
        ),
        migrations.AlterModelOptions(
            name="planclass",
            options={"ordering": ["name"], "verbose_name_plural": "plan classes"},
        ),
        migrations.AlterField(
            model_name="planclass",
            name="gpu_usage",
            field=models.FloatField(
                default=0,
                help_text="0 for a GPU type: as the version says.",
                validators=[django.core.validators.MinValueValidator(0), django.core.validators.MaxValueValidator(64)],
                verbose_name="GPUs used",
            ),
        ),
        migrations.AddConstraint(
            model_name="planclass",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("avg_ncpus__gt", 0), ("gpu_usage", 0), ("processor_type", "CPU")),
                    models.Q(
                        models.Q(("processor_type", "CPU"), _negated=True), ("avg_ncpus__gte", 0), ("gpu_usage__gte", 0)
                    ),
                    _connector="OR",
                ),
                name="planclass_uses_something",
            ),
        ),
        migrations.AddConstraint(
            model_name="planclass",
            constraint=models.CheckConstraint(condition=models.Q(("max_ncpus__gte", 1)), name="planclass_max_ncpus"),
        ),
        migrations.AddConstraint(
            model_name="keychange",
            constraint=models.UniqueConstraint(fields=("old_key",), name="keychange_one_successor"),
        ),
        migrations.AddConstraint(
            model_name="keychange",
            constraint=models.UniqueConstraint(fields=("new_key",), name="keychange_one_forerunner"),
        ),
        migrations.AddConstraint(
            model_name="keychange",
            constraint=models.CheckConstraint(
                condition=models.Q(("old_key", models.F("new_key")), _negated=True), name="keychange_changes"
            ),
        ),
        migrations.AddField(
            model_name="setaside",
            name="workunit",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="set_aside",
                to="credit.workunit",
            ),
        ),
        migrations.AddConstraint(
            model_name="setaside",
            constraint=models.UniqueConstraint(fields=("workunit", "step"), name="setaside_once"),
        ),
    ]
