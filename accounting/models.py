"""The account manager's tables: projects, accounts at them, and the ledger.

Amounts are whole numbers of 1e-6 (what a client prints), in the order of ``amounts.KINDS`` where they are arrays.
"""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.core.validators import MaxValueValidator, MinValueValidator, URLValidator
from django.db import models
from django.db.models import CheckConstraint, Func, Q
from django.db.models.lookups import Exact
from django.utils import timezone

from accounting.asked_models import ProjectChange as ProjectChange
from accounting.engine.amounts import Totals
from accounting.engine.choice.facts import CPU, MAX_SHARE, TroubleKind
from accounting.engine.returns import EARLIER_KEPT
from accounting.month_models import BestDay as BestDay
from accounting.month_models import ClosedMonths as ClosedMonths
from accounting.month_models import Month as Month
from accounting.news_models import Announcement as Announcement
from accounting.news_models import MailCampaign as MailCampaign
from accounting.settlement_models import ProjectRatio as ProjectRatio
from accounting.settlement_models import Settlement as Settlement
from accounting.statistics_models import AccountTotal as AccountTotal
from accounting.statistics_models import GrantedDay as GrantedDay
from accounting.statistics_models import GrantedTotal as GrantedTotal
from accounting.statistics_models import StatisticsImport as StatisticsImport
from accounting.task_models import FollowedTask as FollowedTask
from accounting.task_models import TaskList as TaskList
from accounting.task_models import TaskSource as TaskSource
from portal.models import Host, User
from portal.templatetags.drawings import DATA_COLOURS
from portal.wire import keywords

PROCESSOR_TYPES = {
    CPU: "processors",
    "NVIDIA": "NVIDIA GPU",
    "ATI": "AMD GPU",
    "intel_gpu": "Intel GPU",
    "apple_gpu": "Apple GPU",
}
"""The types of processors in words, by BOINC's names."""


def keyword_choices() -> list[tuple[int, str]]:
    return [(id_, "– " * keyword.level + keyword.name) for id_, keyword in keywords.KEYWORDS.items()]


def _zeros() -> list[int]:
    return [0] * 6


def _no_allowance() -> list[int]:
    return [0] * 5


