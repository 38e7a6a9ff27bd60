"""People, the keys of their BOINC clients, and their computers."""

from __future__ import annotations

import secrets
from typing import Any, ClassVar, Final

from auditlog.models import AbstractLogEntry
from django.contrib.admin.models import LogEntry
from django.contrib.auth.hashers import make_password
from django.contrib.auth.models import AbstractBaseUser, BaseUserManager, PermissionsMixin
from django.contrib.postgres.fields import ArrayField
from django.core.validators import MinValueValidator
from django.db import models
from django.db.models.functions import Lower
from django.utils import timezone
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from portal.wire import credentials

MAX_NAME_CHARS: Final = 100
"""The longest name of a volunteer or a computer."""


def new_token() -> str:
    return secrets.token_hex(16)


class UserManager(BaseUserManager["User"]):
    def create_user(self, email: str, password: str | None = None, **fields: Any) -> User:
        user = self.model(email=email.strip().lower(), **fields)
        user.set_password(password)
        user.save(using=self._db)
        return user

    def create_superuser(self, email: str, password: str | None = None, **fields: Any) -> User:
        return self.create_user(email, password, is_staff=True, is_superuser=True, **fields)

    def get_by_natural_key(self, username: str | None) -> User:
        return self.get(email=(username or "").lower())


class User(AbstractBaseUser, PermissionsMixin):
    """A volunteer or an operator; the e-mail address, in lower case, is the login."""

    email = models.EmailField(_("e-mail address"), unique=True, max_length=254)
    name = models.CharField(_("display name"), max_length=MAX_NAME_CHARS, blank=True)
    # Of pages and mails; empty: the browser's, and the site's for mails.
    language = models.CharField(_("language"), max_length=16, blank=True, default="", db_default="")
    # A name of the time-zone database; empty: the browser's.
    time_zone = models.CharField(_("time zone"), max_length=64, blank=True, default="", db_default="")
    # A slow hash over md5(password + e-mail), which a BOINC client sends; see portal/wire/credentials.py.
    client_password = models.CharField(_("client password"), max_length=200, blank=True, editable=False)
    # The address that client_password was made with: another one means that the value is stale.
    client_password_email = models.EmailField(_("client password email"), max_length=254, blank=True, editable=False)
    # The same for an address that the person wants to change to: valid as soon as it has become the login.
    next_client_password = models.CharField(_("next client password"), max_length=200, blank=True, editable=False)
    next_client_password_email = models.EmailField(
        _("next client password email"), max_length=254, blank=True, editable=False
    )
    # Which accounts at other projects are this person's (BOINC protocol, identifiers); clients make it converge.
    cross_project_id = models.CharField(_("cross project id"), max_length=32, default=new_token, editable=False)
    awaited_email_at = models.DateTimeField(_("other address requested"), null=True, blank=True, editable=False)
    terms_accepted_at = models.DateTimeField(_("terms of use accepted"), null=True, blank=True, editable=False)
    deletion_asked_at = models.DateTimeField(_("deletion requested"), null=True, blank=True, editable=False)
    # NULL: as many as everybody, NEW_HOSTS_PER_DAY
    new_hosts_per_day = models.PositiveIntegerField(
        _("new computers per day"),
        null=True,
        blank=True,
        help_text=_("How many computers this account may add within 24 hours. Empty: as many as every account."),
    )
    is_staff = models.BooleanField(_("operator"), default=False)
    # Set when an operator without a second factor gets a new password by mail, until somebody allows them their rights
    rights_held_at = models.DateTimeField(_("rights withheld since"), null=True, blank=True, editable=False)
    is_active = models.BooleanField(_("is active"), default=True)
    created_at = models.DateTimeField(_("created at"), default=timezone.now, editable=False)

    objects: ClassVar[UserManager] = UserManager()

    USERNAME_FIELD = "email"
    EMAIL_FIELD = "email"
    REQUIRED_FIELDS: ClassVar[list[str]] = []

    class Meta:
        verbose_name = _("user")
        verbose_name_plural = _("users")
        constraints = [
            models.CheckConstraint(condition=models.Q(email=Lower("email")), name="user_email_is_lower_case"),
        ]

    def __str__(self) -> str:
        return self.display_name

    @property
    def display_name(self) -> str:
        """The chosen name, else the part of the address before the @."""
        return self.name or self.email.split("@")[0]

    @property
    def current_client_password(self) -> str:
        """The slow hash against which a client's login is checked; empty if there is none for the present address."""
        if self.client_password_email == self.email:
            return self.client_password
        return self.next_client_password if self.next_client_password_email == self.email else ""

    def set_password(self, raw_password: str | None) -> None:
        """Set the web password and, with it, the password value of the person's BOINC clients."""
        super().set_password(raw_password)
        self.remember_client_password(raw_password)

    def set_unusable_password(self) -> None:
        """Close the web login by password, and the clients' with it."""
        super().set_unusable_password()
        self.remember_client_password(None)

    def remember_client_password(self, raw_password: str | None) -> None:
        """Derive what clients log in with from a password in clear, for the present and an awaited address."""
        awaited = self.next_client_password_email
        self.client_password, self.client_password_email = _client_password(raw_password, self.email)
        self.expect_email(raw_password, "" if awaited == self.email else awaited)

    def expect_email(self, raw_password: str | None, email: str) -> None:
        """Prepare the clients' password value for ``email``, the person's next address; empty: forget it."""
        self.next_client_password, self.next_client_password_email = _client_password(raw_password, email)


