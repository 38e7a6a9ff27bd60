import django.contrib.postgres.fields
import django.core.validators
import django.db.models.deletion
import django.db.models.functions.datetime
import django.db.models.functions.text
import django.utils.timezone
import portal.languages.sentences
import portal.models.common
from django.conf import settings
from django.db import migrations, models
from portal.migrations import _by_hand


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("auth", "0012_alter_user_first_name_max_length"),
        ("contenttypes", "0002_remove_content_type_name"),
    ]

    operations = [
        migrations.CreateModel(
            name="User",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False)),
                ("password", models.CharField(max_length=128)),
                ("last_login", models.DateTimeField(blank=True, null=True)),
                ("is_superuser", models.BooleanField(default=False)),
                ("email", models.EmailField(max_length=254, unique=True)),
                ("name", models.CharField(blank=True, max_length=100)),
                ("language", models.CharField(blank=True, db_default="", default="", max_length=16)),
                ("time_zone", models.CharField(blank=True, db_default="", default="", max_length=64)),
                ("client_password", models.CharField(blank=True, editable=False, max_length=200)),
                ("client_password_email", models.EmailField(blank=True, editable=False, max_length=254)),
                ("next_client_password", models.CharField(blank=True, editable=False, max_length=200)),
                ("next_client_password_email", models.EmailField(blank=True, editable=False, max_length=254)),
                ("login_name", models.CharField(blank=True, db_default="", default="", max_length=40)),
                ("login_name_key", models.CharField(blank=True, editable=False, max_length=40, null=True, unique=True)),
                (
                    "login_name_password",
                    models.CharField(blank=True, db_default="", default="", editable=False, max_length=200),
                ),
                (
                    "cross_project_id",
                    models.CharField(default=portal.models.common.new_token, editable=False, max_length=32),
                ),
                ("awaited_email_at", models.DateTimeField(blank=True, editable=False, null=True)),
                ("terms_accepted_at", models.DateTimeField(blank=True, editable=False, null=True)),
                ("deletion_asked_at", models.DateTimeField(blank=True, editable=False, null=True)),
                ("new_hosts_per_day", models.PositiveIntegerField(blank=True, null=True)),
                ("is_staff", models.BooleanField(default=False)),
                ("rights_held_at", models.DateTimeField(blank=True, editable=False, null=True)),
                ("is_active", models.BooleanField(default=True)),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                (
                    "groups",
                    models.ManyToManyField(
                        blank=True, related_name="user_set", related_query_name="user", to="auth.group"
                    ),
                ),
                (
                    "user_permissions",
                    models.ManyToManyField(
                        blank=True, related_name="user_set", related_query_name="user", to="auth.permission"
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("email", django.db.models.functions.text.Lower("email"))),
                        name="user_email_is_lower_case",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("login_name", ""), ("login_name_key", None)),
                            models.Q(models.Q(("login_name", ""), _negated=True), ("login_name_key__isnull", False)),
                            _connector="OR",
                        ),
                        name="user_login_name_and_key",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="OperatingFigure",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False)),
                ("name", models.CharField(max_length=60)),
                ("label", models.CharField(blank=True, max_length=120)),
                ("taken_at", models.DateTimeField()),
                ("value", models.FloatField()),
            ],
            options={
                "indexes": [models.Index(fields=["taken_at"], name="operatingfigure_taken_at")],
                "constraints": [
                    models.UniqueConstraint(fields=("name", "label", "taken_at"), name="operatingfigure_once")
                ],
            },
        ),
        migrations.CreateModel(
            name="OperatingTable",
            fields=[
                ("name", models.CharField(max_length=60, primary_key=True, serialize=False)),
                ("taken_at", models.DateTimeField()),
                ("rows", models.JSONField(default=list)),
            ],
        ),
        migrations.CreateModel(
            name="PeriodicTask",
            fields=[
                ("name", models.CharField(max_length=100, primary_key=True, serialize=False)),
                ("done_at", models.DateTimeField()),
            ],
            options={
                "default_permissions": (),
            },
        ),
        migrations.CreateModel(
            name="SignedEntry",
            fields=[
                ("number", models.BigIntegerField(primary_key=True, serialize=False)),
                ("at", models.DateTimeField()),
                ("kind", models.CharField(max_length=16)),
                ("person", models.BigIntegerField()),
                ("content", models.JSONField()),
                ("previous", models.CharField(blank=True, max_length=64)),
                ("digest", models.CharField(max_length=64)),
                ("signature", models.CharField(max_length=88)),
            ],
            options={
                "ordering": ["-number"],
                "default_permissions": ("view",),
            },
        ),
        migrations.CreateModel(
            name="SiteText",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False)),
                ("page", models.CharField(max_length=16, unique=True)),
                ("text", models.TextField(max_length=50000)),
                ("changed_at", models.DateTimeField(auto_now=True)),
            ],
            options={
                "ordering": ["page"],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("page__in", ["about", "privacy", "terms"])), name="sitetext_page"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="Account",
            fields=[],
            options={
                "permissions": [
                    ("remove_factors_account", "Can remove a lost second factor"),
                    ("block_account", "Can block and unblock an account"),
                    ("copy_data_account", "Can have a copy of somebody's data made for them"),
                    ("erase_account", "Can have an account deleted at its owner's request"),
                ],
                "proxy": True,
                "default_permissions": ("view",),
            },
            bases=("portal.user",),
        ),
        migrations.CreateModel(
            name="AccountBlock",
            fields=[
                (
                    "user",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="block",
                        serialize=False,
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                ("reason", models.CharField(max_length=200)),
                (
                    "blocked_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                ("at", models.DateTimeField(default=django.utils.timezone.now)),
            ],
        ),
        migrations.CreateModel(
            name="ApiToken",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False)),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="api_tokens",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                ("name", models.CharField(max_length=100)),
                (
                    "scopes",
                    django.contrib.postgres.fields.ArrayField(base_field=models.CharField(max_length=32), size=None),
                ),
                ("token_hash", models.BinaryField(max_length=32, unique=True)),
                ("hint", models.CharField(editable=False, max_length=10)),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                ("expires_at", models.DateTimeField(blank=True, null=True)),
                ("last_used_at", models.DateTimeField(blank=True, null=True)),
                ("revoked_at", models.DateTimeField(blank=True, null=True)),
            ],
            options={
                "ordering": ["-created_at"],
            },
        ),
        migrations.CreateModel(
            name="Change",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False)),
                (
                    "content_type",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to="contenttypes.contenttype"
                    ),
                ),
                ("object_pk", models.CharField(db_index=True, max_length=255)),
                ("object_id", models.BigIntegerField(blank=True, db_index=True, null=True)),
                ("object_repr", models.TextField()),
                ("serialized_data", models.JSONField(null=True)),
                ("action", models.PositiveSmallIntegerField(db_index=True)),
                ("changes_text", models.TextField(blank=True)),
                ("changes", models.JSONField(null=True)),
                (
                    "actor",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                ("cid", models.CharField(blank=True, db_index=True, max_length=255, null=True)),
                ("remote_addr", models.GenericIPAddressField(blank=True, null=True)),
                ("remote_port", models.PositiveIntegerField(blank=True, null=True)),
                ("timestamp", models.DateTimeField(db_index=True, default=django.utils.timezone.now)),
                ("additional_data", models.JSONField(blank=True, null=True)),
                ("actor_email", models.CharField(blank=True, max_length=254, null=True)),
                ("reason", models.CharField(blank=True, max_length=500)),
                (
                    "undoes",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="undone_by",
                        to=settings.AUDITLOG_LOGENTRY_MODEL,
                    ),
                ),
            ],
            options={
                "ordering": ["-id"],
                "default_permissions": ("view",),
            },
        ),
        migrations.CreateModel(
            name="ConfirmationRequest",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False)),
                ("kind", models.CharField(max_length=32)),
                ("subject", models.CharField(max_length=300)),
                ("payload", models.JSONField(editable=False)),
                (
                    "asked_by",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, related_name="+", to=settings.AUTH_USER_MODEL
                    ),
                ),
                ("asked_at", models.DateTimeField(default=django.utils.timezone.now)),
                (
                    "decided_by",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                ("decided_at", models.DateTimeField(null=True)),
                ("is_confirmed", models.BooleanField(null=True)),
            ],
            options={
                "ordering": ["-id"],
                "default_permissions": ("view",),
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(
                                ("decided_by__isnull", False),
                                ("is_confirmed", True),
                                models.Q(("decided_by", models.F("asked_by")), _negated=True),
                            ),
                            models.Q(("decided_by__isnull", False), ("is_confirmed", False)),
                            models.Q(("decided_by__isnull", True), ("is_confirmed__isnull", True)),
                            _connector="OR",
                        ),
                        name="confirmationrequest_two",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="ConsentEvent",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False)),
                (
                    "user",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="consent_events",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                ("kind", models.CharField(max_length=32)),
                ("is_given", models.BooleanField()),
                ("at", models.DateTimeField(default=django.utils.timezone.now)),
                ("wording", models.PositiveSmallIntegerField(null=True)),
                ("language", models.CharField(blank=True, max_length=16)),
                ("origin", models.CharField(default="page", max_length=16)),
            ],
            options={
                "ordering": ["-id"],
                "default_permissions": ("view",),
                "indexes": [models.Index(fields=["user", "-id"], name="consentevent_user")],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("origin__in", ["page", "rpc", "earlier"])), name="consentevent_origin"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="HostLimitRequest",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False)),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="host_limit_requests",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                ("hosts_per_day", models.PositiveIntegerField()),
                ("reason", models.CharField(max_length=500)),
                ("asked_at", models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                ("decided_at", models.DateTimeField(blank=True, null=True)),
                (
                    "decided_by",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                ("is_granted", models.BooleanField(default=False)),
            ],
            options={
                "ordering": ["-asked_at", "-pk"],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("decided_at", None)), fields=("user",), name="hostlimitrequest_one_waiting"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="JoinToken",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False)),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="join_tokens",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                ("login", models.CharField(editable=False, max_length=20, unique=True)),
                ("token_hash", models.BinaryField(max_length=32)),
                ("group", models.CharField(max_length=30)),
                ("max_hosts", models.PositiveIntegerField()),
                ("joined_hosts", models.PositiveIntegerField(default=0)),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                ("expires_at", models.DateTimeField()),
                ("last_used_at", models.DateTimeField(blank=True, null=True)),
                ("revoked_at", models.DateTimeField(blank=True, null=True)),
            ],
            options={
                "ordering": ["-created_at", "-pk"],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("joined_hosts__lte", models.F("max_hosts"))),
                        name="jointoken_within_its_number",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="LoginToken",
            fields=[
                (
                    "user",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="login_token",
                        serialize=False,
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                ("token_hash", models.BinaryField(max_length=32)),
                ("made_at", models.DateTimeField()),
            ],
        ),
        migrations.CreateModel(
            name="MailChoice",
            fields=[
                (
                    "user",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="mail_choice",
                        serialize=False,
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                ("silence", models.BooleanField(default=True)),
                (
                    "silent_days",
                    models.PositiveSmallIntegerField(
                        default=3, validators=[django.core.validators.MinValueValidator(1)]
                    ),
                ),
                ("no_work", models.BooleanField(default=False)),
                ("failing_jobs", models.BooleanField(default=False)),
                ("weekly_summary", models.BooleanField(default=False)),
                ("status_days", models.PositiveSmallIntegerField(db_default=0, default=0)),
                ("no_computer", models.BooleanField(db_default=True, default=True)),
                ("lapsed", models.BooleanField(db_default=False, default=False)),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("silent_days__gte", 1), ("silent_days__lte", 60)),
                        name="mailchoice_silent_days",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="MaintenanceRun",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False)),
                ("job", models.CharField(max_length=40)),
                (
                    "asked_by",
                    models.ForeignKey(
                        blank=True,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                ("asked_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("started_at", models.DateTimeField(blank=True, null=True)),
                ("finished_at", models.DateTimeField(blank=True, null=True)),
                ("lines", models.JSONField(default=list)),
                ("nlines", models.PositiveIntegerField(default=0)),
                ("failure", models.TextField(blank=True)),
            ],
            options={
                "default_permissions": ("view", "add"),
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("finished_at", None)), fields=("job",), name="maintenancerun_one_at_a_time"
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="RequestedWork",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False)),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="requested_work",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                ("kind", models.CharField(max_length=20)),
                ("subject", models.BigIntegerField()),
                ("asked_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("started_at", models.DateTimeField(blank=True, null=True)),
                ("finished_at", models.DateTimeField(blank=True, null=True)),
                ("ntries", models.PositiveSmallIntegerField(default=0)),
                ("is_given_up", models.BooleanField(default=False)),
            ],
            options={
                "indexes": [
                    models.Index(
                        condition=models.Q(("finished_at", None)), fields=["id"], name="requestedwork_unfinished"
                    ),
                    models.Index(fields=["finished_at"], name="requestedwork_finished"),
                ],
                "constraints": [
                    models.UniqueConstraint(fields=("kind", "subject"), name="requestedwork_once"),
                    models.CheckConstraint(
                        condition=models.Q(("is_given_up", False), ("finished_at__isnull", False), _connector="OR"),
                        name="requestedwork_given_up_is_over",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="SecurityEvent",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False)),
                (
                    "user",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="security_events",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                ("kind", models.CharField(max_length=16)),
                ("detail", portal.languages.sentences.MessageField(blank=True, editable=False, null=True)),
                ("address", models.CharField(blank=True, max_length=45)),
                ("user_agent", models.CharField(blank=True, max_length=200)),
                ("at", models.DateTimeField(default=django.utils.timezone.now)),
            ],
            options={
                "indexes": [
                    models.Index(fields=["user", "-at"], name="securityevent_user_at"),
                    models.Index(fields=["at"], name="securityevent_at"),
                ],
            },
        ),
        migrations.CreateModel(
            name="SentMail",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False)),
                (
                    "user",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="sent_mails",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                ("kind", models.CharField(max_length=16)),
                ("key", models.CharField(max_length=100)),
                ("sent_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("retry_at", models.DateTimeField(blank=True, null=True)),
                ("nrefused", models.PositiveSmallIntegerField(db_default=0, default=0)),
            ],
            options={
                "indexes": [
                    models.Index(condition=models.Q(("kind", "lapsed")), fields=["sent_at"], name="sentmail_lapsed")
                ],
                "constraints": [models.UniqueConstraint(fields=("user", "kind", "key"), name="sentmail_once")],
            },
        ),
        migrations.CreateModel(
            name="Session",
            fields=[
                ("session_key", models.CharField(max_length=64, primary_key=True, serialize=False)),
                ("session_data", models.TextField()),
                ("expire_date", models.DateTimeField(db_index=True)),
                (
                    "user",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="sessions",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                ("active_at", models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
            ],
        ),
        migrations.CreateModel(
            name="WaitingMail",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False)),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="waiting_mails",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                ("kind", models.CharField(max_length=12)),
                ("address", models.CharField(blank=True, max_length=64)),
                ("at", models.DateTimeField(default=django.utils.timezone.now)),
                ("due_at", models.DateTimeField(default=django.utils.timezone.now)),
            ],
        ),
        migrations.CreateModel(
            name="Host",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False)),
                (
                    "owner",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="hosts",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "token",
                    models.CharField(
                        default=portal.models.common.new_token, editable=False, max_length=32, unique=True
                    ),
                ),
                ("former_number", models.BigIntegerField(blank=True, editable=False, null=True)),
                ("host_cpid", models.CharField(blank=True, max_length=32)),
                (
                    "published_cpid",
                    models.CharField(blank=True, db_default="", default="", editable=False, max_length=32),
                ),
                ("domain_name", models.CharField(blank=True, max_length=255)),
                ("given_name", models.CharField(blank=True, max_length=100)),
                ("venue", models.CharField(blank=True, default="", max_length=6)),
                (
                    "groups",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=30), blank=True, db_default=[], default=list, size=None
                    ),
                ),
                (
                    "join_token",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="hosts",
                        to="portal.jointoken",
                    ),
                ),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                ("last_contact_at", models.DateTimeField(default=django.utils.timezone.now)),
                ("retired_at", models.DateTimeField(blank=True, null=True)),
                (
                    "merged_into",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="merged_hosts",
                        to="portal.host",
                    ),
                ),
                ("client_version", models.CharField(blank=True, max_length=32)),
                ("platform_name", models.CharField(blank=True, max_length=64)),
                ("timezone_secs", models.IntegerField(blank=True, null=True)),
                ("ncpus", models.PositiveIntegerField(default=0)),
                ("p_vendor", models.CharField(blank=True, max_length=128)),
                ("p_model", models.CharField(blank=True, max_length=256)),
                ("p_features", models.TextField(blank=True)),
                ("p_fpops", models.FloatField(blank=True, null=True)),
                ("p_iops", models.FloatField(blank=True, null=True)),
                ("p_membw", models.FloatField(blank=True, null=True)),
                ("benchmarked_at", models.DateTimeField(blank=True, null=True)),
                ("m_nbytes", models.BigIntegerField(blank=True, null=True)),
                ("m_cache", models.BigIntegerField(blank=True, null=True)),
                ("m_swap", models.BigIntegerField(blank=True, null=True)),
                ("d_total", models.BigIntegerField(blank=True, null=True)),
                ("os_name", models.CharField(blank=True, max_length=128)),
                ("os_version", models.CharField(blank=True, max_length=256)),
                ("product_name", models.CharField(blank=True, max_length=256)),
                ("virtualbox_version", models.CharField(blank=True, max_length=64)),
                ("docker_version", models.CharField(blank=True, db_default="", default="", max_length=64)),
                ("wsl", models.JSONField(blank=True, db_default=[], default=list)),
                (
                    "not_used",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=16), blank=True, db_default=[], default=list, size=None
                    ),
                ),
                ("client_brand", models.CharField(blank=True, db_default="", default="", max_length=64)),
                ("client_opaque", models.CharField(blank=True, db_default="", default="", max_length=1000)),
                ("coprocs", models.JSONField(blank=True, default=list)),
                ("hardware_digest", models.BinaryField(default=bytes, max_length=16)),
                ("hardware_faults", portal.languages.sentences.MessagesField(blank=True, default=list, editable=False)),
            ],
            options={
                "indexes": [models.Index(fields=["owner", "host_cpid"], name="host_owner_cpid")],
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("former_number__isnull", False)),
                        fields=("owner", "former_number"),
                        name="host_former_number_once",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("merged_into", models.F("id")), _negated=True),
                        name="host_not_merged_into_itself",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="ClientKey",
            fields=[
                ("id", models.BigAutoField(auto_created=True, primary_key=True, serialize=False)),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="client_keys",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "host",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="client_keys",
                        to="portal.host",
                    ),
                ),
                ("origin", models.CharField(max_length=8)),
                ("key_hash", models.BinaryField(max_length=32, unique=True)),
                ("hint", models.CharField(editable=False, max_length=6)),
                ("created_at", models.DateTimeField(default=django.utils.timezone.now, editable=False)),
                ("last_used_at", models.DateTimeField(blank=True, null=True)),
                ("revoked_at", models.DateTimeField(blank=True, null=True)),
            ],
            options={
                "ordering": ["-created_at"],
            },
        ),
        *_by_hand.OPERATIONS,
    ]