class Project(models.Model):
    """A BOINC project that this account manager may attach computers to."""

    class Account(models.TextChoices):
        SHARED = "shared", "one account for all volunteers"
        PER_USER = "per_user", "an account for each volunteer"

    name = models.CharField(max_length=100, unique=True)
    master_url = models.CharField("master URL", max_length=255, unique=True)
    web_url = models.CharField(
        "web site", max_length=255, blank=True, validators=[URLValidator(schemes=["http", "https"])]
    )
    summary = models.CharField("one line on its science", max_length=200, blank=True)
    description = models.TextField(blank=True)
    is_active = models.BooleanField("computers may be attached", default=True)
    down_since = models.DateTimeField(
        null=True,
        blank=True,
        help_text="While it is set, only volunteers who picked the project by hand get it.",
    )
    down_reason = models.CharField(
        "why it is down", max_length=200, blank=True, help_text="A sentence that volunteers see."
    )
    default_share = models.FloatField(
        "default resource share", default=100, validators=[MinValueValidator(0), MaxValueValidator(MAX_SHARE)]
    )
    account_mode = models.CharField(max_length=8, choices=Account, default=Account.SHARED)
    shared_account_key = models.BinaryField("account key, encrypted", null=True, blank=True, editable=False)
    url_signature = models.TextField("signature of the URL", blank=True)
    takes_platforms = models.BooleanField(
        "take over platforms",
        default=False,
        help_text="When the project says that it has programs for other platforms, computers are chosen by that at "
        "once. Anything else that changes there waits for you.",
    )
    # The project's colour on every page; it never changes. `data_colour` keeps it within the palette.
    colour = models.PositiveSmallIntegerField(default=0, editable=False)
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        ordering = ["name"]
        constraints = [
            CheckConstraint(
                condition=Q(default_share__gte=0, default_share__lte=MAX_SHARE), name="project_share_range"
            ),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def data_colour(self) -> int:
        """The project's colour in charts and lists: `.data-0` and so on in static/portal/site.css."""
        return self.colour % DATA_COLOURS

    @classmethod
    def next_colour(cls) -> int:
        """The colour for a new project: all data colours in turn."""
        return cls.objects.count() % DATA_COLOURS


class ProjectProfile(models.Model):
    """What a project said of itself when it was asked (accounting/project_setup/asking.py), and the last trial there.

    ``said`` and ``seen`` are of `ProjectConfig`: the last answer, and the one that an operator has seen. A project
    without a profile was never asked, and is not asked daily.
    """

    project = models.OneToOneField(Project, models.CASCADE, primary_key=True, related_name="profile")
    said = models.JSONField(default=dict)
    said_at = models.DateTimeField("last answered", null=True)
    seen = models.JSONField(default=dict)
    etag = models.CharField(max_length=200, blank=True)
    last_modified = models.CharField(max_length=60, blank=True)
    asked_at = models.DateTimeField("last asked", null=True)
    ask_after = models.DateTimeField("asked again after", default=timezone.now, db_index=True)
    # Why it could not be asked, and since when that is so; empty: it answered
    problem = models.CharField(max_length=300, blank=True)
    problem_since = models.DateTimeField(null=True)
    failures = models.PositiveIntegerField("failed in a row", default=0)
    # Since when it says itself that it is down; NULL: it does not
    says_down_since = models.DateTimeField(null=True)
    # Of `ServerStatus`; empty: it does not tell
    status = models.JSONField(default=dict)
    # Of the keys by which its programs are signed: as an operator has seen it, and as it was at the last trial
    code_key_seen = models.CharField(max_length=64, blank=True)
    code_key = models.CharField(max_length=64, blank=True)
    tried_at = models.DateTimeField("last trial", null=True)
    tried_well = models.BooleanField(null=True)
    tried_text = models.CharField(max_length=500, blank=True)

    def __str__(self) -> str:
        return f"what {self.project} says"


class ProjectKeyword(models.Model):
    """What a project is about, or where it is at home, and how much of it that is."""

    project = models.ForeignKey(Project, models.CASCADE, related_name="keywords", db_index=False)
    keyword = models.PositiveIntegerField(choices=keyword_choices)
    weight = models.FloatField(
        default=1,
        validators=[MinValueValidator(0.01), MaxValueValidator(1)],
        help_text="The part of its work that this is true of, 0.01 to 1.",
    )

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["project", "keyword"], name="projectkeyword_once"),
            CheckConstraint(condition=Q(weight__gt=0, weight__lte=1), name="projectkeyword_weight_range"),
        ]

    def __str__(self) -> str:
        keyword = keywords.KEYWORDS.get(self.keyword)
        return keyword.name if keyword else f"keyword {self.keyword}"


class ProjectVersion(models.Model):
    """What a project has programs for. A project without any counts as running everywhere."""

    project = models.ForeignKey(Project, models.CASCADE, related_name="versions", db_index=False)
    platform = models.CharField(
        max_length=64, blank=True, help_text="BOINC's name, such as windows_x86_64; empty: all platforms."
    )
    processor_type = models.CharField(max_length=64, choices=PROCESSOR_TYPES, default=CPU)

    class Meta:
        ordering = ["platform", "processor_type"]
        constraints = [
            models.UniqueConstraint(fields=["project", "platform", "processor_type"], name="projectversion_once")
        ]

    def __str__(self) -> str:
        return f"{self.platform or 'all platforms'}, {self.get_processor_type_display()}"