class Account(User):
    """A person as support sees them (portal/operators/support.py): a name for permissions and pages of the admin."""

    class Meta:
        verbose_name = _("account")
        verbose_name_plural = _("accounts")
        proxy = True
        default_permissions = ("view",)
        permissions = [
            ("remove_factors_account", "Can remove a lost second factor"),
            ("block_account", "Can block and unblock an account"),
            ("copy_data_account", "Can have a copy of somebody's data made for them"),
            ("erase_account", "Can have an account deleted at its owner's request"),
        ]


class SupportAction(LogEntry):
    """A search, a look or a help of support, in the log of the admin; a name for its permission and page there."""

    class Meta:
        proxy = True
        ordering = ["-action_time", "-id"]
        default_permissions = ("view",)
        verbose_name = _("support action")
        verbose_name_plural = _("support actions")


class AccountBlock(models.Model):
    """Why an account is blocked; it is inactive as long as the row is there. Only operators see the reason."""

    user = models.OneToOneField(User, models.CASCADE, primary_key=True, related_name="block", verbose_name=_("user"))
    reason = models.CharField(_("reason"), max_length=200)
    blocked_by = models.ForeignKey(User, models.SET_NULL, null=True, related_name="+", verbose_name=_("blocked by"))
    at = models.DateTimeField(_("at"), default=timezone.now)

    class Meta:
        verbose_name = _("account block")
        verbose_name_plural = _("account blocks")

    def __str__(self) -> str:
        return gettext("block of %(person)s") % {"person": self.user}


CLIENT_PASSWORD_FIELDS: Final = (
    "client_password",
    "client_password_email",
    "next_client_password",
    "next_client_password_email",
)
"""What `User.remember_client_password` changes, for ``save(update_fields=…)``."""


def _client_password(raw_password: str | None, email: str) -> tuple[str, str]:
    """The slow hash and the address it was made for; both empty without a password or address."""
    if not (raw_password and email):
        return "", ""
    # Slow and salted: a stolen database logs in nowhere.
    return make_password(credentials.client_password_hash(raw_password, email)), email.lower()


class Venue(models.TextChoices):
    NONE = "", _("default")
    HOME = "home", _("home")
    WORK = "work", _("work")
    SCHOOL = "school", _("school")


