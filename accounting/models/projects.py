"""Projects: their own statements, their requirements, and their condition."""

from __future__ import annotations

from typing import Any, Final

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.core.validators import MaxValueValidator, MinValueValidator, URLValidator
from django.db import models, transaction
from django.db.models import CheckConstraint, Q
from django.utils import timezone
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from accounting.engine.addresses import address_key
from accounting.engine.choice.facts import CPU, MAX_SHARE, TroubleKind
from portal.languages.sentences import MessageField
from portal.models.signed_log import SignedEntry
from portal.templatetags.drawings import DATA_COLOURS
from portal.wire import keywords
from portal.wire.sealing import origin

MAX_FORMER_KEYS: Final = 10

PROCESSOR_TYPES = {
    CPU: _("processors"),
    "NVIDIA": _("NVIDIA GPU"),
    "ATI": _("AMD GPU"),
    "intel_gpu": _("Intel GPU"),
    "apple_gpu": _("Apple GPU"),
}
"""The types of processors in words, by BOINC's names."""


def processor_name(type_: str) -> str:
    """Return a type of processor in words; BOINC's name for an unknown one."""
    return str(PROCESSOR_TYPES.get(type_, type_))


_TROUBLE_KINDS = {
    TroubleKind.NO_WORK.value: _("no work"),
    TroubleKind.FAILING.value: _("requests fail"),
    TroubleKind.ENDED.value: _("has ended"),
}


def keyword_choices() -> list[tuple[int, str]]:
    return [(id_, "– " * keyword.level + keyword.name) for id_, keyword in keywords.KEYWORDS.items()]


class Project(models.Model):
    """A BOINC project that this account manager may attach computers to."""

    class Account(models.TextChoices):
        SHARED = "shared", _("one account for all volunteers")
        PER_USER = "per_user", _("a separate account for each volunteer")

    name = models.CharField(_("name"), max_length=100, unique=True)
    master_url = models.CharField(_("master URL"), max_length=255, unique=True)
    # The key of the master URL; set whenever the row is saved
    address_key = models.CharField(max_length=255, unique=True, editable=False)
    path_ignores_case = models.BooleanField(
        _("address ignores upper and lower case"),
        default=False,
        help_text=_(
            "If on, computers attached to example.org/Science and to example.org/science are attached to one project."
        ),
    )
    web_url = models.CharField(
        _("website"), max_length=255, blank=True, validators=[URLValidator(schemes=["http", "https"])]
    )
    summary = models.CharField(_("its science in one line"), max_length=200, blank=True)
    description = models.TextField(_("description"), blank=True)
    is_active = models.BooleanField(_("computers may be attached"), default=True)
    down_since = models.DateTimeField(
        _("down since"),
        null=True,
        blank=True,
        help_text=_("While this is set, only volunteers who picked the project by hand get it."),
    )
    down_reason = models.CharField(
        _("reason for being down"), max_length=200, blank=True, help_text=_("A sentence shown to volunteers.")
    )
    default_share = models.FloatField(
        _("default resource share"), default=100, validators=[MinValueValidator(0), MaxValueValidator(MAX_SHARE)]
    )
    account_mode = models.CharField(_("accounts"), max_length=8, choices=Account, default=Account.SHARED)
    shared_account_key = models.BinaryField(_("account key, encrypted"), null=True, blank=True, editable=False)
    # Former keys, encrypted, latest first: a client that has one of them was attached by this site
    former_account_keys = ArrayField(models.BinaryField(), default=list, editable=False)
    url_signature = models.TextField(_("signature of the URL"), blank=True)
    takes_platforms = models.BooleanField(
        _("apply changed platforms automatically"),
        default=False,
        help_text=_(
            "When the project publishes a new list of platforms, it takes effect immediately. All other "
            "changes wait for "
            "you."
        ),
    )
    # The project server of this very site, whatever its present address (accounting/projects/own_project.py)
    is_own = models.BooleanField(default=False, editable=False)
    # Not a project: volunteers' work from before this account manager moved here, of which the projects are unknown
    is_before_move = models.BooleanField(default=False, editable=False)
    # The project's colour on every page; it never changes. `data_colour` maps it into the palette.
    colour = models.PositiveSmallIntegerField(default=0, editable=False)
    created_at = models.DateTimeField(default=timezone.now, editable=False)

    class Meta:
        ordering = ["name"]
        verbose_name = _("project")
        verbose_name_plural = _("projects")
        constraints = [
            CheckConstraint(
                condition=Q(default_share__gte=0, default_share__lte=MAX_SHARE), name="project_share_range"
            ),
            models.UniqueConstraint(fields=["is_own"], condition=Q(is_own=True), name="project_own_once"),
            models.UniqueConstraint(
                fields=["is_before_move"], condition=Q(is_before_move=True), name="project_before_move_once"
            ),
            CheckConstraint(
                condition=Q(is_before_move=False) | Q(is_active=False), name="project_before_move_takes_none"
            ),
        ]

    def __str__(self) -> str:
        return self.name

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Save it with the key of its address; a former master URL stays an address of the project.

        For an address on another server, account keys are dropped: they were entered for the former server, and new
        ones are not meant for it. Locks the signed log, then the stored row, if the address is saved.
        """
        fields = kwargs.get("update_fields")
        if fields is not None and "master_url" not in fields:
            # The project may have moved since it was read: its address is not what is saved.
            super().save(*args, **kwargs)
            return
        self.address_key = address_key(self.master_url)
        with transaction.atomic():
            SignedEntry.lock()
            former = Project.objects.select_for_update(no_key=True).filter(pk=self.pk).first() if self.pk else None
            is_elsewhere = former is not None and origin(former.master_url) != origin(self.master_url)
            if fields is not None:
                keys = ["shared_account_key", "former_account_keys"] if is_elsewhere else []
                kwargs["update_fields"] = {*fields, "address_key", *keys}
            if former is not None and former.shared_account_key and not self._has_key_of(former):
                own = [bytes(former.shared_account_key), *map(bytes, former.former_account_keys)]
                self.former_account_keys = own[:MAX_FORMER_KEYS]
            if former is not None and is_elsewhere:
                self._drop_keys(former)
                # The answer that an operator has seen came from another server, and decides where passwords are sent.
                nothing: dict[str, Any] = {"said": {}, "seen": {}, "etag": "", "last_modified": "", "status": {}}
                ProjectProfile.objects.filter(project=self).update(
                    **nothing, said_at=None, code_key="", code_key_seen="", ask_after=timezone.now()
                )
            super().save(*args, **kwargs)
            ProjectAddress.objects.filter(key=self.address_key).delete()
            if former is not None and former.address_key != self.address_key:
                address = {"url": former.master_url, "source": ProjectAddress.Source.MOVED}
                ProjectAddress.objects.update_or_create(key=former.address_key, defaults={**address, "project": self})

    def _drop_keys(self, former: Project) -> None:
        """Drop the keys, except one that was just entered."""
        if self._has_key_of(former):
            self.shared_account_key = None
        # They cannot be decrypted for another server.
        self.former_account_keys = []
        self.user_projects.exclude(account_key=None).update(account_key=None)
        self.own_accounts.all().delete()

    def _has_key_of(self, former: Project) -> bool:
        return bytes(self.shared_account_key or b"") == bytes(former.shared_account_key or b"")

    @property
    def is_served_here(self) -> bool:
        """Whether it is this site's own project, and the site runs its project server."""
        return self.is_own and "project" in settings.ROOMS

    @property
    def has_own_accounts(self) -> bool:
        """Whether each volunteer enters their own account there. At the site's own project everybody has one."""
        return self.account_mode == self.Account.PER_USER and not self.is_served_here

    @classmethod
    def served_here(cls) -> models.QuerySet[Project]:
        """Return this site's own project, if it serves one; else nothing."""
        return cls.objects.filter(is_own=True) if "project" in settings.ROOMS else cls.objects.none()

    @property
    def data_colour(self) -> int:
        """The project's colour in charts and lists: `.data-0` and so on in static/portal/site.css."""
        return self.colour % DATA_COLOURS

    @classmethod
    def next_colour(cls) -> int:
        """Return the colour for a new project: all data colours in turn."""
        return cls.objects.count() % DATA_COLOURS