class ProjectTrouble(models.Model):
    """A trouble that most volunteers' computers report: no work for a type, or no answer. A task keeps these rows."""

    project = models.ForeignKey(Project, models.CASCADE, related_name="troubles", db_index=False)
    kind = models.CharField(max_length=8, choices=[(kind.value, kind.name) for kind in TroubleKind])
    # Empty: all types
    processor_type = models.CharField(max_length=64, blank=True)
    since = models.DateTimeField()
    last_at = models.DateTimeField("last seen")
    volunteers = models.PositiveIntegerField("volunteers whose computers say so")
    of_volunteers = models.PositiveIntegerField("of so many")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["project", "kind", "processor_type"], name="projecttrouble_once")
        ]

    def __str__(self) -> str:
        return f"{self.project}: {self.kind} {self.processor_type}"


class ProjectStanding(models.Model):
    """A project's part of last week's processing, and its boost in choices (engine/choice/balance.py)."""

    project = models.ForeignKey(Project, models.CASCADE, related_name="standings", db_index=False)
    on_gpu = models.BooleanField("on GPUs")
    target = models.FloatField("part that it should get")
    got = models.FloatField("part that it got")
    boost = models.FloatField("factor of its share in choices")
    day = models.DateField("worked out on")

    class Meta:
        constraints = [models.UniqueConstraint(fields=["project", "on_gpu"], name="projectstanding_once")]

    def __str__(self) -> str:
        return f"{self.project} on {'GPUs' if self.on_gpu else 'CPUs'}"


class UserProject(models.Model):
    """A volunteer's choice of a project, their account at it, and their totals there (rolled up by a task)."""

    user = models.ForeignKey(User, models.CASCADE, related_name="user_projects", db_index=False)
    project = models.ForeignKey(Project, models.CASCADE, related_name="user_projects")
    is_chosen = models.BooleanField("chosen by hand", default=False)
    resource_share = models.FloatField(null=True, blank=True)
    account_key = models.BinaryField("account key, encrypted", null=True, blank=True, editable=False)
    total_ec = models.BigIntegerField("estimated credit, micro-credits", default=0, editable=False)
    avg_ec = models.FloatField("recent average, credits a day", default=0, editable=False)
    avg_at = models.DateTimeField(null=True, blank=True, editable=False)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["user", "project"], name="userproject_once"),
            CheckConstraint(
                condition=Q(resource_share__isnull=True) | Q(resource_share__gte=0, resource_share__lte=MAX_SHARE),
                name="userproject_share_range",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.user} at {self.project}"


class AccountSettings(models.Model):
    """What a volunteer's clients are told besides projects: preferences and keywords."""

    user = models.OneToOneField(User, models.CASCADE, primary_key=True, related_name="account_settings")
    # {element: number, …, "days": {"0": {"start_hour": number, …}, …}, "venues": {"home": {the same}, …}}, the sets
    # complete (accounting/engine/preferences.py); empty: the client keeps its own.
    preferences = models.JSONField(default=dict, blank=True)
    preferences_at = models.DateTimeField("preferences saved at", null=True, blank=True)
    keywords_yes = ArrayField(models.PositiveIntegerField(), default=list, blank=True)
    keywords_no = ArrayField(models.PositiveIntegerField(), default=list, blank=True)
    # What BOINC shows: the name of a team, and the notices of projects.
    team_name = models.CharField(max_length=100, blank=True)
    no_project_notices = models.BooleanField(default=False)
    # Whether clients are asked for their tasks, as far as the site asks (AM_TASKS)
    sends_tasks = models.BooleanField(default=True, db_default=True)

    class Meta:
        verbose_name_plural = "account settings"

    def __str__(self) -> str:
        return f"settings of {self.user}"