class Host(models.Model):
    """A volunteer's computer: its owner and its hardware. What changes at each contact is kept elsewhere.

    Its client knows it by ``token``, the opaque id that we handed out. Hardware is as last reported and written only
    when it changed (``hardware_digest``); speeds in FLOPS and operations/s, sizes in bytes.
    """

    owner = models.ForeignKey(User, models.CASCADE, related_name="hosts", db_index=False, verbose_name=_("owner"))
    token = models.CharField(_("token"), max_length=32, unique=True, default=new_token, editable=False)
    host_cpid = models.CharField(_("cross-project id"), max_length=32, blank=True)
    domain_name = models.CharField(_("name reported by the client"), max_length=255, blank=True)
    given_name = models.CharField(_("name given by the owner"), max_length=MAX_NAME_CHARS, blank=True)
    venue = models.CharField(_("venue"), max_length=6, choices=Venue, blank=True, default=Venue.NONE)
    # The owner's own words for some computers together (portal/computers/groups.py)
    groups = ArrayField(
        models.CharField(max_length=30), default=list, db_default=[], blank=True, verbose_name=_("groups")
    )
    created_at = models.DateTimeField(_("created at"), default=timezone.now, editable=False)
    last_contact_at = models.DateTimeField(_("last sync at"), default=timezone.now)
    retired_at = models.DateTimeField(_("retired at"), null=True, blank=True)
    merged_into = models.ForeignKey(
        "self", models.CASCADE, null=True, blank=True, related_name="merged_hosts", verbose_name=_("merged into")
    )

    client_version = models.CharField(_("client version"), max_length=32, blank=True)
    platform_name = models.CharField(_("platform name"), max_length=64, blank=True)
    timezone_secs = models.IntegerField(_("seconds east of UTC"), null=True, blank=True)
    ncpus = models.PositiveIntegerField(_("processors"), default=0)
    p_vendor = models.CharField(_("processor vendor"), max_length=128, blank=True)
    p_model = models.CharField(_("processor model"), max_length=256, blank=True)
    p_features = models.TextField(_("processor features"), blank=True)
    p_fpops = models.FloatField(_("floating point speed of one processor (FLOPS)"), null=True, blank=True)
    p_iops = models.FloatField(_("integer speed of one processor (operations/s)"), null=True, blank=True)
    p_membw = models.FloatField(_("memory bandwidth (bytes/s)"), null=True, blank=True)
    benchmarked_at = models.DateTimeField(_("benchmarked at"), null=True, blank=True)
    m_nbytes = models.BigIntegerField(_("memory (bytes)"), null=True, blank=True)
    m_cache = models.BigIntegerField(_("cache (bytes)"), null=True, blank=True)
    m_swap = models.BigIntegerField(_("swap (bytes)"), null=True, blank=True)
    d_total = models.BigIntegerField(_("disk (bytes)"), null=True, blank=True)
    os_name = models.CharField(_("operating system"), max_length=128, blank=True)
    os_version = models.CharField(_("version of the operating system"), max_length=256, blank=True)
    product_name = models.CharField(_("product name"), max_length=256, blank=True)
    virtualbox_version = models.CharField(_("virtualbox version"), max_length=64, blank=True)
    docker_version = models.CharField(_("docker version"), max_length=64, blank=True, db_default="", default="")
    # Linux below Windows: [{"name", "system", "docker_version", "is_allowed"}, …]
    wsl = models.JSONField(_("WSL"), default=list, db_default=[], blank=True)
    # What BOINC there may not use by its owner's word: "docker", "wsl"
    not_used = ArrayField(
        models.CharField(max_length=16), default=list, db_default=[], blank=True, verbose_name=_("not used")
    )
    # Whose build of BOINC it is, and what somebody there wrote for projects; empty for most
    client_brand = models.CharField(_("BOINC's brand"), max_length=64, blank=True, db_default="", default="")
    client_opaque = models.CharField(_("note for projects"), max_length=1000, blank=True, db_default="", default="")
    # [{"type", "name", "count", "peak_flops", "ram_bytes", "driver_version", "opencl_version"}, …]
    coprocs = models.JSONField(_("coprocessors"), default=list, blank=True)
    hardware_digest = models.BinaryField(_("hardware digest"), max_length=16, default=bytes, editable=False)
    # Hardware values that were left out, each with the field and its limit, for the owner to see.
    hardware_faults = ArrayField(
        models.CharField(max_length=200), default=list, blank=True, verbose_name=_("hardware faults")
    )

    class Meta:
        verbose_name = _("computer")
        verbose_name_plural = _("computers")
        indexes = [models.Index(fields=["owner", "host_cpid"], name="host_owner_cpid")]
        constraints = [
            models.CheckConstraint(condition=~models.Q(merged_into=models.F("id")), name="host_not_merged_into_itself"),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def name(self) -> str:
        return self.given_name or self.domain_name or gettext("computer %(number)s") % {"number": self.pk}


class ClientKey(models.Model):
    """A key that a BOINC client authenticates with; only its hash is kept. It is valid for the client protocols only.

    Many may be valid at once; each password login by a client, and each account look-up, makes a fresh one.
    """

    class Origin(models.TextChoices):
        ATTACH = "attach", _("computer attached")
        LOOKUP = "lookup", _("account looked up by a BOINC Manager")

    user = models.ForeignKey(User, models.CASCADE, related_name="client_keys", verbose_name=_("user"))
    host = models.ForeignKey(
        Host, models.CASCADE, null=True, blank=True, related_name="client_keys", verbose_name=_("computer")
    )
    origin = models.CharField(_("origin"), max_length=6, choices=Origin)
    key_hash = models.BinaryField(_("SHA-256 of the key"), max_length=32, unique=True, editable=False)
    hint = models.CharField(_("first characters"), max_length=6, editable=False)
    created_at = models.DateTimeField(_("created at"), default=timezone.now, editable=False)
    last_used_at = models.DateTimeField(_("last used at"), null=True, blank=True)
    revoked_at = models.DateTimeField(_("revoked at"), null=True, blank=True)

    class Meta:
        verbose_name = _("client key")
        verbose_name_plural = _("client keys")
        ordering = ["-created_at"]

    def __str__(self) -> str:
        return f"{self.hint}… ({self.get_origin_display()})"


class ApiToken(models.Model):
    """A token for the REST API; only its hash is kept. It gives access only to its scopes."""

    class Scope(models.TextChoices):
        HISTORY = "read:history", _("daily history and its totals")
        HOSTS = "read:hosts", _("computers")
        PROJECTS = "read:projects", _("projects and my part in them")
        NOTES = "read:notes", _("notes on reports")
        JOBS = "write:jobs", _("submitting, following and cancelling jobs")
        EMULATOR = "write:emulator", _("running, reading and deleting emulations")

    user = models.ForeignKey(User, models.CASCADE, related_name="api_tokens", verbose_name=_("user"))
    name = models.CharField(_("what it is for"), max_length=100)
    scopes = ArrayField(models.CharField(max_length=32, choices=Scope), verbose_name=_("scopes"))
    token_hash = models.BinaryField(_("SHA-256 of the token"), max_length=32, unique=True, editable=False)
    hint = models.CharField(_("first characters"), max_length=10, editable=False)
    created_at = models.DateTimeField(_("created at"), default=timezone.now, editable=False)
    expires_at = models.DateTimeField(_("expires at"), null=True, blank=True)
    last_used_at = models.DateTimeField(_("last used at"), null=True, blank=True)
    revoked_at = models.DateTimeField(_("revoked at"), null=True, blank=True)

    class Meta:
        verbose_name_plural = _("API tokens")
        ordering = ["-created_at"]
        verbose_name = _("API token")

    def __str__(self) -> str:
        return f"{self.hint}… ({self.name})"

    @property
    def scope_names(self) -> list[str]:
        """The token's access, in words."""
        return [str(scope.label) for scope in self.Scope if scope in self.scopes]


DEFAULT_SILENT_DAYS: Final = 3
MAX_SILENT_DAYS: Final = 60


class MailChoice(models.Model):
    """Which mails a volunteer wants besides those about the account's security, which are always sent.

    For a volunteer without a row the defaults hold.
    """

    user = models.OneToOneField(User, models.CASCADE, primary_key=True, related_name="mail_choice")
    silence = models.BooleanField(_("a computer has not reported for some days"), default=True)
    # Pages call a computer silent after so many days too.
    silent_days = models.PositiveSmallIntegerField(
        _("days without a report"), default=DEFAULT_SILENT_DAYS, validators=[MinValueValidator(1)]
    )
    no_work = models.BooleanField(_("a computer gets no work"), default=False)
    failing_jobs = models.BooleanField(_("tasks of a computer fail"), default=False)
    weekly_summary = models.BooleanField(_("what my computers did, every Monday"), default=False)
    lapsed = models.BooleanField(_("news, when my computers have been away for long"), default=False, db_default=False)

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=models.Q(silent_days__gte=1, silent_days__lte=MAX_SILENT_DAYS), name="mailchoice_silent_days"
            ),
        ]

    def __str__(self) -> str:
        return gettext("mails for %(person)s") % {"person": self.user}