class ProjectAddress(models.Model):
    """Another address under which clients have a project, learnt from a move, the project, clients or an operator.

    The project's master URL has no row here. ``is_active`` off: an operator says that it is another project, so it is
    not learnt again. Account keys are only ever sent to the master URL's origin.
    """

    class Source(models.TextChoices):
        MOVED = "moved", _("former master URL")
        CONFIG = "config", _("the project’s configuration")
        CLIENTS = "clients", _("reported by computers")
        OPERATOR = "operator", _("entered by an operator")

    project = models.ForeignKey(Project, models.CASCADE, related_name="addresses", verbose_name=_("project"))
    url = models.CharField(_("address"), max_length=255)
    # The key of the URL; set whenever the row is saved
    key = models.CharField(max_length=255, unique=True, editable=False)
    source = models.CharField(_("source"), max_length=8, choices=Source, default=Source.OPERATOR, editable=False)
    since = models.DateTimeField(_("since"), default=timezone.now, editable=False)
    is_active = models.BooleanField(
        _("is this project"), default=True, help_text=_("Clear this if it is another project.")
    )

    class Meta:
        ordering = ["-since"]
        verbose_name = _("project address")
        verbose_name_plural = _("project addresses")

    def __str__(self) -> str:
        return self.url

    def save(self, *args: Any, **kwargs: Any) -> None:
        self.key = address_key(self.url)
        super().save(*args, **kwargs)