class HostLedger(models.Model):
    """A host's part of the ledger: allowance and last contact. Its row is the lock for all rows of the host.

    ``level``: allowance left for cpu_time, gpu_time, cpu_ec, gpu_ec (micro) and jobs (micro-jobs); accounting rules, 2.
    """

    host = models.OneToOneField(Host, models.CASCADE, primary_key=True, related_name="ledger")
    last_at = models.DateTimeField("last contact", null=True)
    client_now = models.FloatField("the client's clock at the last contact", null=True)
    # A write happens only if the number is still what was read (accounting/rpc/store.py).
    contacts = models.BigIntegerField("requests answered", default=0)
    level = ArrayField(models.BigIntegerField(), size=5, default=_no_allowance)
    # The owner's wish: BOINC's names of processor types that no project may use here.
    excluded_types = ArrayField(models.CharField(max_length=64), default=list, blank=True)
    # time_stats, net_stats, free disk, run mode, as last reported
    contact = models.JSONField(default=dict)
    # The last answer: its digest, how many different answers there were, and how often this one was given in a row.
    answer_digest = models.CharField(max_length=16, blank=True, default="", editable=False)
    answers_logged = models.IntegerField(default=0, editable=False)
    same_answers = models.IntegerField(default=0, editable=False)

    class Meta:
        constraints = [CheckConstraint(condition=Q(level__len=5), name="hostledger_level_len")]

    def __str__(self) -> str:
        return f"ledger of {self.host}"


class Answer(models.Model):
    """What a host was answered, from one contact on, as long as the answer stayed the same
    (accounting/rpc/contact_log.py).

    A host has at most `contact_log.MAX_ANSWERS` of them; the next one takes the oldest one's place.
    """

    pk = models.CompositePrimaryKey("host_id", "slot")
    host = models.ForeignKey(Host, models.CASCADE, related_name="answers", db_index=False)
    slot = models.SmallIntegerField()
    at = models.DateTimeField("first given")
    content = models.JSONField()
    # Of the answer before this one: how often it was given, and when last.
    before_times = models.IntegerField(default=0)
    before_last_at = models.DateTimeField(null=True)

    def __str__(self) -> str:
        return f"answer to {self.host} at {self.at:%Y-%m-%d %H:%M}"


class HostProject(models.Model):
    """A host's totals at a project (accounting rules, "State per host and project"), and the owner's wishes for it."""

    pk = models.CompositePrimaryKey("host_id", "project_id")
    host = models.ForeignKey(Host, models.CASCADE, related_name="host_projects", db_index=False)
    project = models.ForeignKey(Project, models.CASCADE, related_name="host_projects")
    # Totals as a client can claim them go up to 1e21 micro-units, past bigint.
    reported = ArrayField(models.DecimalField(max_digits=22, decimal_places=0), size=6, null=True)
    # The last totals before each reset, which may come back
    earlier = ArrayField(
        ArrayField(models.DecimalField(max_digits=22, decimal_places=0), size=6), size=EARLIER_KEPT, default=list
    )
    # The totals at the last reset, while the client is below earlier ones
    restart = ArrayField(models.DecimalField(max_digits=22, decimal_places=0), size=6, null=True)
    handed = ArrayField(models.BigIntegerField(), size=6, null=True)
    credited = ArrayField(models.BigIntegerField(), size=6, default=_zeros)
    pending = ArrayField(models.BigIntegerField(), size=6, default=_zeros)
    dropped = ArrayField(models.DecimalField(max_digits=26, decimal_places=0), size=6, default=_zeros)
    listed = models.BooleanField("in the last request", default=False)
    # What the client last said about it: no_work types, failures, state (small, for the pages).
    state = models.JSONField(default=dict)
    # The owner's wishes, sent with each reply. A suspension is told once more when it ends, else left to the computer.
    suspended = models.BooleanField(default=False)
    told_suspended = models.BooleanField(default=False, editable=False)
    no_new_work = models.BooleanField(default=False)
    excluded = models.BooleanField("not on this computer", default=False)
    no_rsc = ArrayField(models.CharField(max_length=64), default=list, blank=True)
    update_asked = models.BooleanField("contact the project at once", default=False)
    drop_waiting = models.BooleanField("drop jobs that have not begun", default=False)

    class Meta:
        constraints = [
            CheckConstraint(condition=Q(credited__len=6, pending__len=6, dropped__len=6), name="hostproject_six"),
            # NULL passes the check of its length.
            CheckConstraint(condition=Q(restart__len=6), name="hostproject_restart_six"),
            CheckConstraint(
                condition=Q(
                    Exact(Func("earlier", 2, function="array_length", output_field=models.IntegerField()), 6),
                    earlier__len__lte=EARLIER_KEPT,
                ),
                name="hostproject_earlier_sixes",
            ),
            CheckConstraint(
                condition=Q(restart__isnull=True) | Q(earlier__len__gt=0),
                name="hostproject_earlier_and_restart",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.host} at {self.project}"


class HostClient(models.Model):
    """A client that reported with a host's id, by its cross-project id, once another one came in its place.

    Of clients with the same one, by that, the project and their number there (``recognise.number_key``). It may be the
    same client with its old id, or another one: see accounting/rpc/recognise.py. The rows of a host are made in the
    order in which their clients first came.
    """

    host = models.ForeignKey(Host, models.CASCADE, related_name="other_clients", db_index=False)
    cpid = models.CharField("cross-project id", max_length=80)
    # The totals with which it goes on, as of its last report with the host's id
    books = models.JSONField(default=dict)
    seen_at = models.DateTimeField("another id came in its place", default=timezone.now)
    told_apart_at = models.DateTimeField("known to be another client", null=True, blank=True)
    # Made when it reports again
    record = models.ForeignKey(Host, models.CASCADE, null=True, blank=True, related_name="told_apart_from")

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["host", "cpid"], name="hostclient_host_cpid"),
            CheckConstraint(condition=Q(record=None) | Q(told_apart_at__isnull=False), name="hostclient_record_apart"),
            CheckConstraint(condition=~Q(cpid=""), name="hostclient_has_cpid"),
        ]

    def __str__(self) -> str:
        return f"{self.cpid} at {self.host}"


