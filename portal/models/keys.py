"""Credentials of BOINC clients and programs; only their hashes are stored."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from portal.models.computers import Host
from portal.models.people import User


class ClientKey(models.Model):
    """A key that a BOINC client authenticates with; only its hash is stored. It works in the client protocols only.

    Many may be valid at once; each password login by a client, and each account look-up, makes a fresh one.
    """

    class Origin(models.TextChoices):
        ATTACH = "attach", _("computer attached")
        LOOKUP = "lookup", _("account looked up by a BOINC Manager")
        JOIN = "join", _("computer attached with a join token")
        # Not of one computer: the key that all of the person's clients had on a site that moved in here.
        IMPORTED = "imported", _("from before the project moved here")

    user = models.ForeignKey(User, models.CASCADE, related_name="client_keys", verbose_name=_("volunteer"))
    host = models.ForeignKey(
        Host, models.CASCADE, null=True, blank=True, related_name="client_keys", verbose_name=_("computer")
    )
    origin = models.CharField(_("origin"), max_length=8, choices=Origin)
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
    """A token for the REST API; only its hash is stored. It gives access only to its scopes."""

    class Scope(models.TextChoices):
        HISTORY = "read:history", _("daily history and its totals")
        HOSTS = "read:hosts", _("computers")
        TASKS = "read:tasks", _("tasks of this project")
        PROJECTS = "read:projects", _("projects and my part in them")
        NOTES = "read:notes", _("notes on reports")
        JOBS = "write:jobs", _("submitting, following and cancelling jobs")
        EMULATOR = "write:emulator", _("running, reading and deleting emulations")
        PROJECT = "write:project", _("versions of programs, blocks, and jobs that find no computer")
        SCRIPTS = "write:scripts", _("storing the project’s scripts, and choosing them for apps")

    user = models.ForeignKey(User, models.CASCADE, related_name="api_tokens", verbose_name=_("volunteer"))
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
        """The names of the token's scopes."""
        return [str(scope.label) for scope in self.Scope if scope in self.scopes]


class LoginToken(models.Model):
    """A token with which a client logs in once; only its hash is stored."""

    user = models.OneToOneField(User, models.CASCADE, primary_key=True, related_name="login_token")
    token_hash = models.BinaryField(max_length=32, editable=False)
    made_at = models.DateTimeField()

    class Meta:
        verbose_name = _("login token")
        verbose_name_plural = _("login tokens")

    def __str__(self) -> str:
        return f"login token of {self.user}"
