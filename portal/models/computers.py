"""The volunteers' computers."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.utils import timezone
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from portal.languages.sentences import MessagesField
from portal.models.common import MAX_NAME_CHARS, new_token
from portal.models.joining import JoinToken
from portal.models.people import User


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
    # Its number at the account manager that moved in here; its client sends it until it has received the token.
    former_number = models.BigIntegerField(_("former number"), null=True, blank=True, editable=False)
    host_cpid = models.CharField(_("cross-project id"), max_length=32, blank=True)
    # For an imported computer: its id on other sites, as its own is unknown before its client's first contact
    published_cpid = models.CharField(
        _("published cross-project id"), max_length=32, blank=True, default="", db_default="", editable=False
    )
    domain_name = models.CharField(_("name reported by the client"), max_length=255, blank=True)
    given_name = models.CharField(_("name given by the owner"), max_length=MAX_NAME_CHARS, blank=True)
    venue = models.CharField(_("venue"), max_length=6, choices=Venue, blank=True, default=Venue.NONE)
    # The owner's names for sets of computers (portal/computers/groups.py)
    groups = ArrayField(
        models.CharField(max_length=30), default=list, db_default=[], blank=True, verbose_name=_("groups")
    )
    # The token of its first contact, or of that of the computer whose data folder was copied
    join_token = models.ForeignKey(
        JoinToken, models.SET_NULL, null=True, blank=True, related_name="hosts", verbose_name=_("join token")
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
    # Linux distributions under Windows: [{"name", "system", "docker_version", "is_allowed"}, …]
    wsl = models.JSONField(_("WSL"), default=list, db_default=[], blank=True)
    # What the owner forbids BOINC to use: "docker", "wsl"
    not_used = ArrayField(
        models.CharField(max_length=16), default=list, db_default=[], blank=True, verbose_name=_("not used")
    )
    # The brand of its BOINC build, and a note of its owner's for projects; empty for most
    client_brand = models.CharField(_("BOINC's brand"), max_length=64, blank=True, db_default="", default="")
    client_opaque = models.CharField(_("note for projects"), max_length=1000, blank=True, db_default="", default="")
    # [{"type", "name", "count", "peak_flops", "ram_bytes", "driver_version", "opencl_version"}, …]
    coprocs = models.JSONField(_("coprocessors"), default=list, blank=True)
    hardware_digest = models.BinaryField(_("hardware digest"), max_length=16, default=bytes, editable=False)
    # Reported hardware values that were left out, each with the field and its limit, for the owner to see.
    hardware_faults = MessagesField(_("hardware faults"))

    class Meta:
        verbose_name = _("computer")
        verbose_name_plural = _("computers")
        indexes = [models.Index(fields=["owner", "host_cpid"], name="host_owner_cpid")]
        constraints = [
            models.UniqueConstraint(
                fields=["owner", "former_number"],
                condition=models.Q(former_number__isnull=False),
                name="host_former_number_once",
            ),
            models.CheckConstraint(condition=~models.Q(merged_into=models.F("id")), name="host_not_merged_into_itself"),
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def name(self) -> str:
        return self.given_name or self.domain_name or gettext("computer %(number)s") % {"number": self.pk}
