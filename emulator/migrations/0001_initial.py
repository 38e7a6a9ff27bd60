import django.core.validators
import django.db.models.deletion
import django.utils.timezone
import portal.languages.sentences
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("account", "0009_emailaddress_unique_primary_email"),
        ("admin", "0003_logentry_add_action_flag_choices"),
        ("mfa", "0003_authenticator_type_uniq"),
        ("portal", "0002_log_proxies"),
    ]

    operations = [
        migrations.CreateModel(
            name="Experiment",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False)),
                (
                    "owner",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="experiments",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                ("title", models.CharField(max_length=100)),
                ("origin", models.CharField(blank=True, max_length=200)),
                ("scenario", models.JSONField(null=True)),
                ("fault", portal.languages.sentences.MessageField(blank=True, editable=False, null=True)),
                ("draft", models.JSONField(blank=True, default=dict, editable=False)),
                (
                    "days",
                    models.FloatField(
                        default=30,
                        validators=[
                            django.core.validators.MinValueValidator(0.01),
                            django.core.validators.MaxValueValidator(36525.0),
                        ],
                    ),
                ),
                ("parameter", models.CharField(blank=True, max_length=300)),
                ("share_token", models.CharField(blank=True, editable=False, max_length=32, null=True, unique=True)),
                (
                    "forked_from",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="forks",
                        to="emulator.experiment",
                    ),
                ),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                ("started_at", models.DateTimeField(blank=True, null=True)),
                ("request_id", models.CharField(blank=True, editable=False, max_length=64)),
            ],
            options={
                "ordering": ["-id"],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("days__gt", 0), ("days__lte", 36525.0)), name="experiment_days_range"
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("request_id", ""), _negated=True),
                        fields=("owner", "request_id"),
                        name="experiment_request_id",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Run",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False)),
                (
                    "experiment",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="runs",
                        to="emulator.experiment",
                    ),
                ),
                ("number", models.PositiveSmallIntegerField()),
                ("variant", models.CharField(max_length=100)),
                ("policy", models.CharField(max_length=60)),
                ("has_quirks", models.BooleanField(default=False)),
                ("parameters", models.JSONField(blank=True, default=dict)),
                ("value", models.FloatField(blank=True, null=True)),
                ("seed", models.BigIntegerField(default=1)),
                ("keeps_timeline", models.BooleanField(default=True)),
                ("state", models.CharField(default="queued", max_length=10)),
                ("progress", models.FloatField(default=0)),
                ("cancel_asked", models.BooleanField(default=False)),
                ("fault", portal.languages.sentences.MessageField(blank=True, editable=False, null=True)),
                ("started_at", models.DateTimeField(blank=True, null=True)),
                ("heard_of_at", models.DateTimeField(blank=True, null=True)),
                ("finished_at", models.DateTimeField(blank=True, null=True)),
                ("cpu_secs", models.FloatField(blank=True, null=True)),
                ("figures", models.JSONField(blank=True, default=dict)),
                ("projects", models.JSONField(blank=True, default=list)),
                ("answer", models.JSONField(blank=True, db_default={}, default=dict)),
            ],
            options={
                "ordering": ["experiment", "number"],
                "indexes": [
                    models.Index(
                        condition=models.Q(("state__in", ["queued", "running"])),
                        fields=["state"],
                        name="run_unfinished",
                    )
                ],
                "constraints": [
                    models.UniqueConstraint(fields=("experiment", "number"), name="run_experiment_number"),
                    models.CheckConstraint(
                        condition=models.Q(("progress__gte", 0), ("progress__lte", 1)), name="run_progress_range"
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Upload",
            fields=[
                (
                    "experiment",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="upload",
                        serialize=False,
                        to="emulator.experiment",
                    ),
                ),
                ("files", models.BinaryField()),
            ],
        ),
        migrations.CreateModel(
            name="Replay",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False)),
                (
                    "run",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="replays",
                        to="emulator.run",
                    ),
                ),
                ("decision", models.PositiveIntegerField()),
                ("moment", models.JSONField(null=True)),
                ("fault", portal.languages.sentences.MessageField(blank=True, editable=False, null=True)),
                ("asked_at", models.DateTimeField(default=django.utils.timezone.now, editable=False)),
            ],
            options={
                "ordering": ["id"],
                "constraints": [models.UniqueConstraint(fields=("run", "decision"), name="replay_run_decision")],
            },
        ),
        migrations.CreateModel(
            name="RunTimeline",
            fields=[
                (
                    "run",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="timeline",
                        serialize=False,
                        to="emulator.run",
                    ),
                ),
                ("data", models.BinaryField()),
            ],
        ),
    ]
