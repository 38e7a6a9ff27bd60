"""Volunteers and operators: their logins, and the password values of their BOINC clients."""

from __future__ import annotations

from typing import Any, ClassVar, Final

from django.contrib.auth.hashers import make_password
from django.contrib.auth.models import AbstractBaseUser, BaseUserManager, PermissionsMixin
from django.db import models
from django.db.models.functions import Lower
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from portal.models.common import MAX_NAME_CHARS, new_token
from portal.wire import credentials
from portal.wire.names import MAX_LOGIN_NAME_CHARS, folded


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
    # For pages and mails; empty: the browser's for pages, the site's for mails.
    language = models.CharField(_("language"), max_length=16, blank=True, default="", db_default="")
    # A name of the time-zone database; empty: the browser's.
    time_zone = models.CharField(_("time zone"), max_length=64, blank=True, default="", db_default="")
    # A slow hash over md5(password + e-mail), which a BOINC client sends; see portal/wire/credentials.py.
    client_password = models.CharField(_("client password"), max_length=200, blank=True, editable=False)
    # The address that client_password was made with: if it differs from the present one, the value is stale.
    client_password_email = models.EmailField(_("client password email"), max_length=254, blank=True, editable=False)
    # The same for an address that the person wants to change to: valid once that is the login.
    next_client_password = models.CharField(_("next client password"), max_length=200, blank=True, editable=False)
    next_client_password_email = models.EmailField(
        _("next client password email"), max_length=254, blank=True, editable=False
    )
    # Another login (LOGIN_BY_USER_NAME); its folded form; and client_password for it
    login_name = models.CharField(
        _("user name"), max_length=MAX_LOGIN_NAME_CHARS, blank=True, default="", db_default=""
    )
    login_name_key = models.CharField(
        max_length=MAX_LOGIN_NAME_CHARS, null=True, blank=True, editable=False, unique=True
    )
    login_name_password = models.CharField(max_length=200, blank=True, default="", db_default="", editable=False)
    # Identifies this person's accounts across projects (BOINC protocol, identifiers); clients make it converge.
    cross_project_id = models.CharField(_("cross project id"), max_length=32, default=new_token, editable=False)
    awaited_email_at = models.DateTimeField(_("other address requested"), null=True, blank=True, editable=False)
    terms_accepted_at = models.DateTimeField(_("terms of use accepted"), null=True, blank=True, editable=False)
    deletion_asked_at = models.DateTimeField(_("deletion requested"), null=True, blank=True, editable=False)
    # NULL: the same as everybody, NEW_HOSTS_PER_DAY
    new_hosts_per_day = models.PositiveIntegerField(
        _("new computers per day"),
        null=True,
        blank=True,
        help_text=_(
            "The most computers that this account may add in 24 hours. If empty, the limit for all accounts applies."
        ),
    )
    is_staff = models.BooleanField(
        _("operator"), default=False, help_text=_("May log in here. Roles say what they may see and do.")
    )
    # Set when an operator without a second factor resets their password by mail, until somebody restores their rights
    rights_held_at = models.DateTimeField(_("rights withheld since"), null=True, blank=True, editable=False)
    is_active = models.BooleanField(
        _("active"),
        default=True,
        help_text=_("If off, nobody can log in, and clients are refused. The history stays."),
    )
    created_at = models.DateTimeField(_("created at"), default=timezone.now, editable=False)

    objects: ClassVar[UserManager] = UserManager()

    USERNAME_FIELD = "email"
    EMAIL_FIELD = "email"
    REQUIRED_FIELDS: ClassVar[list[str]] = []

    class Meta:
        verbose_name = _("account")
        verbose_name_plural = _("accounts")
        constraints = [
            models.CheckConstraint(condition=models.Q(email=Lower("email")), name="user_email_is_lower_case"),
            models.CheckConstraint(
                condition=models.Q(login_name="", login_name_key=None)
                | models.Q(~models.Q(login_name=""), login_name_key__isnull=False),
                name="user_login_name_and_key",
            ),
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
        """Disable logins by password, on the web and from clients."""
        super().set_unusable_password()
        self.remember_client_password(None)

    def remember_client_password(self, raw_password: str | None) -> None:
        """Derive the clients' password value from a password in clear, for the present and an awaited address."""
        awaited = self.next_client_password_email
        self.client_password, self.client_password_email = _client_password(raw_password, self.email)
        self.expect_email(raw_password, "" if awaited == self.email else awaited)
        self.login_name_password, _login = _client_password(raw_password, self.login_name)

    def choose_login_name(self, name: str, raw_password: str) -> None:
        """Allow logins by this name and password, too; empty: by none."""
        self.login_name, self.login_name_key = name, folded(name) or None
        self.login_name_password, _login = _client_password(raw_password, name)

    def expect_email(self, raw_password: str | None, email: str) -> None:
        """Prepare the clients' password value for ``email``, the person's next address; empty: forget it."""
        self.next_client_password, self.next_client_password_email = _client_password(raw_password, email)


CLIENT_PASSWORD_FIELDS: Final = (
    "client_password",
    "client_password_email",
    "next_client_password",
    "next_client_password_email",
    "login_name_password",
)
"""What `User.remember_client_password` changes, for ``save(update_fields=…)``."""


def _client_password(raw_password: str | None, email: str) -> tuple[str, str]:
    """The slow hash and the address it was made for; both empty without a password or address."""
    if not (raw_password and email):
        return "", ""
    # Slow and salted, so that a stolen database gives access to nothing.
    return make_password(credentials.client_password_hash(raw_password, email)), email.lower()
