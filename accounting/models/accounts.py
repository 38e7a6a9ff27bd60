"""Volunteers' choices: their projects and their settings."""

from __future__ import annotations

from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.db.models import CheckConstraint, Q
from django.utils.translation import gettext_lazy as _

from accounting.engine.choice.facts import MAX_SHARE
from accounting.models.projects import Project
from portal.languages.sentences import MessageField
from portal.models import User


class UserProject(models.Model):
    """A volunteer's choice of a project, their account at it, and their totals there (rolled up by a task)."""

    user = models.ForeignKey(
        User, models.CASCADE, related_name="user_projects", db_index=False, verbose_name=_("volunteer")
    )
    project = models.ForeignKey(Project, models.CASCADE, related_name="user_projects", verbose_name=_("project"))
    is_chosen = models.BooleanField(_("chosen by hand"), default=False)
    resource_share = models.FloatField(_("resource share"), null=True, blank=True)
    account_key = models.BinaryField(_("account key, encrypted"), null=True, blank=True, editable=False)
    total_ec = models.BigIntegerField(_("estimated credit, micro-credits"), default=0, editable=False)
    avg_ec = models.FloatField(_("recent average, credits per day"), default=0, editable=False)
    avg_at = models.DateTimeField(null=True, blank=True, editable=False)

    class Meta:
        verbose_name = _("account at a project")
        verbose_name_plural = _("accounts at projects")
        constraints = [
            models.UniqueConstraint(fields=["user", "project"], name="userproject_once"),
            CheckConstraint(
                condition=Q(resource_share__isnull=True) | Q(resource_share__gte=0, resource_share__lte=MAX_SHARE),
                name="userproject_share_range",
            ),
        ]

    def __str__(self) -> str:
        return f"{self.user} · {self.project}"


class AccountSettings(models.Model):
    """Settings that a volunteer's clients are sent besides projects: preferences and keywords."""

    user = models.OneToOneField(
        User, models.CASCADE, primary_key=True, related_name="account_settings", verbose_name=_("volunteer")
    )
    # {element: number, …, "days": {"0": {"start_hour": number, …}, …}, "venues": {"home": {the same}, …}}, the sets
    # complete (accounting/engine/preferences.py); empty: the client keeps its own.
    preferences = models.JSONField(_("preferences"), default=dict, blank=True)
    preferences_at = models.DateTimeField(_("preferences saved on"), null=True, blank=True)
    keywords_yes = ArrayField(
        models.PositiveIntegerField(), default=list, blank=True, verbose_name=_("preferred keywords")
    )
    keywords_no = ArrayField(
        models.PositiveIntegerField(), default=list, blank=True, verbose_name=_("excluded keywords")
    )
    # Shown by BOINC: the name of a team, and the notices of projects.
    team_name = models.CharField(max_length=100, blank=True)
    no_project_notices = models.BooleanField(default=False)
    # Whether clients are asked for their tasks, if the site asks for them (AM_TASKS)
    sends_tasks = models.BooleanField(default=True, db_default=True)

    class Meta:
        verbose_name = _("account settings")
        verbose_name_plural = _("account settings")

    def __str__(self) -> str:
        return str(self.user)


class OwnAccount(models.Model):
    """A volunteer's own account at a project; its key is in `UserProject`.

    ``sealed_request``: the request for the worker, with the hash of a password or a key; it is removed when a worker
    takes it, or it expires (accounting/own_accounts/).
    """

    class State(models.TextChoices):
        ASKING = "asking", _("the project is being asked")
        WORKS = "works", _("works")
        UNCHECKED = "unchecked", _("not checked: the project does not tell")
        NO_ACCOUNT = "no_account", _("no such account")
        WRONG_PASSWORD = "wrong_password", _("wrong password")
        KEY_REFUSED = "key_refused", _("the key is not valid, or not any more: the password was changed")
        TERMS = "terms", _("terms to accept")
        TAKEN = "taken", _("there is an account with another password")
        NOT_CREATED = "not_created", _("the project creates no account")
        UNREACHABLE = "unreachable", _("the project could not be asked")
        EXPIRED = "expired", _("not asked in time: enter it again")

    user = models.ForeignKey(User, models.CASCADE, related_name="own_accounts", db_index=False)
    project = models.ForeignKey(Project, models.CASCADE, related_name="own_accounts")
    state = models.CharField(_("state"), max_length=16, choices=State)
    state_at = models.DateTimeField(_("since"))
    # The reason; NULL if there is nothing to add
    reason = MessageField()
    asked_at = models.DateTimeField(null=True)
    sealed_request = models.BinaryField(null=True, editable=False)
    # The number of the account there; 0: not known
    number = models.BigIntegerField(default=0)
    name = models.CharField(max_length=300, blank=True)
    # Whether the project describes the account by the stored key, so that it can be checked
    can_check = models.BooleanField(default=False)
    check_after = models.DateTimeField(db_index=True)
    # As published by the project, in micro-credits and credits a day; NULL: not published
    total_credit = models.BigIntegerField(null=True)
    avg_credit = models.FloatField(null=True)
    credit_at = models.DateTimeField(null=True)

    class Meta:
        verbose_name = _("own account at a project")
        verbose_name_plural = _("own accounts at projects")
        constraints = [
            models.UniqueConstraint(fields=["user", "project"], name="ownaccount_once"),
            CheckConstraint(
                condition=Q(sealed_request=None) | Q(state="asking"), name="ownaccount_request_while_asking"
            ),
            CheckConstraint(condition=Q(total_credit=None) | Q(total_credit__gte=0), name="ownaccount_credit_range"),
        ]

    def __str__(self) -> str:
        return f"{self.user} · {self.project}"
