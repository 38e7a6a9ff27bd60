"""Accounts as BOINC clients use them: logging in with a password, getting and revoking client keys, signing up.

Every refusal is a ClientAuthError: BOINC's error number, and a sentence that tells the volunteer what to do.
Source: BOINC protocol, web RPCs and the account-manager request.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Final

from allauth.account.models import EmailAddress
from django.conf import settings
from django.contrib.auth.hashers import check_password, make_password
from django.core.exceptions import ValidationError
from django.core.validators import validate_email
from django.db import IntegrityError, transaction
from django.db.models import Case, F, When
from django.utils import timezone

from portal.languages.contact import operators
from portal.languages.messages import Message
from portal.models import CLIENT_PASSWORD_FIELDS, MAX_NAME_CHARS, AccountBlock, ClientKey, Host, User
from portal.people import key_rules, login_tokens
from portal.people.key_mails import ask_for_confirmation
from portal.people.security_events import NOWHERE, Kind, Source, log_event, record
from portal.people.staff import second_factors
from portal.sign_in import known_devices, throttle
from portal.wire import boinc_errors, credentials
from portal.wire.names import folded, hides_something, is_login_name

MAX_EMAIL_CHARS: Final = 254

_PASSWORD_HASH = re.compile(r"[0-9a-fA-F]{32}")
_HINT_CHARS: Final = 6

_ORIGINS: Final = {
    ClientKey.Origin.ATTACH: "key_origin_attach",
    ClientKey.Origin.LOOKUP: "key_origin_lookup",
    ClientKey.Origin.JOIN: "key_origin_join",
}


class ClientAuthError(Exception):
    """A client's login or sign-up is refused: BOINC's error number, and a sentence for the volunteer."""

    def __init__(self, error_num: int, message: str) -> None:
        super().__init__(message)
        self.error_num = error_num
        self.message = message


class WrongPassword(ClientAuthError):
    """The password was checked and is wrong."""

    def __init__(self, message: str) -> None:
        super().__init__(boinc_errors.ERR_BAD_PASSWORD, message)


class AccountBlocked(ClientAuthError):
    """Operators blocked the account. Its keys stay valid, and work again once it is unblocked."""

    def __init__(self) -> None:
        super().__init__(
            boinc_errors.ERR_GENERIC,
            f"This account is blocked. Write to {operators()}; your computers need no change.",
        )


class PasswordChanged(ClientAuthError):
    """The password was changed while a request that knew the old one was being answered."""

    def __init__(self) -> None:
        super().__init__(
            boinc_errors.ERR_PROJECT_DOWN, "The password of this account has just been changed. Try again in a minute."
        )


def authenticate_client(login: str, password_hash: str, *, address: str, host_token: str = "") -> User:
    """The user whose e-mail address is ``login``, if the client's value for the password is right.

    ``password_hash`` is MD5(password + lower-case login) in 32 hex digits, or the same of a login token, which is used
    up by it (portal/people/login_tokens.py). With a second factor only a token is accepted. ``address`` is the IP
    address that failures are counted for, ``host_token`` the id of the computer if it sends one. Raises
    ClientAuthError. Computes a slow hash unless it refuses before that.
    """
    check_password_hash(password_hash)
    email = login.strip().lower()
    with _admitted(address):
        user = find(email)
        is_by_name = user is not None and email != user.email
        if is_by_name and user is not None:
            # Failures of both ways count together.
            email = user.email
        device = _admit_to_account(user, email, address, host_token)
        if user is not None and login_tokens.use(user, password_hash, timezone.now()):
            return _active(user)
        right = _check_name(user, password_hash) if is_by_name else _check(user, password_hash)
    return _judged(user, right, email, address, device)


def account_exists(login: str, *, address: str) -> None:
    """Return if there is an account with this e-mail address; else ClientAuthError. Limited like a login."""
    email = login.strip().lower()
    with _throttling():
        throttle.admit(address)
        user = find(email)
        device = _admit_to_account(user, email, address)
    if user is None:
        throttle.count_failure(email, address, device)
        raise _no_account()


def create_account(email: str, password_hash: str, name: str, *, address: str, accepts_terms: bool = False) -> User:
    """Open an account for a client (BOINC protocol, create_account.php); it works on the web too.

    With an existing account's address and password, that account is returned. Raises ClientAuthError.
    """
    if not settings.CLIENT_SIGNUP_OPEN:
        raise ClientAuthError(
            boinc_errors.ERR_ACCOUNT_CREATION_DISABLED,
            f"New accounts cannot be opened from the BOINC Manager here; see {settings.SITE_URL}",
        )
    check_password_hash(password_hash)
    email, name = email.strip().lower(), name.strip()
    _check_email(email)
    # Before looking for the account: requests that cannot open one must not reveal without limit whether it exists.
    check_name(name)
    if settings.TERMS_OF_USE and not accepts_terms:
        raise ClientAuthError(
            boinc_errors.ERR_CONSENT_REQUIRED,
            "Opening an account needs your consent to the terms of use. Agree to them, or sign up at "
            f"{settings.SITE_URL}",
        )
    with _admitted(address):
        # Only now, as a request that waits for a hash slot must not hold a connection of the pool.
        existing = find(email)
        device = _admit_to_account(existing, email, address)
        if existing is not None:
            right = _check(existing, password_hash)
        else:
            throttle.admit_new_account(address)
            stored = make_password(password_hash.lower())
    if existing is not None:
        return _existing_account(existing, right, email, address, device)
    user = User(email=email, name=name, terms_accepted_at=timezone.now() if settings.TERMS_OF_USE else None)
    # The site has not seen the password: the first login on the web sets Django's own (portal/people/backends.py).
    user.set_unusable_password()
    user.client_password, user.client_password_email = stored, email
    try:
        with transaction.atomic():
            user.save()
            EmailAddress.objects.create(user=user, email=email, primary=True, verified=False)
            # For a new account only, so that repeated requests do not make us write to somebody again and again.
            ask_for_confirmation(user)
    except IntegrityError:
        # The same request came twice at once.
        return authenticate_client(email, password_hash, address=address)
    return user


def demand_confirmed_address(user_id: int) -> None:
    """Raise ClientAuthError if work is only for confirmed addresses, and this account's is not confirmed."""
    if not settings.CONFIRMED_EMAIL_FOR_PROJECTS:
        return
    if not EmailAddress.objects.filter(user=user_id, email=F("user__email"), verified=True).exists():
        raise ClientAuthError(
            boinc_errors.ERR_GENERIC,
            "Confirm your e-mail address first: open the link in the mail that we sent to you, then try again. You can "
            f"ask for another mail at {settings.SITE_URL}account/email/",
        )