class ProjectProfile(models.Model):
    """A project's own answer when it was asked (accounting/project_setup/asking.py), and the last trial there.

    ``said`` and ``seen`` are of `ProjectConfig`: the last answer, and the one that an operator has seen. A project
    without a profile was never asked, and is not asked daily.
    """

    project = models.OneToOneField(Project, models.CASCADE, primary_key=True, related_name="profile")
    said = models.JSONField(default=dict)
    said_at = models.DateTimeField(_("last answered"), null=True)
    seen = models.JSONField(default=dict)
    etag = models.CharField(max_length=200, blank=True)
    last_modified = models.CharField(max_length=60, blank=True)
    asked_at = models.DateTimeField(_("last asked"), null=True)
    ask_after = models.DateTimeField(_("next asked after"), default=timezone.now, db_index=True)
    # Why it could not be asked, and since when; NULL: it answered
    problem = MessageField()
    problem_since = models.DateTimeField(null=True)
    failures = models.PositiveIntegerField(_("failures in a row"), default=0)
    # Since when it has reported itself as down; NULL: it has not
    says_down_since = models.DateTimeField(null=True)
    # A `ServerStatus`; empty: not published
    status = models.JSONField(default=dict)
    # The digest of the keys by which its programs are signed: as an operator has seen it, and as of the last trial
    code_key_seen = models.CharField(max_length=64, blank=True)
    code_key = models.CharField(max_length=64, blank=True)
    tried_at = models.DateTimeField(_("last test"), null=True)
    tried_well = models.BooleanField(null=True)
    tried_text = MessageField()

    def __str__(self) -> str:
        return f"what {self.project} says"


class ProjectKeyword(models.Model):
    """A subject or location of a project, and the fraction of its work that it covers."""

    project = models.ForeignKey(
        Project, models.CASCADE, related_name="keywords", db_index=False, verbose_name=_("project")
    )
    keyword = models.PositiveIntegerField(_("keyword"), choices=keyword_choices)
    weight = models.FloatField(
        _("weight"),
        default=1,
        validators=[MinValueValidator(0.01), MaxValueValidator(1)],
        help_text=_("The fraction of its work that this applies to, 0.01 to 1."),
    )

    class Meta:
        verbose_name = _("project keyword")
        verbose_name_plural = _("project keywords")
        constraints = [
            models.UniqueConstraint(fields=["project", "keyword"], name="projectkeyword_once"),
            CheckConstraint(condition=Q(weight__gt=0, weight__lte=1), name="projectkeyword_weight_range"),
        ]

    def __str__(self) -> str:
        keyword = keywords.KEYWORDS.get(self.keyword)
        return keyword.name if keyword else f"keyword {self.keyword}"


class ProjectVersion(models.Model):
    """A platform that a project has programs for. A project without any counts as running everywhere."""

    project = models.ForeignKey(
        Project, models.CASCADE, related_name="versions", db_index=False, verbose_name=_("project")
    )
    platform = models.CharField(
        _("platform"),
        max_length=64,
        blank=True,
        help_text=_("BOINC’s name for it, such as windows_x86_64. Leave empty for all platforms."),
    )
    processor_type = models.CharField(_("processor type"), max_length=64, choices=PROCESSOR_TYPES, default=CPU)

    class Meta:
        ordering = ["platform", "processor_type"]
        verbose_name = _("project platform")
        verbose_name_plural = _("project platforms")
        constraints = [
            models.UniqueConstraint(fields=["project", "platform", "processor_type"], name="projectversion_once")
        ]

    def __str__(self) -> str:
        return f"{self.platform or gettext('all platforms')}, {self.get_processor_type_display()}"


class ProjectTrouble(models.Model):
    """A trouble that most volunteers' computers report: no work for a type, or no answer. A task maintains these
    rows.
    """

    project = models.ForeignKey(
        Project, models.CASCADE, related_name="troubles", db_index=False, verbose_name=_("project")
    )
    kind = models.CharField(_("kind"), max_length=8, choices=_TROUBLE_KINDS)
    # Empty: all types
    processor_type = models.CharField(_("processor type"), max_length=64, blank=True)
    since = models.DateTimeField(_("since"))
    last_at = models.DateTimeField(_("last reported"))
    volunteers = models.PositiveIntegerField(_("volunteers affected"))
    of_volunteers = models.PositiveIntegerField(_("volunteers in total"))

    class Meta:
        verbose_name = _("project problem")
        verbose_name_plural = _("project problems")
        constraints = [
            models.UniqueConstraint(fields=["project", "kind", "processor_type"], name="projecttrouble_once")
        ]

    def __str__(self) -> str:
        return f"{self.project}: {self.kind} {self.processor_type}"


class ProjectStanding(models.Model):
    """A project's share of last week's processing, and its boost in choices (engine/choice/balance.py)."""

    project = models.ForeignKey(
        Project, models.CASCADE, related_name="standings", db_index=False, verbose_name=_("project")
    )
    on_gpu = models.BooleanField(_("on GPUs"))
    target = models.FloatField(_("target fraction"))
    got = models.FloatField(_("actual fraction"))
    boost = models.FloatField(_("factor applied to its share"))
    day = models.DateField(_("calculated on"))

    class Meta:
        verbose_name = _("project standing")
        verbose_name_plural = _("project standings")
        constraints = [models.UniqueConstraint(fields=["project", "on_gpu"], name="projectstanding_once")]

    def __str__(self) -> str:
        return f"{self.project} · {'GPU' if self.on_gpu else 'CPU'}"
