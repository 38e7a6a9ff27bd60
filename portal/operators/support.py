"""What support may see of an account and do for its owner; never history, tasks, or the choice of projects.

Each look and each action needs a reason, and is recorded as a security event of the person, whose page of security
events shows that it was support, when, and why. The admin's log shows which operator it was, and also has each search.
The reason of a block is shown to operators only. Locks: each action locks the person's row first.
"""

from __future__ import annotations

import datetime as dt
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from allauth.account.models import EmailAddress
from allauth.mfa.models import Authenticator
from django.conf import settings
from django.contrib.admin.models import CHANGE, LogEntry
from django.contrib.contenttypes.models import ContentType
from django.db import transaction
from django.db.models import Count, Q, QuerySet
from django.utils.formats import date_format
from django.utils.translation import gettext, gettext_lazy

from portal.extras import site_apps
from portal.languages.messages import Message
from portal.languages.sentences import sentence
from portal.models import Account, AccountBlock, ApiToken, ClientKey, Host, SecurityEvent, User
from portal.people import deletion
from portal.people.key_mails import send_words
from portal.people.security_events import BY_SUPPORT, FAILURES, Kind, Source, log, record
from portal.people.staff import is_operator, second_factors
from portal.sign_in.sessions import end_sessions

if TYPE_CHECKING:
    from django_stubs_ext import StrOrPromise

MIN_TERM_CHARS: Final = 3
MAX_TERM_CHARS: Final = 254
MAX_REASON_CHARS: Final = 150
FAILURES_SHOWN_FOR: Final = dt.timedelta(days=7)
MAX_HOSTS_SHOWN: Final = 100
MAX_KEYS_SHOWN: Final = 50
_MAX_BIGINT: Final = 2**63 - 1


class Refused(Exception):
    """The request was refused; the message says why."""


@dataclass(frozen=True, slots=True)
class HostLine:
    host: Host
    problems: list[str]


@dataclass(frozen=True, slots=True)
class AccountOverview:
    """All that support sees of an account."""

    account: User
    block: AccountBlock | None
    is_confirmed: bool
    has_second_factor: bool
    hosts: list[HostLine]
    keys: list[ClientKey]
    # Recent failures: (kind, how often)
    failures: list[tuple[str, int]]

    @property
    def state(self) -> str:
        """The state of the account, in words."""
        if self.block is not None:
            return gettext("blocked")
        if not self.account.is_active:
            return gettext("closed")
        return gettext("to be deleted") if self.account.deletion_asked_at is not None else gettext("open")


def find(term: str) -> QuerySet[User]:
    """Find accounts by the beginning of the address, or by a computer's name, number, host id or CPID, or the first
    characters of a client key or an API token. Terms of fewer than three characters find nothing, unless they are
    numbers.
    """
    term = term.strip()
    if len(term) > MAX_TERM_CHARS or "\0" in term or (len(term) < MIN_TERM_CHARS and not term.isdecimal()):
        return Account.objects.none()
    hosts = Q(domain_name__iexact=term) | Q(given_name__iexact=term) | Q(host_cpid=term.lower()) | Q(token=term.lower())
    if term.isascii() and term.isdecimal() and int(term) <= _MAX_BIGINT:
        hosts |= Q(pk=int(term))
    owners = Q(pk__in=Host.objects.filter(hosts).values("owner"))
    if len(term) >= MIN_TERM_CHARS:
        owners |= Q(email__startswith=term.lower())
        owners |= Q(pk__in=ClientKey.objects.filter(hint__startswith=term.lower()).values("user"))
    if len(term) > len("cobble_"):
        owners |= Q(pk__in=ApiToken.objects.filter(hint__startswith=term).values("user"))
    return Account.objects.filter(owners).order_by("email")


def note_search(by: User, term: str, nfound: int, source: Source) -> None:
    """Record for operators that support searched, and for what kind of thing; never the thing itself."""
    LogEntry.objects.create(
        user=by,
        content_type=ContentType.objects.get_for_model(Account, for_concrete_model=False),
        action_flag=CHANGE,
        change_message=Message("support_searched", what=Message(_kind_of(term.strip())), count=nfound).packed(),
    )
    log.info("security_event", kind="support_searched", user=by.pk, address=source.address)


def _kind_of(term: str) -> str:
    """The code of what the term seems to be."""
    if "@" in term:
        return "searched_email"
    if term.isdecimal():
        return "searched_number"
    if term.startswith("cobble_"):
        return "searched_token"
    if re.fullmatch(r"[0-9a-fA-F]{32}", term):
        return "searched_id"
    return "searched_something"


def look(user: User, reason: str) -> None:
    """Record that support looks at this account, for its owner to see."""
    record(user, Kind.SUPPORT_LOOKED, BY_SUPPORT, reason)