def refresh_client_password(user: User, raw_password: str) -> None:
    """After a login with this password, make the clients' value if it is missing or for another address."""
    if user.client_password and user.client_password_email == user.email:
        return
    user.remember_client_password(raw_password)
    user.save(update_fields=CLIENT_PASSWORD_FIELDS)


def check_password_hash(password_hash: str) -> None:
    if not _PASSWORD_HASH.fullmatch(password_hash):
        raise ClientAuthError(
            boinc_errors.ERR_GENERIC,
            "The password hash must be 32 hexadecimal digits: MD5 of the password followed by the lower-case "
            "e-mail address. Update your BOINC client if it sent something else.",
        )


def check_client_password(sent: str, stored: str, store: Callable[[str], object] | None = None) -> bool:
    """Whether the 32 hex digits that a client sent are those that ``stored`` was made from.

    If so, and ``stored`` is weaker than today's hashes, for instance from before the project moved here, ``store``
    is called with them.
    """
    is_right = bool(stored) and check_password(sent.lower(), stored, store)
    if not is_right and stored.startswith("bcrypt$"):
        # It takes less time than others, which would reveal whether there is such an account.
        make_password(sent)
    return is_right


def issue_client_key(
    user: User, origin: ClientKey.Origin, host: Host | None = None, *, source: Source = NOWHERE
) -> str:
    """Issue a client key, and return it in clear; only its hash is stored. ``source``: where it is sent to.

    ``user``: as when the password was checked. At the limit of keys, those not in use end
    (portal/people/key_rules.py); if all are in use, ClientAuthError. Locks the user's row, then the keys. Raises
    PasswordChanged.
    """
    with transaction.atomic():
        lock_unchanged(user, "client_password")
        return make_client_key(user, origin, host, source=source)