class SentMail(models.Model):
    """A mail's subject matter that the volunteer was already told, so that a task that runs twice sends one mail."""

    user = models.ForeignKey(User, models.CASCADE, related_name="sent_mails", db_index=False)
    # The kind and what it was about: "silence", "17 2026-03-01T08:00:00+00:00"; "weekly_summary", "2026-W09"
    kind = models.CharField(max_length=16)
    key = models.CharField(max_length=100)
    sent_at = models.DateTimeField(default=timezone.now)
    # The recipient's mail server asked to try again later: not sent yet, and when to; how often that happened.
    retry_at = models.DateTimeField(null=True, blank=True)
    nrefused = models.PositiveSmallIntegerField(default=0, db_default=0)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["user", "kind", "key"], name="sentmail_once")]
        # For the limit of such mails within a day
        indexes = [models.Index(fields=["sent_at"], condition=models.Q(kind="lapsed"), name="sentmail_lapsed")]

    def __str__(self) -> str:
        return f"{self.kind} to {self.user}, {self.key}"


class SecurityEvent(models.Model):
    """Something about who may use an account: a login, a failed one, a key, a token, a change.

    Shown to its owner, and kept for `portal.people.security_events.EVENTS_KEPT`.
    """

    class Kind(models.TextChoices):
        LOGIN = "login", _("signed in")
        LOGIN_FAILED = "login_failed", _("a wrong password")
        FACTOR_FAILED = "factor_failed", _("a wrong second factor")
        CLIENT_LOGIN_FAILED = "client_failed", _("a wrong password, from a BOINC client")
        KEY_MADE = "key_made", _("client key created")
        KEY_REVOKED = "key_revoked", _("client key revoked")
        TOKEN_MADE = "token_made", _("API token created")
        TOKEN_REVOKED = "token_revoked", _("API token revoked")
        PASSWORD_CHANGED = "password", _("password changed")
        PASSWORD_RESET = "reset", _("password reset by a link in a mail")
        EMAIL_CHANGED = "email", _("e-mail address changed")
        FACTOR_ADDED = "factor_added", _("second factor added")
        FACTOR_REMOVED = "factor_removed", _("second factor removed")
        RIGHTS_CHANGED = "rights", _("changed by an operator")
        SUPPORT_LOOKED = "support_looked", _("looked at by support")
        BLOCKED = "blocked", _("blocked")
        UNBLOCKED = "unblocked", _("unblocked")
        COPY_ASKED = "copy_asked", _("copy of the data requested by support")
        DELETION_ASKED = "deletion_asked", _("deletion requested by support")

    user = models.ForeignKey(User, models.CASCADE, related_name="security_events", db_index=False)
    kind = models.CharField(max_length=16, choices=Kind)
    detail = models.CharField(max_length=200, blank=True)
    # Empty if it did not come over the network
    address = models.CharField(_("IP address"), max_length=45, blank=True)
    user_agent = models.CharField(max_length=200, blank=True)
    at = models.DateTimeField(default=timezone.now)

    class Meta:
        indexes = [
            models.Index(fields=["user", "-at"], name="securityevent_user_at"),
            models.Index(fields=["at"], name="securityevent_at"),
        ]

    def __str__(self) -> str:
        return f"{self.get_kind_display()} {self.at:%Y-%m-%d %H:%M}"


