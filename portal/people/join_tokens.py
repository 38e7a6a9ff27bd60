"""Join tokens: making and revoking them, and recognising one at a computer's first contact.

A token in clear is shown once, to its maker. `portal.computers.identify` counts the computers.
"""

from __future__ import annotations

import datetime as dt
import hmac
import secrets
from typing import Final

from django.conf import settings
from django.db import transaction
from django.db.models import Case, F, Q, QuerySet, Sum, When
from django.utils import timezone
from django.utils.translation import gettext

from portal.languages.messages import Message
from portal.models import JoinToken, User
from portal.people.accounts import ClientAuthError, check_password_hash, lock_unchanged, refuse_if_blocked
from portal.people.security_events import NOWHERE, Kind, Source, record
from portal.sign_in import throttle
from portal.wire import boinc_errors, credentials

LOGIN_PREFIX: Final = "join-"
# Programs that look for secrets in published files recognise tokens by their prefix.
JOIN_PREFIX: Final = "cobblejoin_"
MAX_TOKENS_PER_USER: Final = 50
LIMIT_COUNTED_FOR: Final = dt.timedelta(days=30)
MAX_LIFETIME: Final = dt.timedelta(days=366)


class JoinTokenRefused(Exception):
    """The token cannot be made; the text says which limit, and what to do."""


def usable_tokens(now: dt.datetime) -> QuerySet[JoinToken]:
    """Tokens that are neither revoked nor expired; they may have no place left."""
    return JoinToken.objects.filter(expires_at__gt=now, revoked_at=None)


def joinable_hosts(user: User, now: dt.datetime) -> int:
    """The number of computers for which the account may make join tokens now.

    Within 30 days JOIN_TOKEN_HOSTS, or more if operators let it add more within a day; a token that has ended counts
    only the computers that joined.
    """
    if user.new_hosts_per_day == 0:
        return 0
    most = max(settings.JOIN_TOKEN_HOSTS, user.new_hosts_per_day or 0)
    usable = Q(expires_at__gt=now, revoked_at=None)
    lately = JoinToken.objects.filter(user=user, created_at__gt=now - LIMIT_COUNTED_FOR)
    taken = lately.aggregate(n=Sum(Case(When(usable, then=F("max_hosts")), default=F("joined_hosts"))))["n"] or 0
    return max(0, most - taken)


def make_join_token(
    user: User, *, group: str, max_hosts: int, lifetime: dt.timedelta, source: Source = NOWHERE
) -> tuple[JoinToken, str]:
    """Make a token, valid at once, and return it with its text in clear. ``group``: as in `portal.computers.groups`.

    ``user``: as when the request began. Locks the user's row. Raises JoinTokenRefused and PasswordChanged.
    """
    now = timezone.now()
    login, token = f"{LOGIN_PREFIX}{secrets.token_hex(6)}", JOIN_PREFIX + secrets.token_hex(16)
    with transaction.atomic():
        # Two simultaneous requests must not both count first and then both add.
        lock_unchanged(user)
        user.refresh_from_db(fields=["new_hosts_per_day"])
        if usable_tokens(now).filter(user=user).count() >= MAX_TOKENS_PER_USER:
            raise JoinTokenRefused(
                gettext("You already have %(number)s join tokens. Revoke one that you do not need.")
                % {"number": MAX_TOKENS_PER_USER}
            )
        if max_hosts > (room := joinable_hosts(user, now)):
            raise JoinTokenRefused(
                gettext("Your account can make join tokens for %(room)s more computers now. Ask for more below.")
                % {"room": room}
            )
        password_hash = credentials.client_password_hash(token, login)
        made = JoinToken.objects.create(
            user=user,
            login=login,
            token_hash=credentials.join_token_hash(password_hash, settings.ACCOUNT_KEY_SECRET),
            group=group,
            max_hosts=max_hosts,
            created_at=now,
            expires_at=now + min(lifetime, MAX_LIFETIME),
        )
        record(user, Kind.JOIN_TOKEN_MADE, source, f"{login}, {group}")
    return made, token


def revoke_join_token(user: User, token_id: int, source: Source = NOWHERE) -> JoinToken | None:
    """Revoke one of the user's tokens for good; None if there is no such token. Its computers go on. Safe to repeat."""
    own = JoinToken.objects.filter(user=user, pk=token_id)
    number = own.filter(revoked_at=None).update(revoked_at=timezone.now())
    token = own.first()
    if number and token:
        record(user, Kind.JOIN_TOKEN_REVOKED, source, f"{token.login}, {token.group}")
    return token


def revoke_all_join_tokens(user: User, source: Source) -> int:
    """Revoke all of the user's tokens for good; return how many usable ones there were."""
    number = usable_tokens(timezone.now()).filter(user=user).update(revoked_at=timezone.now())
    if number:
        record(user, Kind.JOIN_TOKEN_REVOKED, source, Message("event_all_tokens"))
    return number


def is_join_login(login: str) -> bool:
    """Whether a client sends the login of a join token, which looks like no e-mail address."""
    return login.strip().lower().startswith(LOGIN_PREFIX) and "@" not in login


def authenticate_join(login: str, password_hash: str, *, address: str) -> JoinToken:
    """The usable token, with its user, that a client sends at its first contact. Raises ClientAuthError.

    ``password_hash``: MD5(token + login), as for a password. A wrong token counts as one failed login of the
    address, however many computers send it; one that has ended does not count, as a laboratory with it would lock out
    its own people.
    """
    check_password_hash(password_hash)
    try:
        throttle.admit_key(address)
    except throttle.Throttled as error:
        raise ClientAuthError(
            boinc_errors.ERR_BAD_PASSWORD,
            f"There were too many wrong logins from your address. Try again after {error.until:%H:%M:%S} UTC.",
        ) from error
    token = JoinToken.objects.select_related("user").filter(login=login.strip().lower()[:20]).first()
    sent = credentials.join_token_hash(password_hash, settings.ACCOUNT_KEY_SECRET)
    if token is None or not hmac.compare_digest(bytes(token.token_hash), sent):
        throttle.count_wrong_key(address, f"{login} {password_hash}")
        raise ClientAuthError(
            boinc_errors.ERR_BAD_PASSWORD,
            f"There is no such join token. Check both parts of it, or make another one at {join_page()}",
        )
    check_usable(token, timezone.now())
    if not token.user.is_active:
        refuse_if_blocked(token.user_id)
        raise ClientAuthError(boinc_errors.ERR_GENERIC, "The account of this join token is closed.")
    return token


def check_usable(token: JoinToken, now: dt.datetime) -> None:
    """Raise ClientAuthError if the token was revoked or has expired."""
    if token.revoked_at is not None:
        reason = f"was revoked on {token.revoked_at:%Y-%m-%d}"
    elif token.expires_at <= now:
        reason = f"was valid until {token.expires_at:%Y-%m-%d %H:%M} UTC"
    else:
        return
    raise ClientAuthError(boinc_errors.ERR_BAD_PASSWORD, f"This join token {reason}. Make another one at {join_page()}")


def join_page() -> str:
    """The address of the page with limits and join tokens, for sentences that clients show."""
    return f"{settings.SITE_URL}computers/joining/"