def make_client_key(
    user: User, origin: ClientKey.Origin, host: Host | None, *, source: Source, is_event: bool = True
) -> str:
    """Make a key for a caller that has locked the user's row. ``is_event``: record it as an event for the volunteer."""
    key = credentials.new_client_key()
    now = timezone.now()
    if host is None:
        _drop_unused(user, now)
    else:
        _make_room(host, now)
    issued = ClientKey.objects.create(
        user=user, host=host, origin=origin, key_hash=credentials.key_hash(key), hint=key[:_HINT_CHARS], created_at=now
    )
    if origin is ClientKey.Origin.JOIN or not is_event:
        # The token was an event; a room of computers should not be one for each of them.
        log_event(Kind.KEY_MADE, source, user.pk)
    else:
        record(
            user,
            Kind.KEY_MADE,
            source,
            Message("event_key", hint=issued.hint, origin=Message(_ORIGINS[ClientKey.Origin(issued.origin)])),
        )
    return key


def note_key_use(key_id: int, host_id: int, now: datetime) -> None:
    """Record a client's use of the key, and its computer. A key from before the project moved here is no single
    computer's, so that it does not end with one of them.
    """
    computer = Case(When(origin=ClientKey.Origin.IMPORTED, then=None), default=host_id)
    ClientKey.objects.filter(pk=key_id).update(last_used_at=now, host_id=computer)


def lock_unchanged(user: User, field: str = "password") -> None:
    """Lock the user's row; PasswordChanged if its password differs from that of ``user``.

    So nobody who knew the old password gets anything that works right after a reset has revoked it all. ``field``:
    what the password was compared with, "client_password" for BOINC clients.
    """
    rows = User.objects.select_for_update(no_key=True).filter(pk=user.pk).values_list(field, flat=True)
    if rows.first() != getattr(user, field):
        raise PasswordChanged


def revoke_client_key(user: User, key_id: int, source: Source = NOWHERE) -> bool:
    """Revoke one of the user's keys for good; False if the user has no such key. Safe to repeat."""
    own = ClientKey.objects.filter(user=user, pk=key_id)
    key = own.first()
    if key is not None and own.filter(revoked_at=None).update(revoked_at=timezone.now()):
        record(user, Kind.KEY_REVOKED, source, f"{key.hint}…")
    return key is not None


def revoke_all_client_keys(user: User, source: Source = NOWHERE) -> int:
    """Revoke all of the user's keys for good; return how many there were."""
    number = ClientKey.objects.filter(user=user, revoked_at=None).update(revoked_at=timezone.now())
    if number:
        record(user, Kind.KEY_REVOKED, source, Message("event_all_keys"))
    return number


def weak_key(user_id: int, hash_of_key: bytes) -> str:
    """The weak form of a client key, which this site's own project accepts (`portal.wire.credentials.weak_key`)."""
    return credentials.weak_key(user_id, hash_of_key, weak_key_pepper())


def weak_key_pepper() -> str:
    """The secret part of this site's weak keys."""
    return credentials.weak_key_pepper(settings.ACCOUNT_KEY_SECRET)


def _make_room(host: Host, now: datetime) -> None:
    """End keys of the computer that are not in use, if it has as many as allowed. Raises ClientAuthError."""
    keys = live_keys(host)
    if len(keys) < settings.KEYS_PER_HOST:
        return
    states = key_rules.states_of(keys, host.retired_at, timedelta(seconds=settings.AM_REPEAT_SECS), now)
    ended = key_rules.to_make_room(keys, states, settings.KEYS_PER_HOST)
    if ended is None:
        raise ClientAuthError(
            boinc_errors.ERR_GENERIC,
            f"The record of this computer has {settings.KEYS_PER_HOST} keys, all in use. Revoke those that you do not "
            f"need at {settings.SITE_URL}account/keys/ and try again.",
        )
    ClientKey.objects.filter(pk__in=ended, revoked_at=None).update(revoked_at=now)