class RequestedWork(models.Model):
    """A piece of long work that a volunteer asked for, in the queue of portal/requested_work; kept for a day after."""

    user = models.ForeignKey(User, models.CASCADE, related_name="requested_work", verbose_name=_("user"))
    # What is to be done, and the number of the row that it is done to
    kind = models.CharField(_("kind"), max_length=20)
    subject = models.BigIntegerField(_("subject"))
    asked_at = models.DateTimeField(_("asked at"), default=timezone.now)
    started_at = models.DateTimeField(_("started at"), null=True, blank=True)
    finished_at = models.DateTimeField(_("finished at"), null=True, blank=True)
    ntries = models.PositiveSmallIntegerField(_("times started"), default=0)
    is_given_up = models.BooleanField(_("given up"), default=False)

    class Meta:
        verbose_name = _("requested work")
        verbose_name_plural = _("requested work")
        constraints = [
            models.UniqueConstraint(fields=["kind", "subject"], name="requestedwork_once"),
            models.CheckConstraint(
                condition=models.Q(is_given_up=False) | models.Q(finished_at__isnull=False),
                name="requestedwork_given_up_is_over",
            ),
        ]
        indexes = [
            models.Index(fields=["id"], condition=models.Q(finished_at=None), name="requestedwork_unfinished"),
            models.Index(fields=["finished_at"], name="requestedwork_finished"),
        ]

    def __str__(self) -> str:
        return f"{self.kind} {self.subject}"


