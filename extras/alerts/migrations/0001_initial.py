import django.contrib.postgres.fields
import django.db.models.deletion
import django.utils.timezone
import uuid
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("account", "0009_emailaddress_unique_primary_email"),
        ("accounting", "0001_initial"),
        ("admin", "0003_logentry_add_action_flag_choices"),
        ("credit", "0001_initial"),
        ("mfa", "0003_authenticator_type_uniq"),
        ("portal", "0002_log_proxies"),
    ]

    operations = [
        migrations.CreateModel(
            name="AlertChannel",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False)),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="alert_channels",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                ("kind", models.CharField(max_length=8)),
                ("name", models.CharField(max_length=100)),
                ("host", models.CharField(max_length=255)),
                ("destination", models.BinaryField()),
                ("digest", models.BinaryField(max_length=32, null=True)),
                ("form_key", models.UUIDField(editable=False, null=True)),
                (
                    "alert_kinds",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=8), blank=True, default=list, size=None
                    ),
                ),
                ("tells_end", models.BooleanField(default=False)),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("last_sent_at", models.DateTimeField(null=True)),
                ("failing_since", models.DateTimeField(null=True)),
                ("paused_at", models.DateTimeField(null=True)),
                ("fault", models.CharField(blank=True, max_length=200)),
            ],
            options={
                "ordering": ["created_at", "pk"],
                "constraints": [
                    models.UniqueConstraint(fields=("digest",), name="alertchannel_browser_once"),
                    models.UniqueConstraint(fields=("user", "form_key"), name="alertchannel_form_once"),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("alert_kinds__contained_by", ["silent", "failing", "project", "security", "news"])
                        ),
                        name="alertchannel_kinds",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="AlertTrouble",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False)),
                (
                    "user",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="alert_troubles",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                ("key", models.CharField(max_length=120)),
                ("kind", models.CharField(max_length=8)),
                ("text", models.TextField()),
                ("path", models.CharField(max_length=200)),
                ("began_at", models.DateTimeField()),
                ("gone_since", models.DateTimeField(null=True)),
            ],
            options={
                "constraints": [models.UniqueConstraint(fields=("user", "key"), name="alerttrouble_once")],
            },
        ),
        migrations.CreateModel(
            name="AlertWatch",
            fields=[
                (
                    "user",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="alert_watch",
                        serialize=False,
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                ("since", models.DateTimeField(default=django.utils.timezone.now)),
                ("looked_at", models.DateTimeField(db_index=True, null=True)),
                ("tests_on", models.DateField(null=True)),
                ("ntests", models.PositiveSmallIntegerField(default=0)),
            ],
        ),
        migrations.CreateModel(
            name="AlertMessage",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False)),
                (
                    "channel",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="messages",
                        to="alerts.alertchannel",
                    ),
                ),
                ("uid", models.UUIDField(default=uuid.uuid4, editable=False)),
                ("kind", models.CharField(max_length=8)),
                ("is_over", models.BooleanField(default=False)),
                ("title", models.CharField(max_length=200)),
                (
                    "lines",
                    django.contrib.postgres.fields.ArrayField(base_field=models.TextField(), default=list, size=None),
                ),
                ("path", models.CharField(max_length=200)),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("due_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("ntries", models.PositiveSmallIntegerField(default=0)),
                ("outcome", models.CharField(default="waiting", max_length=8)),
                ("finished_at", models.DateTimeField(null=True)),
                ("answer", models.CharField(blank=True, max_length=200)),
            ],
            options={
                "indexes": [
                    models.Index(
                        condition=models.Q(("outcome", "waiting")), fields=["due_at"], name="alertmessage_due"
                    ),
                    models.Index(fields=["channel", "created_at"], name="alertmessage_channel"),
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("finished_at", None), ("outcome", "waiting")),
                            models.Q(
                                models.Q(("outcome", "waiting"), _negated=True),
                                models.Q(("finished_at", None), _negated=True),
                            ),
                            _connector="OR",
                        ),
                        name="alertmessage_finished",
                    )
                ],
            },
        ),
    ]