class Day(models.Model):
    """What a host was credited at a project on one UTC day. Partitioned by month (accounting/ledger/partitions.py)."""

    pk = models.CompositePrimaryKey("user_id", "day", "project_id", "host_id")
    user = models.ForeignKey(User, models.CASCADE, related_name="+", db_index=False)
    day = models.DateField()
    # Without constraints: the key begins with the user, so a deletion would read all months to check them.
    project = models.ForeignKey(Project, models.DO_NOTHING, related_name="+", db_index=False, db_constraint=False)
    host = models.ForeignKey(Host, models.DO_NOTHING, related_name="+", db_index=False, db_constraint=False)
    cpu_ec = models.BigIntegerField(default=0)
    gpu_ec = models.BigIntegerField(default=0)
    cpu_time = models.BigIntegerField(default=0)
    gpu_time = models.BigIntegerField(default=0)
    njobs_success = models.BigIntegerField(default=0)
    njobs_error = models.BigIntegerField(default=0)
    # A DayFlag of accounting/engine/states.py
    flags = models.SmallIntegerField(default=0)

    class Meta:
        db_table = "accounting_day"

    def __str__(self) -> str:
        return f"{self.day}: {self.host_id} at {self.project_id}"

    @property
    def amounts(self) -> Totals:
        return Totals(self.cpu_ec, self.gpu_ec, self.cpu_time, self.gpu_time, self.njobs_success, self.njobs_error)


class Note(models.Model):
    """Something the owner should know about a host's reports: at most one row per host, day, kind and project."""

    host = models.ForeignKey(Host, models.CASCADE, related_name="notes", db_index=False)
    project = models.ForeignKey(Project, models.CASCADE, null=True, related_name="+", db_index=False)
    day = models.DateField()
    kind = models.CharField(max_length=24)
    detail = models.CharField(max_length=300, blank=True)
    # What was dropped in all that day: {kind of amount: micro-units}
    amount = models.DecimalField(max_digits=26, decimal_places=0, default=0)
    count = models.PositiveIntegerField(default=1)
    first_at = models.DateTimeField()
    last_at = models.DateTimeField()

    class Meta:
        ordering = ["-last_at"]
        constraints = [
            models.UniqueConstraint(
                fields=["host", "day", "kind", "project", "detail"],
                nulls_distinct=False,
                name="note_once_a_day",
            )
        ]
        # How many there are of a day, for the dashboard
        indexes = [models.Index(fields=["day", "kind"], name="note_day_kind")]

    def __str__(self) -> str:
        return f"{self.day} {self.kind}"