class MaintenanceRun(models.Model):
    """A run of a check, or of other upkeep, that an operator started in the browser (portal/maintenance)."""

    job = models.CharField(_("job"), max_length=40)
    asked_by = models.ForeignKey(
        User, models.SET_NULL, null=True, blank=True, related_name="+", db_index=False, verbose_name=_("asked by")
    )
    asked_at = models.DateTimeField(_("asked at"), default=timezone.now)
    started_at = models.DateTimeField(_("started at"), null=True, blank=True)
    finished_at = models.DateTimeField(_("finished at"), null=True, blank=True)
    # What it found, a sentence each; of many the first, and how many there were.
    lines = models.JSONField(_("lines"), default=list)
    nlines = models.PositiveIntegerField(_("lines"), default=0)
    failure = models.TextField(_("failure"), blank=True)

    class Meta:
        verbose_name = _("maintenance run")
        verbose_name_plural = _("maintenance runs")
        default_permissions = ("view", "add")
        constraints = [
            models.UniqueConstraint(
                fields=["job"], condition=models.Q(finished_at=None), name="maintenancerun_one_at_a_time"
            )
        ]

    def __str__(self) -> str:
        return f"{self.job} at {self.asked_at:%Y-%m-%d %H:%M}"


class OperatingFigure(models.Model):
    """A figure of how the site runs, as it was at a time (portal/dashboard); ``label`` tells series of a name apart.

    Taken every ten minutes, and thinned out as it gets older (portal/dashboard/thinning.py).
    """

    name = models.CharField(_("name"), max_length=60)
    label = models.CharField(_("label"), max_length=120, blank=True)
    taken_at = models.DateTimeField(_("taken at"))
    value = models.FloatField(_("value"))

    class Meta:
        verbose_name = _("operating figure")
        verbose_name_plural = _("operating figures")
        constraints = [models.UniqueConstraint(fields=["name", "label", "taken_at"], name="operatingfigure_once")]
        indexes = [models.Index(fields=["taken_at"], name="operatingfigure_taken_at")]

    def __str__(self) -> str:
        return f"{self.name} {self.label} at {self.taken_at:%Y-%m-%d %H:%M}"


class OperatingTable(models.Model):
    """A short table for operators or for the public status, as last taken (portal/dashboard)."""

    name = models.CharField(max_length=60, primary_key=True)
    taken_at = models.DateTimeField()
    rows = models.JSONField(default=list)

    def __str__(self) -> str:
        return self.name


MAX_REASON_LENGTH: Final = 500


class Change(AbstractLogEntry):  # type: ignore[misc]  # of a library without types
    """A change of settings: who made it, when and why, and the values before and after (portal/audit).

    ``changes``: {field: [before, after]}, None for what was not there. Written by django-auditlog; the columns for
    addresses of visitors stay empty.
    """

    reason = models.CharField(_("reason"), max_length=MAX_REASON_LENGTH, blank=True)
    # The change whose values this one put back
    undoes = models.ForeignKey(
        "self", models.SET_NULL, null=True, blank=True, related_name="undone_by", verbose_name=_("undoes")
    )

    class Meta:
        ordering = ["-id"]
        default_permissions = ("view",)
        verbose_name = _("change of settings")
        verbose_name_plural = _("changes of settings")

    def __str__(self) -> str:
        return f"{self.object_repr} {self.timestamp:%Y-%m-%d %H:%M}"

    @property
    def done(self) -> str:
        """What was done to the row, in a word."""
        return {self.Action.CREATE: gettext("added"), self.Action.DELETE: gettext("deleted")}.get(
            self.action, gettext("changed")
        )