def live_keys(host: Host) -> list[key_rules.KeyFacts]:
    """The computer's keys that have not ended."""
    rows = ClientKey.objects.filter(host=host, revoked_at=None).values_list("pk", "created_at", "last_used_at")
    return [key_rules.KeyFacts(*row) for row in rows]


def _drop_unused(user: User, now: datetime) -> None:
    """End the oldest keys that no client has used, beyond the limit for an account: anyone can look up accounts."""
    unused = ClientKey.objects.filter(user=user, host=None, last_used_at=None, revoked_at=None).exclude(
        origin=ClientKey.Origin.IMPORTED
    )
    newest_first = unused.order_by("-created_at", "-pk").values("pk")
    ClientKey.objects.filter(pk__in=newest_first[settings.UNUSED_KEYS_PER_ACCOUNT - 1 :]).update(revoked_at=now)


def find(login: str) -> User | None:
    """The account with this e-mail address or, if the site has them, this user name."""
    if len(login) > MAX_EMAIL_CHARS or "\0" in login:
        return None
    if settings.LOGIN_BY_USER_NAME and is_login_name(login):
        return User.objects.filter(login_name_key=folded(login)).first()
    return User.objects.filter(email=login.lower()).first()


def _check(user: User | None, password_hash: str) -> bool:
    if user is not None and user.current_client_password:
        return check_client_password(password_hash, user.current_client_password, partial(_hash_again, user))
    # Takes as long as a wrong password, so the time does not reveal whether the account exists.
    make_password(password_hash)
    return False


def _check_name(user: User | None, password_hash: str) -> bool:
    """Whether the hash fits a login by user name, for which clients compute a different hash."""
    if user is not None and user.login_name_password:
        return check_client_password(password_hash, user.login_name_password)
    make_password(password_hash)
    return False


def _hash_again(user: User, sent: str) -> None:
    """Store the value with today's hash, unless another password was set meanwhile."""
    if user.client_password_email != user.email:
        return
    before, stored = user.client_password, make_password(sent)
    if User.objects.filter(pk=user.pk, client_password=before).update(client_password=stored):
        user.client_password = stored


def refuse_if_blocked(user_id: int) -> None:
    """Raise AccountBlocked if operators blocked this account."""
    if AccountBlock.objects.filter(user=user_id).exists():
        raise AccountBlocked


def refuse_key_if_blocked(hash_of_key: bytes) -> None:
    """Refuse the account that a client key belongs to, if it is blocked."""
    owner = ClientKey.objects.filter(key_hash=hash_of_key, revoked_at=None).values_list("user", flat=True).first()
    if owner is not None:
        refuse_if_blocked(owner)


def refuse_weak_key_if_blocked(user_id: int, key: str) -> None:
    """Refuse one of its own weak keys to a blocked account; others learn nothing."""
    if AccountBlock.objects.filter(user=user_id).exists():
        stored = ClientKey.objects.filter(user=user_id, revoked_at=None).values_list("key_hash", flat=True)
        hashes = [bytes(value) for value in stored]
        if credentials.weak_key_hash(key) in hashes or any(weak_key(user_id, hash_) == key for hash_ in hashes):
            refuse_if_blocked(user_id)


def _active(user: User) -> User:
    if user.is_active:
        return user
    refuse_if_blocked(user.pk)
    raise ClientAuthError(
        boinc_errors.ERR_GENERIC,
        f"This account is closed. If you did not ask for that, write to {operators()}.",
    )


