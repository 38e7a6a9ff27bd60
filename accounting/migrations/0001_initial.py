import accounting.engine.amounts
import accounting.engine.client_tasks
import accounting.models.ledger
import django.contrib.postgres.fields
import django.core.validators
import django.db.models.deletion
import django.db.models.lookups
import django.utils.timezone
import portal.languages.sentences
from django.conf import settings
from django.db import migrations, models
from accounting.migrations import _by_hand


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
            name="AccountSettings",
            fields=[
                (
                    "user",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="account_settings",
                        serialize=False,
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                ("preferences", models.JSONField(blank=True, default=dict)),
                ("preferences_at", models.DateTimeField(blank=True, null=True)),
                (
                    "keywords_yes",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.PositiveIntegerField(), blank=True, default=list, size=None
                    ),
                ),
                (
                    "keywords_no",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.PositiveIntegerField(), blank=True, default=list, size=None
                    ),
                ),
                ("team_name", models.CharField(blank=True, max_length=100)),
                ("no_project_notices", models.BooleanField(default=False)),
                ("sends_tasks", models.BooleanField(db_default=True, default=True)),
            ],
        ),
        migrations.CreateModel(
            name="Project",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False)),
                ("name", models.CharField(max_length=100, unique=True)),
                ("master_url", models.CharField(max_length=255, unique=True)),
                ("address_key", models.CharField(editable=False, max_length=255, unique=True)),
                ("path_ignores_case", models.BooleanField(default=False)),
                (
                    "web_url",
                    models.CharField(
                        blank=True,
                        max_length=255,
                        validators=[django.core.validators.URLValidator(schemes=["http", "https"])],
                    ),
                ),
                ("summary", models.CharField(blank=True, max_length=200)),
                ("description", models.TextField(blank=True)),
                ("is_active", models.BooleanField(default=True)),
                ("down_since", models.DateTimeField(blank=True, null=True)),
                ("down_reason", models.CharField(blank=True, max_length=200)),
                (
                    "default_share",
                    models.FloatField(
                        default=100,
                        validators=[
                            django.core.validators.MinValueValidator(0),
                            django.core.validators.MaxValueValidator(1000000.0),
                        ],
                    ),
                ),
                ("account_mode", models.CharField(default="shared", max_length=8)),
                ("shared_account_key", models.BinaryField(blank=True, null=True)),
                (
                    "former_account_keys",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.BinaryField(), default=list, editable=False, size=None
                    ),
                ),
                ("url_signature", models.TextField(blank=True)),
                ("takes_platforms", models.BooleanField(default=False)),
                ("is_own", models.BooleanField(default=False, editable=False)),
                ("is_before_move", models.BooleanField(default=False, editable=False)),
                ("colour", models.PositiveSmallIntegerField(default=0, editable=False)),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now, editable=False)),
            ],
            options={
                "ordering": ["name"],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("default_share__gte", 0), ("default_share__lte", 1000000.0)),
                        name="project_share_range",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("is_own", True)), fields=("is_own",), name="project_own_once"
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("is_before_move", True)),
                        fields=("is_before_move",),
                        name="project_before_move_once",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("is_before_move", False), ("is_active", False), _connector="OR"),
                        name="project_before_move_takes_none",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Answer",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "host_id", "slot", blank=True, editable=False, primary_key=True, serialize=False
                    ),
                ),
                (
                    "host",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="answers",
                        to="portal.host",
                    ),
                ),
                ("slot", models.SmallIntegerField()),
                ("at", models.DateTimeField()),
                ("content", models.JSONField()),
                ("before_times", models.IntegerField(default=0)),
                ("before_last_at", models.DateTimeField(null=True)),
            ],
        ),
        migrations.CreateModel(
            name="BestDay",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "user_id", "month", blank=True, editable=False, primary_key=True, serialize=False
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                ("month", models.DateField()),
                ("day", models.DateField()),
                ("ec", models.BigIntegerField()),
                ("active_days", models.PositiveSmallIntegerField()),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(condition=models.Q(("month__day", 1)), name="bestday_first_day"),
                    models.CheckConstraint(
                        condition=models.Q(("active_days__range", (1, 31)), ("ec__gt", 0)), name="bestday_range"
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="ClosedMonths",
            fields=[
                ("id", models.PositiveSmallIntegerField(default=1, primary_key=True, serialize=False)),
                ("until", models.DateField()),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(condition=models.Q(("id", 1)), name="closedmonths_one_row"),
                    models.CheckConstraint(condition=models.Q(("until__day", 1)), name="closedmonths_first_day"),
                ],
            },
        ),
        migrations.CreateModel(
            name="DataCopy",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False)),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="data_copies",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                ("content", models.CharField(default="all", max_length=8)),
                ("first", models.DateField(blank=True, null=True)),
                ("last", models.DateField(blank=True, null=True)),
                ("only_host", models.BigIntegerField(blank=True, null=True)),
                ("only_project", models.BigIntegerField(blank=True, null=True)),
                ("only_app", models.BigIntegerField(blank=True, null=True)),
                ("only_processor", models.CharField(blank=True, db_default="", default="", max_length=3)),
                ("state", models.CharField(default="waiting", max_length=8)),
                ("percent", models.PositiveSmallIntegerField(default=0)),
                ("size_bytes", models.BigIntegerField(default=0)),
                ("asked_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("finished_at", models.DateTimeField(blank=True, null=True)),
            ],
            options={
                "ordering": ["-asked_at"],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("content", "all"), ("first", None), ("last", None)),
                            models.Q(
                                models.Q(("content", "all"), _negated=True),
                                ("first__isnull", False),
                                ("last__gte", models.F("first")),
                            ),
                            _connector="OR",
                        ),
                        name="datacopy_days",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="HostClient",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False)),
                (
                    "host",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="other_clients",
                        to="portal.host",
                    ),
                ),
                ("cpid", models.CharField(max_length=80)),
                ("books", models.JSONField(default=dict)),
                ("seen_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("told_apart_at", models.DateTimeField(blank=True, null=True)),
                (
                    "record",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="told_apart_from",
                        to="portal.host",
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("host", "cpid"), name="hostclient_host_cpid"),
                    models.CheckConstraint(
                        condition=models.Q(("record", None), ("told_apart_at__isnull", False), _connector="OR"),
                        name="hostclient_record_apart",
                    ),
                    models.CheckConstraint(condition=models.Q(("cpid", ""), _negated=True), name="hostclient_has_cpid"),
                ],
            },
        ),
        migrations.CreateModel(
            name="HostLedger",
            fields=[
                (
                    "host",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="ledger",
                        serialize=False,
                        to="portal.host",
                    ),
                ),
                ("last_at", models.DateTimeField(null=True)),
                ("client_now", models.FloatField(null=True)),
                ("contacts", models.BigIntegerField(default=0)),
                (
                    "level",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.BigIntegerField(), default=accounting.models.ledger._no_allowance, size=5
                    ),
                ),
                (
                    "excluded_types",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=64), blank=True, default=list, size=None
                    ),
                ),
                ("contact", models.JSONField(default=dict)),
                ("answer_digest", models.CharField(blank=True, default="", editable=False, max_length=16)),
                ("answers_logged", models.IntegerField(default=0, editable=False)),
                ("same_answers", models.IntegerField(default=0, editable=False)),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(condition=models.Q(("level__len", 5)), name="hostledger_level_len")
                ],
            },
        ),
        migrations.CreateModel(
            name="ModelSpeed",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False)),
                ("processor", models.CharField(max_length=3)),
                ("name", models.CharField(max_length=120)),
                ("flops", models.BigIntegerField()),
                ("as_of", models.DateTimeField()),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("processor", "name"), name="modelspeed_model"),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("flops__gt", 0),
                            (
                                "processor__in",
                                [
                                    accounting.engine.amounts.Processor["CPU"],
                                    accounting.engine.amounts.Processor["GPU"],
                                ],
                            ),
                        ),
                        name="modelspeed_range",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="TaskList",
            fields=[
                (
                    "host",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="task_list",
                        serialize=False,
                        to="portal.host",
                    ),
                ),
                ("at", models.DateTimeField()),
                ("tasks", models.JSONField(default=list)),
                ("left_out", models.PositiveIntegerField(default=0)),
                ("followed_at", models.DateTimeField(null=True)),
            ],
            options={
                "indexes": [
                    models.Index(
                        condition=models.Q(
                            ("followed_at__isnull", True), ("followed_at__lt", models.F("at")), _connector="OR"
                        ),
                        fields=["at"],
                        name="tasklist_to_follow",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="AccountTotal",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False)),
                (
                    "project",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="accounting.project",
                    ),
                ),
                ("project_user_id", models.BigIntegerField()),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="account_totals",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                ("total_credit", models.BigIntegerField()),
                ("avg_credit", models.FloatField(default=0)),
                ("avg_at", models.DateTimeField()),
                ("as_of", models.DateTimeField()),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("project", "project_user_id"), name="accounttotal_once"),
                    models.CheckConstraint(
                        condition=models.Q(("project_user_id__gt", 0), ("total_credit__gte", 0)),
                        name="accounttotal_range",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Announcement",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False)),
                ("title", models.CharField(max_length=100)),
                ("text", models.TextField(max_length=2000)),
                ("is_draft", models.BooleanField(db_default=False, default=False, editable=False)),
                ("published_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("ends_at", models.DateTimeField(blank=True, null=True)),
                ("urgent_until", models.DateTimeField(blank=True, null=True)),
                (
                    "project",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="accounting.project",
                    ),
                ),
                ("platform", models.CharField(blank=True, max_length=64)),
                (
                    "older_than",
                    models.CharField(
                        blank=True,
                        max_length=32,
                        validators=[
                            django.core.validators.RegexValidator(
                                "^\\d{1,4}\\.\\d{1,4}(\\.\\d{1,4})?$", "Enter a client version, such as 8.2.0."
                            )
                        ],
                    ),
                ),
                ("app_name", models.CharField(blank=True, max_length=255)),
                ("app_version_num", models.PositiveIntegerField(blank=True, null=True)),
            ],
            options={
                "ordering": ["-published_at"],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            ("ends_at", None), ("ends_at__gt", models.F("published_at")), _connector="OR"
                        ),
                        name="announcement_ends_after_it_begins",
                        violation_error_message="“Shown until” has to be later than “shown from”.",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("app_version_num", None), models.Q(("app_name", ""), _negated=True), _connector="OR"
                        ),
                        name="announcement_version_of_an_app",
                        violation_error_message="Enter the app that this version belongs to.",
                    ),
                ],
            },
        ),
        migrations.SeparateDatabaseAndState(
            database_operations=[
                migrations.RunSQL(
                    sql=_by_hand.TABLES["day"],
                ),
            ],
            state_operations=[
                migrations.CreateModel(
                    name="Day",
                    fields=[
                        ("cpu_ec", models.BigIntegerField(default=0)),
                        ("gpu_ec", models.BigIntegerField(default=0)),
                        ("cpu_time", models.BigIntegerField(default=0)),
                        ("gpu_time", models.BigIntegerField(default=0)),
                        ("njobs_success", models.BigIntegerField(default=0)),
                        ("njobs_error", models.BigIntegerField(default=0)),
                        (
                            "pk",
                            models.CompositePrimaryKey(
                                "user_id",
                                "day",
                                "project_id",
                                "host_id",
                                blank=True,
                                editable=False,
                                primary_key=True,
                                serialize=False,
                            ),
                        ),
                        (
                            "user",
                            models.ForeignKey(
                                db_index=False,
                                on_delete=django.db.models.deletion.CASCADE,
                                related_name="+",
                                to=settings.AUTH_USER_MODEL,
                            ),
                        ),
                        ("day", models.DateField()),
                        (
                            "project",
                            models.ForeignKey(
                                db_constraint=False,
                                db_index=False,
                                on_delete=django.db.models.deletion.DO_NOTHING,
                                related_name="+",
                                to="accounting.project",
                            ),
                        ),
                        (
                            "host",
                            models.ForeignKey(
                                db_constraint=False,
                                db_index=False,
                                on_delete=django.db.models.deletion.DO_NOTHING,
                                related_name="+",
                                to="portal.host",
                            ),
                        ),
                        ("flags", models.SmallIntegerField(default=0)),
                    ],
                    options={
                        "db_table": "accounting_day",
                    },
                ),
            ],
        ),
        migrations.CreateModel(
            name="ErasedDay",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False)),
                ("cpu_ec", models.BigIntegerField(default=0)),
                ("gpu_ec", models.BigIntegerField(default=0)),
                ("cpu_time", models.BigIntegerField(default=0)),
                ("gpu_time", models.BigIntegerField(default=0)),
                ("njobs_success", models.BigIntegerField(default=0)),
                ("njobs_error", models.BigIntegerField(default=0)),
                (
                    "project",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="accounting.project",
                    ),
                ),
                ("day", models.DateField()),
            ],
            options={
                "constraints": [models.UniqueConstraint(fields=("project", "day"), name="erasedday_once")],
            },
        ),
        migrations.CreateModel(
            name="FollowedTask",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False)),
                (
                    "host",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="followed_tasks",
                        to="portal.host",
                    ),
                ),
                (
                    "project",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="followed_tasks",
                        to="accounting.project",
                    ),
                ),
                ("name", models.CharField(max_length=255)),
                ("first_seen_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("last_seen_at", models.DateTimeField(default=django.utils.timezone.now)),
                (
                    "standing",
                    models.PositiveSmallIntegerField(default=accounting.engine.client_tasks.TaskCreditState["OPEN"]),
                ),
                ("granted_credit", models.FloatField(null=True)),
                ("asks", models.PositiveSmallIntegerField(default=0)),
                ("unknowns", models.PositiveSmallIntegerField(default=0)),
                ("ask_after", models.DateTimeField(null=True)),
                ("settled_at", models.DateTimeField(null=True)),
            ],
            options={
                "indexes": [
                    models.Index(
                        condition=models.Q(("ask_after__isnull", False)),
                        fields=["project", "ask_after"],
                        name="followedtask_to_ask",
                    ),
                    models.Index(fields=["last_seen_at"], name="followedtask_seen"),
                ],
                "constraints": [
                    models.UniqueConstraint(fields=("host", "project", "name"), name="followedtask_once"),
                    models.CheckConstraint(
                        condition=models.Q(
                            (
                                "standing__in",
                                [
                                    accounting.engine.client_tasks.TaskCreditState["OPEN"],
                                    accounting.engine.client_tasks.TaskCreditState["PENDING"],
                                    accounting.engine.client_tasks.TaskCreditState["GRANTED"],
                                    accounting.engine.client_tasks.TaskCreditState["REFUSED"],
                                    accounting.engine.client_tasks.TaskCreditState["FAILED"],
                                    accounting.engine.client_tasks.TaskCreditState["UNKNOWN"],
                                ],
                            )
                        ),
                        name="followedtask_standing",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("granted_credit__isnull", True),
                            models.Q(("granted_credit__gte", 0), ("granted_credit__lte", 1000000000.0)),
                            _connector="OR",
                        ),
                        name="followedtask_credit_range",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(
                                ("granted_credit__isnull", False),
                                ("standing", accounting.engine.client_tasks.TaskCreditState["GRANTED"]),
                            ),
                            models.Q(
                                models.Q(
                                    ("standing", accounting.engine.client_tasks.TaskCreditState["GRANTED"]),
                                    _negated=True,
                                ),
                                ("granted_credit__isnull", True),
                            ),
                            _connector="OR",
                        ),
                        name="followedtask_credit_when_granted",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="GrantedDay",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "user_id",
                        "day",
                        "project_id",
                        "host_id",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                ("day", models.DateField()),
                (
                    "project",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to="accounting.project",
                    ),
                ),
                (
                    "host",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to="portal.host",
                    ),
                ),
                ("credit", models.BigIntegerField()),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(condition=models.Q(("credit__gt", 0)), name="grantedday_positive")
                ],
            },
        ),
        migrations.CreateModel(
            name="GrantedTotal",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False)),
                (
                    "project",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="accounting.project",
                    ),
                ),
                ("project_host_id", models.BigIntegerField()),
                (
                    "host",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="granted_totals", to="portal.host"
                    ),
                ),
                ("total_credit", models.BigIntegerField()),
                ("highest_credit", models.BigIntegerField()),
                ("counted_credit", models.BigIntegerField(default=0)),
                ("avg_credit", models.FloatField(default=0)),
                ("avg_at", models.DateTimeField()),
                ("made_at", models.DateTimeField()),
                ("as_of", models.DateTimeField()),
                ("fits_since", models.DateTimeField()),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("project", "project_host_id"), name="grantedtotal_once"),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("counted_credit__gte", 0), ("project_host_id__gt", 0), ("total_credit__gte", 0)
                        ),
                        name="grantedtotal_range",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("highest_credit__gte", models.F("total_credit"))),
                        name="grantedtotal_highest",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("as_of__gte", models.F("fits_since"))), name="grantedtotal_times"
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="HostProject",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "host_id", "project_id", blank=True, editable=False, primary_key=True, serialize=False
                    ),
                ),
                (
                    "host",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="host_projects",
                        to="portal.host",
                    ),
                ),
                (
                    "project",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="host_projects",
                        to="accounting.project",
                    ),
                ),
                (
                    "reported",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.DecimalField(decimal_places=0, max_digits=22), null=True, size=6
                    ),
                ),
                (
                    "earlier",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=django.contrib.postgres.fields.ArrayField(
                            base_field=models.DecimalField(decimal_places=0, max_digits=22), size=6
                        ),
                        default=list,
                        size=16,
                    ),
                ),
                (
                    "restart",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.DecimalField(decimal_places=0, max_digits=22), null=True, size=6
                    ),
                ),
                (
                    "broken",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=16), db_default=[], default=list, size=None
                    ),
                ),
                (
                    "handed",
                    django.contrib.postgres.fields.ArrayField(base_field=models.BigIntegerField(), null=True, size=6),
                ),
                (
                    "credited",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.BigIntegerField(), default=accounting.models.ledger._zeros, size=6
                    ),
                ),
                (
                    "pending",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.BigIntegerField(), default=accounting.models.ledger._zeros, size=6
                    ),
                ),
                (
                    "dropped",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.DecimalField(decimal_places=0, max_digits=26),
                        default=accounting.models.ledger._zeros,
                        size=6,
                    ),
                ),
                ("listed", models.BooleanField(default=False)),
                ("state", models.JSONField(default=dict)),
                ("suspended", models.BooleanField(default=False)),
                ("told_suspended", models.BooleanField(default=False, editable=False)),
                ("no_new_work", models.BooleanField(default=False)),
                ("excluded", models.BooleanField(default=False)),
                (
                    "no_rsc",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=64), blank=True, default=list, size=None
                    ),
                ),
                ("update_asked", models.BooleanField(default=False)),
                ("drop_waiting", models.BooleanField(default=False)),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("credited__len", 6), ("dropped__len", 6), ("pending__len", 6)),
                        name="hostproject_six",
                    ),
                    models.CheckConstraint(condition=models.Q(("restart__len", 6)), name="hostproject_restart_six"),
                    models.CheckConstraint(
                        condition=models.Q(
                            django.db.models.lookups.Exact(
                                models.Func("earlier", 2, function="array_length", output_field=models.IntegerField()),
                                6,
                            ),
                            ("earlier__len__lte", 16),
                        ),
                        name="hostproject_earlier_sixes",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("restart__isnull", True), ("earlier__len__gt", 0), _connector="OR"),
                        name="hostproject_earlier_and_restart",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Month",
            fields=[
                ("cpu_ec", models.BigIntegerField(default=0)),
                ("gpu_ec", models.BigIntegerField(default=0)),
                ("cpu_time", models.BigIntegerField(default=0)),
                ("gpu_time", models.BigIntegerField(default=0)),
                ("njobs_success", models.BigIntegerField(default=0)),
                ("njobs_error", models.BigIntegerField(default=0)),
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "user_id",
                        "month",
                        "project_id",
                        "host_id",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                ("month", models.DateField()),
                (
                    "project",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to="accounting.project",
                    ),
                ),
                (
                    "host",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="+",
                        to="portal.host",
                    ),
                ),
                ("flags", models.SmallIntegerField(default=0)),
                ("granted", models.BigIntegerField(default=0)),
            ],
            options={
                "constraints": [models.CheckConstraint(condition=models.Q(("month__day", 1)), name="month_first_day")],
            },
        ),
        migrations.CreateModel(
            name="Note",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False)),
                (
                    "host",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="notes",
                        to="portal.host",
                    ),
                ),
                (
                    "project",
                    models.ForeignKey(
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="accounting.project",
                    ),
                ),
                ("day", models.DateField()),
                ("kind", models.CharField(max_length=24)),
                ("detail", models.CharField(blank=True, max_length=300)),
                ("amount", models.DecimalField(decimal_places=0, default=0, max_digits=26)),
                ("count", models.PositiveIntegerField(default=1)),
                ("first_at", models.DateTimeField()),
                ("last_at", models.DateTimeField()),
            ],
            options={
                "ordering": ["-last_at"],
                "indexes": [models.Index(fields=["day", "kind"], name="note_day_kind")],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("host", "day", "kind", "project", "detail"),
                        name="note_once_a_day",
                        nulls_distinct=False,
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="OwnAccount",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False)),
                (
                    "user",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="own_accounts",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "project",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="own_accounts",
                        to="accounting.project",
                    ),
                ),
                ("state", models.CharField(max_length=16)),
                ("state_at", models.DateTimeField()),
                ("reason", portal.languages.sentences.MessageField(blank=True, editable=False, null=True)),
                ("asked_at", models.DateTimeField(null=True)),
                ("sealed_request", models.BinaryField(null=True)),
                ("number", models.BigIntegerField(default=0)),
                ("name", models.CharField(blank=True, max_length=300)),
                ("can_check", models.BooleanField(default=False)),
                ("check_after", models.DateTimeField(db_index=True)),
                ("total_credit", models.BigIntegerField(null=True)),
                ("avg_credit", models.FloatField(null=True)),
                ("credit_at", models.DateTimeField(null=True)),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("user", "project"), name="ownaccount_once"),
                    models.CheckConstraint(
                        condition=models.Q(("sealed_request", None), ("state", "asking"), _connector="OR"),
                        name="ownaccount_request_while_asking",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("total_credit", None), ("total_credit__gte", 0), _connector="OR"),
                        name="ownaccount_credit_range",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="ProjectAddress",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False)),
                (
                    "project",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="addresses", to="accounting.project"
                    ),
                ),
                ("url", models.CharField(max_length=255)),
                ("key", models.CharField(editable=False, max_length=255, unique=True)),
                ("source", models.CharField(default="operator", editable=False, max_length=8)),
                ("since", models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                ("is_active", models.BooleanField(default=True)),
            ],
            options={
                "ordering": ["-since"],
            },
        ),
        migrations.CreateModel(
            name="ProjectChange",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False)),
                (
                    "project",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="changes_said",
                        to="accounting.project",
                    ),
                ),
                ("at", models.DateTimeField()),
                ("label", models.CharField(max_length=60)),
                ("before", models.CharField(blank=True, max_length=500)),
                ("now", models.CharField(blank=True, max_length=500)),
            ],
            options={
                "ordering": ["-at", "-pk"],
                "default_permissions": (),
                "indexes": [models.Index(fields=["project", "-at"], name="projectchange_by_project")],
            },
        ),
        migrations.CreateModel(
            name="ProjectDay",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False)),
                ("cpu_ec", models.BigIntegerField(default=0)),
                ("gpu_ec", models.BigIntegerField(default=0)),
                ("cpu_time", models.BigIntegerField(default=0)),
                ("gpu_time", models.BigIntegerField(default=0)),
                ("njobs_success", models.BigIntegerField(default=0)),
                ("njobs_error", models.BigIntegerField(default=0)),
                (
                    "project",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="project_days",
                        to="accounting.project",
                    ),
                ),
                ("day", models.DateField()),
                ("hosts", models.PositiveIntegerField(default=0)),
                ("users", models.PositiveIntegerField(default=0)),
                ("rolled_up_at", models.DateTimeField()),
            ],
            options={
                "constraints": [models.UniqueConstraint(fields=("project", "day"), name="projectday_once")],
            },
        ),
        migrations.CreateModel(
            name="ProjectKeyword",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False)),
                (
                    "project",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="keywords",
                        to="accounting.project",
                    ),
                ),
                ("keyword", models.PositiveIntegerField()),
                (
                    "weight",
                    models.FloatField(
                        default=1,
                        validators=[
                            django.core.validators.MinValueValidator(0.01),
                            django.core.validators.MaxValueValidator(1),
                        ],
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("project", "keyword"), name="projectkeyword_once"),
                    models.CheckConstraint(
                        condition=models.Q(("weight__gt", 0), ("weight__lte", 1)), name="projectkeyword_weight_range"
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="ProjectProfile",
            fields=[
                (
                    "project",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="profile",
                        serialize=False,
                        to="accounting.project",
                    ),
                ),
                ("said", models.JSONField(default=dict)),
                ("said_at", models.DateTimeField(null=True)),
                ("seen", models.JSONField(default=dict)),
                ("etag", models.CharField(blank=True, max_length=200)),
                ("last_modified", models.CharField(blank=True, max_length=60)),
                ("asked_at", models.DateTimeField(null=True)),
                ("ask_after", models.DateTimeField(db_index=True, default=django.utils.timezone.now)),
                ("problem", portal.languages.sentences.MessageField(blank=True, editable=False, null=True)),
                ("problem_since", models.DateTimeField(null=True)),
                ("failures", models.PositiveIntegerField(default=0)),
                ("says_down_since", models.DateTimeField(null=True)),
                ("status", models.JSONField(default=dict)),
                ("code_key_seen", models.CharField(blank=True, max_length=64)),
                ("code_key", models.CharField(blank=True, max_length=64)),
                ("tried_at", models.DateTimeField(null=True)),
                ("tried_well", models.BooleanField(null=True)),
                ("tried_text", portal.languages.sentences.MessageField(blank=True, editable=False, null=True)),
            ],
        ),
        migrations.CreateModel(
            name="ProjectRatio",
            fields=[
                (
                    "project",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="ratio",
                        serialize=False,
                        to="accounting.project",
                    ),
                ),
                ("as_of", models.DateTimeField()),
                ("median", models.FloatField(null=True)),
                ("computers", models.PositiveIntegerField(default=0)),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("median__isnull", True), ("median__gte", 0), _connector="OR"),
                        name="projectratio_range",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="ProjectStanding",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False)),
                (
                    "project",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="standings",
                        to="accounting.project",
                    ),
                ),
                ("on_gpu", models.BooleanField()),
                ("target", models.FloatField()),
                ("got", models.FloatField()),
                ("boost", models.FloatField()),
                ("day", models.DateField()),
            ],
            options={
                "constraints": [models.UniqueConstraint(fields=("project", "on_gpu"), name="projectstanding_once")],
            },
        ),
        migrations.CreateModel(
            name="ProjectTrouble",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False)),
                (
                    "project",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="troubles",
                        to="accounting.project",
                    ),
                ),
                ("kind", models.CharField(max_length=8)),
                ("processor_type", models.CharField(blank=True, max_length=64)),
                ("since", models.DateTimeField()),
                ("last_at", models.DateTimeField()),
                ("volunteers", models.PositiveIntegerField()),
                ("of_volunteers", models.PositiveIntegerField()),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("project", "kind", "processor_type"), name="projecttrouble_once")
                ],
            },
        ),
        migrations.CreateModel(
            name="ProjectVersion",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False)),
                (
                    "project",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="versions",
                        to="accounting.project",
                    ),
                ),
                ("platform", models.CharField(blank=True, max_length=64)),
                ("processor_type", models.CharField(default="CPU", max_length=64)),
            ],
            options={
                "ordering": ["platform", "processor_type"],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("project", "platform", "processor_type"), name="projectversion_once"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Settlement",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False)),
                (
                    "host",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="settlements",
                        to="portal.host",
                    ),
                ),
                (
                    "project",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to="accounting.project"
                    ),
                ),
                ("seen_on", models.DateField()),
                ("read_on", models.DateField()),
                ("estimated_before", models.BigIntegerField()),
                ("is_whole", models.BooleanField()),
                ("granted", models.BigIntegerField(default=0)),
                ("granted_last", models.BigIntegerField(default=0)),
                ("compared_from", models.BigIntegerField(default=0)),
                ("estimated", models.BigIntegerField(default=0)),
                ("is_outside", models.BooleanField(default=False)),
            ],
            options={
                "ordering": ["-is_outside", "project", "host"],
                "constraints": [
                    models.UniqueConstraint(fields=("host", "project"), name="settlement_once"),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("estimated__gte", 0), ("granted__gte", models.F("granted_last")), ("granted_last__gte", 0)
                        ),
                        name="settlement_range",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="StatisticsImport",
            fields=[
                (
                    "project",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="statistics_import",
                        serialize=False,
                        to="accounting.project",
                    ),
                ),
                ("is_on", models.BooleanField(default=True)),
                (
                    "url",
                    models.CharField(
                        blank=True,
                        max_length=255,
                        validators=[django.core.validators.URLValidator(schemes=["http", "https"])],
                    ),
                ),
                ("account_email", models.EmailField(blank=True, max_length=254)),
                ("etag", models.CharField(blank=True, editable=False, max_length=200)),
                ("last_modified", models.CharField(blank=True, editable=False, max_length=60)),
                ("update_time", models.DateTimeField(editable=False, null=True)),
                ("first_update_time", models.DateTimeField(editable=False, null=True)),
                ("imported_at", models.DateTimeField(editable=False, null=True)),
                ("hosts_read", models.PositiveIntegerField(default=0, editable=False)),
                ("hosts_kept", models.PositiveIntegerField(default=0, editable=False)),
                ("users_read", models.PositiveIntegerField(default=0, editable=False)),
                ("users_kept", models.PositiveIntegerField(default=0, editable=False)),
                ("hosts_odd", models.PositiveIntegerField(db_default=0, default=0, editable=False)),
                ("users_odd", models.PositiveIntegerField(db_default=0, default=0, editable=False)),
                ("odd_ours", models.CharField(blank=True, db_default="", default="", editable=False, max_length=300)),
                ("granted", models.BigIntegerField(default=0, editable=False)),
                ("asked_at", models.DateTimeField(editable=False, null=True)),
                ("next_at", models.DateTimeField(db_index=True, default=django.utils.timezone.now, editable=False)),
                ("trouble", portal.languages.sentences.MessageField(blank=True, editable=False, null=True)),
                ("trouble_since", models.DateTimeField(editable=False, null=True)),
                ("failures", models.PositiveIntegerField(default=0, editable=False)),
            ],
            options={
                "ordering": ["project__name"],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("failures", 0), ("trouble__isnull", True), ("trouble_since", None)),
                            models.Q(("trouble__isnull", False), ("trouble_since__isnull", False)),
                            _connector="OR",
                        ),
                        name="statisticsimport_trouble_since",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("first_update_time", None), ("update_time", None)),
                            ("first_update_time__lte", models.F("update_time")),
                            _connector="OR",
                        ),
                        name="statisticsimport_first_before_last",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("granted__gte", 0),
                            ("hosts_kept__lte", models.F("hosts_read")),
                            ("users_kept__lte", models.F("users_read")),
                        ),
                        name="statisticsimport_counts",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="TaskSource",
            fields=[
                (
                    "project",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="task_source",
                        serialize=False,
                        to="accounting.project",
                    ),
                ),
                ("answered_at", models.DateTimeField(null=True)),
                ("ask_after", models.DateTimeField(default=django.utils.timezone.now)),
                ("failures", models.PositiveSmallIntegerField(default=0)),
                ("problem", portal.languages.sentences.MessageField(blank=True, editable=False, null=True)),
            ],
        ),
        migrations.CreateModel(
            name="UserProject",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False)),
                (
                    "user",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="user_projects",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "project",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="user_projects",
                        to="accounting.project",
                    ),
                ),
                ("is_chosen", models.BooleanField(default=False)),
                ("resource_share", models.FloatField(blank=True, null=True)),
                ("account_key", models.BinaryField(blank=True, null=True)),
                ("total_ec", models.BigIntegerField(default=0, editable=False)),
                ("avg_ec", models.FloatField(default=0, editable=False)),
                ("avg_at", models.DateTimeField(blank=True, editable=False, null=True)),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("user", "project"), name="userproject_once"),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("resource_share__isnull", True),
                            models.Q(("resource_share__gte", 0), ("resource_share__lte", 1000000.0)),
                            _connector="OR",
                        ),
                        name="userproject_share_range",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="DataCopyPart",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False)),
                (
                    "copy",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="parts",
                        to="accounting.datacopy",
                    ),
                ),
                ("number", models.PositiveIntegerField()),
                ("content", models.BinaryField()),
            ],
            options={
                "constraints": [models.UniqueConstraint(fields=("copy", "number"), name="datacopypart_once")],
            },
        ),
        *_by_hand.OPERATIONS,
    ]
