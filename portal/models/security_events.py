"""Events that concern the access to an account."""

from __future__ import annotations

from django.db import models
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from portal.languages.sentences import MessageField
from portal.models.people import User


class SecurityEvent(models.Model):
    """Something that concerns who may use an account: a login, a failed one, a key, a token, a change.

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
        JOIN_TOKEN_MADE = "join_made", _("join token created")
        JOIN_TOKEN_REVOKED = "join_revoked", _("join token revoked")
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
    detail = MessageField()
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