def _wrong_password(user: User) -> WrongPassword:
    if user.current_client_password:
        return WrongPassword(
            "The password is wrong. Check it and try again; if you forgot it, set a new one at "
            f"{settings.SITE_URL}account/password/reset/"
        )
    return WrongPassword(
        f"Log in once at {settings.SITE_URL} with your e-mail address and password, then try again here: "
        "your address was changed, and your password for BOINC clients depends on it."
    )


def _judged(user: User | None, right: bool, email: str, address: str, device: str) -> User:
    """The user if the password was right; else count the failure and raise ClientAuthError."""
    if user is not None and right:
        _demand_no_factor(user, address)
        return _active(user)
    throttle.count_failure(email, address, device)
    if user is None:
        log_event(Kind.CLIENT_LOGIN_FAILED, Source(address))
        raise _no_account()
    record(user, Kind.CLIENT_LOGIN_FAILED, Source(address))
    raise _wrong_password(user)


def _demand_no_factor(user: User, address: str) -> None:
    """Raise ClientAuthError if the password is not enough for the account: clients cannot ask for a second factor."""
    if settings.CLIENT_PASSWORD_ALONE or not second_factors(user).exists():
        return
    record(user, Kind.CLIENT_LOGIN_FAILED, Source(address))
    raise ClientAuthError(
        boinc_errors.ERR_GENERIC,
        "Your account has a second factor, so BOINC needs a login token in place of the password. Create one at "
        f"{settings.SITE_URL}account/login-token/",
    )


def _existing_account(user: User, right: bool, email: str, address: str, device: str) -> User:
    try:
        return _judged(user, right, email, address, device)
    except WrongPassword as error:
        raise ClientAuthError(
            boinc_errors.ERR_NOT_UNIQUE,
            "There is an account with this e-mail address already, with another password. Use that, or set "
            f"a new one at {settings.SITE_URL}account/password/reset/",
        ) from error


def _check_email(email: str) -> None:
    try:
        validate_email(email)
        fits = len(email) <= MAX_EMAIL_CHARS
    except ValidationError:
        fits = False
    if not fits:
        raise ClientAuthError(
            boinc_errors.ERR_BAD_EMAIL,
            f"This is not an e-mail address of up to {MAX_EMAIL_CHARS} characters, such as you@example.org. "
            "Correct it and try again.",
        )


def check_name(name: str) -> None:
    """Raise ClientAuthError if this cannot be a display name."""
    if not name or len(name) > MAX_NAME_CHARS or hides_something(name):
        raise ClientAuthError(
            boinc_errors.ERR_BAD_USER_NAME,
            f"Choose a user name of 1 to {MAX_NAME_CHARS} characters, none of them invisible, "
            "without line breaks, and try again.",
        )


def _no_account() -> ClientAuthError:
    return ClientAuthError(
        boinc_errors.ERR_ACCOUNT_NOT_FOUND,
        f"There is no account with this e-mail address. Check its spelling, or open an account at {settings.SITE_URL}",
    )


def _admit_to_account(user: User | None, email: str, address: str, host_token: str = "") -> str:
    """Check the account's counter of failures, and return the caller's known device; raises Throttled."""
    device = known_devices.of_client(user, address, host_token)
    throttle.admit_to_account(email, device)
    return device


@contextmanager
def _admitted(address: str) -> Iterator[None]:
    with _throttling():
        throttle.admit(address)
        with throttle.hash_slot():
            yield


@contextmanager
def _throttling() -> Iterator[None]:
    """Turn the throttle's refusals into a ClientAuthError."""
    try:
        yield
    except throttle.Throttled as error:
        raise ClientAuthError(
            boinc_errors.ERR_BAD_PASSWORD,
            f"There were too many attempts to log in. Wait until {_clock_time(error.until)} and try again; "
            "the password was not checked.",
        ) from error
    except throttle.NoHashSlot as error:
        raise ClientAuthError(
            boinc_errors.ERR_PROJECT_DOWN,
            "The site is busy checking other logins. Try again in a minute; the password was not checked.",
        ) from error


def _clock_time(moment: datetime) -> str:
    return f"{moment.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"