class ProjectDay(models.Model):
    """A project's sums over all hosts on one UTC day, rolled up from the days by a task."""

    project = models.ForeignKey(Project, models.CASCADE, related_name="project_days", db_index=False)
    day = models.DateField()
    hosts = models.PositiveIntegerField(default=0)
    users = models.PositiveIntegerField(default=0)
    cpu_ec = models.BigIntegerField(default=0)
    gpu_ec = models.BigIntegerField(default=0)
    cpu_time = models.BigIntegerField(default=0)
    gpu_time = models.BigIntegerField(default=0)
    njobs_success = models.BigIntegerField(default=0)
    njobs_error = models.BigIntegerField(default=0)
    rolled_up_at = models.DateTimeField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["project", "day"], name="projectday_once")]

    def __str__(self) -> str:
        return f"{self.project} on {self.day}"


class ErasedDay(models.Model):
    """The work of all erased accounts at a project on one UTC day, so that the sums of projects keep it."""

    project = models.ForeignKey(Project, models.CASCADE, related_name="+", db_index=False)
    day = models.DateField()
    cpu_ec = models.BigIntegerField(default=0)
    gpu_ec = models.BigIntegerField(default=0)
    cpu_time = models.BigIntegerField(default=0)
    gpu_time = models.BigIntegerField(default=0)
    njobs_success = models.BigIntegerField(default=0)
    njobs_error = models.BigIntegerField(default=0)

    class Meta:
        constraints = [models.UniqueConstraint(fields=["project", "day"], name="erasedday_once")]

    def __str__(self) -> str:
        return f"erased at {self.project} on {self.day}"


class DataCopy(models.Model):
    """A file that a worker makes for a volunteer (accounting/exchange/made_files.py).

    It is a copy of all that is held about them (accounting/account_data/copies.py), or a range of days of their
    history (accounting/exchange/exports.py).
    """

    class Content(models.TextChoices):
        ALL = "all", "everything"
        CSV = "csv", "history as CSV"
        JSON = "json", "history as JSON"
        PARQUET = "parquet", "history as Parquet"

    class State(models.TextChoices):
        WAITING = "waiting", "waiting for its turn"
        WORKING = "working", "being made"
        READY = "ready", "ready"
        FAILED = "failed", "failed"

    user = models.ForeignKey(User, models.CASCADE, related_name="data_copies")
    content = models.CharField(max_length=8, choices=Content, default=Content.ALL)
    # Of a range of the history; both days are in it
    first = models.DateField("first day", null=True, blank=True)
    last = models.DateField("last day", null=True, blank=True)
    state = models.CharField(max_length=8, choices=State, default=State.WAITING)
    percent = models.PositiveSmallIntegerField("how much of it is done", default=0)
    size_bytes = models.BigIntegerField(default=0)
    asked_at = models.DateTimeField(default=timezone.now)
    finished_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ["-asked_at"]
        verbose_name_plural = "data copies"
        constraints = [
            models.CheckConstraint(
                condition=models.Q(content="all", first=None, last=None)
                | (~models.Q(content="all") & models.Q(first__isnull=False, last__gte=models.F("first"))),
                name="datacopy_days",
            )
        ]

    def __str__(self) -> str:
        return f"copy for {self.user}, {self.state}"


class DataCopyPart(models.Model):
    """A piece of a copy's file, kept in the database, as web servers and workers may be on different machines."""

    copy = models.ForeignKey(DataCopy, models.CASCADE, related_name="parts", db_index=False)
    number = models.PositiveIntegerField()
    content = models.BinaryField()

    class Meta:
        constraints = [models.UniqueConstraint(fields=["copy", "number"], name="datacopypart_once")]

    def __str__(self) -> str:
        return f"part {self.number} of {self.copy_id}"