class SiteText(models.Model):
    """A text of the operators for a public page, in place of the one that comes with the software."""

    class Page(models.TextChoices):
        ABOUT = "about", _("About this site")
        PRIVACY = "privacy", _("Privacy")
        TERMS = "terms", _("Terms of use")

    page = models.CharField(_("page"), max_length=16, choices=Page, unique=True)
    text = models.TextField(
        _("text"),
        max_length=50_000,
        help_text=_("Markdown: blank lines, ## headings, *emphasis*, lists, [links](https://example.org/). No HTML."),
    )
    changed_at = models.DateTimeField(_("changed at"), auto_now=True)

    class Meta:
        ordering = ["page"]
        verbose_name = _("text of a public page")
        verbose_name_plural = _("texts of public pages")
        constraints = [
            models.CheckConstraint(condition=models.Q(page__in=["about", "privacy", "terms"]), name="sitetext_page")
        ]

    def __str__(self) -> str:
        return self.get_page_display()


class ConsentEvent(models.Model):
    """A consent that was given or withdrawn. Rows are only ever added; they go with their account.

    A trigger of the database refuses to change one (portal/migrations/0027_consents.py).
    """

    class Origin(models.TextChoices):
        PAGE = "page", _("on a page of this site")
        ACCOUNT_MANAGER = "rpc", _("by an account manager")
        EARLIER = "earlier", _("before this history began")

    user = models.ForeignKey(
        User, models.CASCADE, related_name="consent_events", db_index=False, verbose_name=_("volunteer")
    )
    # `portal.people.consents.kinds`
    kind = models.CharField(_("consent"), max_length=32)
    is_given = models.BooleanField(_("given"))
    at = models.DateTimeField(_("at"), default=timezone.now)
    # NULL: no text was shown, or it is not known which
    wording = models.PositiveSmallIntegerField(_("version of the text"), null=True)
    # Of the text as it was shown; empty: none was
    language = models.CharField(_("language"), max_length=16, blank=True)
    origin = models.CharField(_("how"), max_length=16, choices=Origin, default=Origin.PAGE)

    class Meta:
        ordering = ["-id"]
        default_permissions = ("view",)
        verbose_name = _("consent given or withdrawn")
        verbose_name_plural = _("consents given and withdrawn")
        indexes = [models.Index(fields=["user", "-id"], name="consentevent_user")]
        constraints = [
            models.CheckConstraint(
                condition=models.Q(origin__in=["page", "rpc", "earlier"]), name="consentevent_origin"
            )
        ]

    def __str__(self) -> str:
        return f"{self.kind}: {self.at:%Y-%m-%d %H:%M}"


class BeatLease(models.Model):
    """Which of the beat processes sends the periodic tasks: the one that has the token, until the lease expires.

    One row at most. Times are those of the database's clock, which is the same for all machines.
    """

    id = models.SmallIntegerField(primary_key=True, default=1)
    token = models.UUIDField()
    # Machine and number of the process, for people
    holder = models.CharField(max_length=200)
    taken_at = models.DateTimeField()
    expires_at = models.DateTimeField()

    class Meta:
        default_permissions = ()
        constraints = [models.CheckConstraint(condition=models.Q(id=1), name="beatlease_one_row")]

    def __str__(self) -> str:
        return self.holder


class PeriodicTask(models.Model):
    """Where an entry of the schedule stands, by the database's clock."""

    name = models.CharField(max_length=100, primary_key=True)
    # When it was last due and a beat took it in hand
    due_at = models.DateTimeField()
    # When the broker took the message; NULL: not known to have it, so it is sent again
    sent_at = models.DateTimeField(null=True)
    # When a worker last began with it
    begun_at = models.DateTimeField(null=True)

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return self.name