def read_overview(user: User, now: dt.datetime) -> AccountOverview:
    """Read what support sees. Six statements, and those of other apps."""
    problems: dict[int, list[str]] = {}
    for host_problem in (problem for app in site_apps() for problem in app.host_problems(user, now)):
        words = {"problem": host_problem.text, "day": date_format(host_problem.last_at, "DATE_FORMAT")}
        problems.setdefault(host_problem.host_id, []).append(gettext("%(problem)s (last on %(day)s)") % words)
    hosts = Host.objects.filter(owner=user, merged_into=None).order_by("-last_contact_at", "pk")
    failed = SecurityEvent.objects.filter(user=user, kind__in=FAILURES, at__gte=now - FAILURES_SHOWN_FOR)
    counts = failed.values_list("kind").annotate(count=Count("pk")).order_by("kind")
    return AccountOverview(
        account=user,
        block=AccountBlock.objects.select_related("blocked_by").filter(user=user).first(),
        is_confirmed=EmailAddress.objects.filter(user=user, email=user.email, verified=True).exists(),
        has_second_factor=second_factors(user).exists(),
        hosts=[
            HostLine(host, [*map(sentence, host.hardware_faults), *problems.get(host.pk, ())])
            for host in hosts[:MAX_HOSTS_SHOWN]
        ],
        keys=list(ClientKey.objects.filter(user=user).select_related("host")[:MAX_KEYS_SHOWN]),
        failures=[(str(Kind(kind).label), number) for kind, number in counts],
    )


def remove_factors(user: User, by: User, reason: str) -> bool:
    """Remove a lost second factor: all devices, passkeys and recovery codes. The owner is mailed at once.

    Returns whether the mail was sent. Raises Refused.
    """
    with transaction.atomic():
        _lock(user, by)
        removed: int = Authenticator.objects.filter(user=user).delete()[0]
        if not removed:
            raise Refused(gettext("This account has no second factor."))
        record(user, Kind.FACTOR_REMOVED, BY_SUPPORT, reason)
    return _tell(user, gettext_lazy("The second factor of your account was removed"), "factor_removed", reason)


def block(user: User, by: User, reason: str) -> bool:
    """Close the account to its owner and its computers until `unblock`; keys and tokens stay. Raises Refused."""
    with transaction.atomic():
        locked = _lock(user, by)
        if user.pk == by.pk:
            raise Refused(gettext("This is your own account."))
        if not locked.is_active:
            raise Refused(gettext("This account is already blocked or closed."))
        AccountBlock.objects.create(user=user, reason=reason, blocked_by=by)
        User.objects.filter(pk=user.pk).update(is_active=False)
        end_sessions(user)
        record(user, Kind.BLOCKED, BY_SUPPORT)
    return True


def unblock(user: User, by: User, reason: str) -> bool:
    """Open a blocked account again: everything works as before. Raises Refused."""
    del reason  # recorded in the admin's log
    with transaction.atomic():
        _lock(user, by)
        if not AccountBlock.objects.filter(user=user).delete()[0]:
            raise Refused(gettext("This account is not blocked."))
        User.objects.filter(pk=user.pk).update(is_active=True)
        record(user, Kind.UNBLOCKED, BY_SUPPORT)
    return True


def copy_data(user: User, by: User, reason: str) -> bool:
    """Ask for a copy of the person's data. Only they can fetch it, and are mailed where. Raises Refused."""
    with transaction.atomic():
        if not _lock(user, by).is_active:
            raise Refused(gettext("This account is blocked or closed: the person could not download the copy."))
        if all(app.ask_data_copy(user) is None for app in site_apps()):
            raise Refused(gettext("This installation makes no copies of data."))
        record(user, Kind.COPY_ASKED, BY_SUPPORT, reason)
    return _tell(user, gettext_lazy("A copy of your data is being made"), "data_copy", reason)


def erase(user: User, by: User, reason: str) -> bool:
    """Schedule the account's deletion after the grace period, as its owner could; signing in cancels it.

    Somebody blocked cannot sign in, and is told to write. Raises Refused.
    """
    with transaction.atomic():
        is_closed = not _lock(user, by).is_active
        try:
            due_at = deletion.ask_deletion(user)
        except deletion.OperatorCannotLeave:
            raise Refused(gettext("This is an operator: take away that right first.")) from None
        record(user, Kind.DELETION_ASKED, BY_SUPPORT, reason)
    return _tell(
        user,
        gettext_lazy("Your account will be deleted"),
        "deletion_asked",
        reason,
        due=due_at,
        is_closed=is_closed,
    )


def _lock(user: User, by: User) -> User:
    """Lock the person's row. An operator's account is worth their rights: only superusers may act on it."""
    locked = User.objects.select_for_update(no_key=True).get(pk=user.pk)
    if is_operator(locked) and not by.is_superuser:
        raise Refused(gettext("This is an operator: only superusers can change such accounts."))
    return locked


def _tell(user: User, subject: StrOrPromise, template: str, reason: str, **words: object) -> bool:
    context = {
        "name": user.display_name,
        "reason": reason,
        "site_name": settings.SITE_NAME,
        "site_url": settings.SITE_URL,
        **words,
    }
    return send_words(user, subject, template, context)
