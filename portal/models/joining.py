"""Adding many computers to an account: join tokens of its groups, and requests to operators for a higher limit."""

from __future__ import annotations

from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from portal.models.people import User


class JoinToken(models.Model):
    """A token with which a limited number of computers make their first contact; they join its group.

    Clients send ``login`` and a hash of the token, as they do with an e-mail address and a password. Only a keyed hash
    of what they send is stored. A token is only for the first contact with the account manager.
    """

    user = models.ForeignKey(User, models.CASCADE, related_name="join_tokens", verbose_name=_("volunteer"))
    login = models.CharField(_("login"), max_length=20, unique=True, editable=False)
    token_hash = models.BinaryField(_("keyed hash of the token"), max_length=32, editable=False)
    group = models.CharField(_("group"), max_length=30)
    max_hosts = models.PositiveIntegerField(_("computers that may join"))
    joined_hosts = models.PositiveIntegerField(_("computers that joined"), default=0)
    created_at = models.DateTimeField(_("created at"), default=timezone.now, editable=False)
    expires_at = models.DateTimeField(_("expires at"))
    last_used_at = models.DateTimeField(_("last used at"), null=True, blank=True)
    revoked_at = models.DateTimeField(_("revoked at"), null=True, blank=True)

    class Meta:
        verbose_name = _("join token")
        verbose_name_plural = _("join tokens")
        ordering = ["-created_at", "-pk"]
        constraints = [
            models.CheckConstraint(
                condition=models.Q(joined_hosts__lte=models.F("max_hosts")), name="jointoken_within_its_number"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.login} ({self.group})"

    @property
    def places(self) -> int:
        """How many more computers may join."""
        return self.max_hosts - self.joined_hosts


class HostLimitRequest(models.Model):
    """A request to add more computers within a day than every account may; operators grant or decline it."""

    user = models.ForeignKey(User, models.CASCADE, related_name="host_limit_requests", verbose_name=_("volunteer"))
    hosts_per_day = models.PositiveIntegerField(_("new computers per day"))
    reason = models.CharField(_("what for"), max_length=500)
    asked_at = models.DateTimeField(_("requested at"), default=timezone.now, editable=False)
    decided_at = models.DateTimeField(_("decided at"), null=True, blank=True)
    decided_by = models.ForeignKey(
        User, models.SET_NULL, null=True, blank=True, related_name="+", verbose_name=_("decided by")
    )
    is_granted = models.BooleanField(_("granted"), default=False)

    class Meta:
        verbose_name = _("request for more computers")
        verbose_name_plural = _("requests for more computers")
        ordering = ["-asked_at", "-pk"]
        constraints = [
            models.UniqueConstraint(
                fields=["user"], condition=models.Q(decided_at=None), name="hostlimitrequest_one_waiting"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.user}: {self.hosts_per_day}"
