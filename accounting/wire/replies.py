"""The account-manager reply (BOINC protocol, AM RPC reply): dataclasses in, the bytes that a client reads out. Pure.

Texts are escaped once, as the client unescapes them once. It reads keys, signatures and the opaque id verbatim, so
these are checked and written as they are. The client's fields have fixed sizes. Texts for display are cut to fit; a key
or URL that does not fit is a ValueError, since a cut one would be wrong. The constant parts of every reply about a
project or a key are rendered once and cached.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from accounting.engine.amounts import KINDS, Totals, format_micro
from portal.languages.messages import Message

MAX_FIELD: Final = 255
"""Bytes that fit into most of the client's fields."""
MAX_MESSAGE: Final = 1000
MAX_SIGNING_KEY: Final = 4095

_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
_LINE_BREAKS = re.compile(r"[\t\r\n]+")
_HEX_LINES = re.compile(r"[0-9A-Fa-f][0-9A-Fa-f\n]*+(?:\.\n)?")
_PREFERENCE = re.compile(r"[a-z][a-z0-9_]{0,63}")
_HOST_TOKEN = re.compile(r"[0-9A-Za-z]{1,64}")

_SEND_TASKS: Final = {"active": "<send_tasks_active/>\n", "all": "<send_tasks_all/>\n"}
_HEAD: Final = '<?xml version="1.0" encoding="UTF-8" ?>\n<acct_mgr_reply>\n'
_TAIL: Final = "</acct_mgr_reply>\n"

Number = int | float


@dataclass(frozen=True, slots=True)
class PreferenceSet:
    """Preference element -> number, and the same for single days (0 is Sunday)."""

    values: Mapping[str, Number]
    days: Mapping[int, Mapping[str, Number]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Preferences:
    """A complete set of preferences: a field that is left out returns to the client's default.

    mod_time in Unix seconds.
    """

    mod_time: int
    general: PreferenceSet
    venues: Mapping[str, PreferenceSet] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class RssFeed:
    """A news feed that the client shows as notices."""

    url: str
    poll_interval_secs: float


@dataclass(slots=True)
class AccountEntry:
    """One <account>: a project that the client should be attached to, and how.

    resource_share None: the project's own. suspend None: leave it as it is. user_total_ec in credits, user_avg_ec in
    credits a day; totals in KINDS' order and units. There is no order to detach at once, which would make the client
    drop its tasks.
    """

    url: str
    url_signature: str = ""
    authenticator: str = ""
    resource_share: float | None = None
    update: bool = False
    dont_request_more_work: bool = False
    detach_when_done: bool = False
    suspend: bool | None = None
    abort_not_started: bool = False
    no_rsc: Iterable[str] = ()
    user_total_ec: float | None = None
    user_avg_ec: float | None = None
    totals: Totals | None = None


@dataclass(slots=True)
class AccountManagerReply:
    """A reply to a successful request.

    signing_key is the public key's text; host_token goes into <opaque>. send_tasks: which of its tasks the client
    should list in the next request, "active" (those that were begun), "all", or "": none.
    """

    name: str
    signing_key: str
    repeat_secs: int
    host_token: str | None = None
    authenticator: str = ""
    dynamic: bool = True
    user_name: str = ""
    team_name: str = ""
    messages: Iterable[Message] = ()
    keywords_yes: Iterable[int] = ()
    keywords_no: Iterable[int] = ()
    global_preferences: Preferences | None = None
    host_venue: str | None = None
    rss_feeds: Iterable[RssFeed] = ()
    no_project_notices: bool = False
    send_tasks: str = ""
    accounts: Iterable[AccountEntry] = ()


def render_reply(reply: AccountManagerReply) -> bytes:
    """Return the reply's bytes. Raises ValueError for a key, URL or number that the client could not hold."""
    parts = [_HEAD, _shown("name", reply.name)]
    if reply.authenticator:
        parts.append(_key("authenticator", reply.authenticator))
    parts.append(_signing_key(reply.signing_key))
    parts.append(f"<repeat_sec>{int(reply.repeat_secs)}</repeat_sec>\n")
    if reply.dynamic:
        parts.append("<dynamic/>\n")
    if reply.user_name:
        parts.append(_shown("user_name", reply.user_name))
    if reply.team_name:
        parts.append(_shown("team_name", reply.team_name))
    _add_options(parts, reply)
    for account in reply.accounts:
        _add_account(parts, account)
    if reply.host_token:
        parts.append(_opaque(reply.host_token))
    parts.append(_TAIL)
    return "".join(parts).encode()


def escape(text: str, max_bytes: int) -> str:
    """Return text for the inside of an element: control characters dropped, & < > escaped, cut to max_bytes.

    The limit applies to the escaped text, since the client's buffer takes it before unescaping; neither a character nor
    an entity is cut in two.
    """
    if text.isalnum() and text.isascii() and len(text) <= max_bytes:
        return text
    text = _CONTROL.sub("", _LINE_BREAKS.sub(" ", text[:max_bytes]))
    escaped = _escape_markup(text)
    if len(escaped) * 4 <= max_bytes:
        return escaped
    while len(escaped.encode()) > max_bytes:
        # No character takes more than the five bytes of "&amp;", so this never cuts too much.
        surplus = len(escaped.encode()) - max_bytes
        text = text[: len(text) - max(1, surplus // 5)]
        escaped = _escape_markup(text)
    return escaped


def _escape_markup(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


@lru_cache(maxsize=4096)
def _shown(tag: str, text: str) -> str:
    """Return an element with a text for display only."""
    return f"<{tag}>{escape(text, MAX_FIELD)}</{tag}>\n"


def _key(tag: str, text: str) -> str:
    """Return an element with a key, which must reach the client unaltered."""
    if len(text) > MAX_FIELD or not text.isascii() or not text.isprintable():
        raise ValueError(f"{tag} is not printable ASCII text of at most {MAX_FIELD} characters")
    return f"<{tag}>{_escape_markup(text)}</{tag}>\n"


@lru_cache(maxsize=16)
def _signing_key(text: str) -> str:
    key = _verbatim("signing_key", text)
    return f"<signing_key>\n{key}</signing_key>\n"


def _verbatim(tag: str, text: str) -> str:
    """Return lines of hexadecimal digits, flush left and with LF only: the client takes them as they are."""
    lines = "\n".join(text.split()) + "\n"
    if len(lines) > MAX_SIGNING_KEY or not _HEX_LINES.fullmatch(lines):
        raise ValueError(f"{tag} is not lines of hexadecimal digits, {MAX_SIGNING_KEY} characters at most")
    return lines


@lru_cache(maxsize=4096)
def _account_head(url: str, url_signature: str) -> str:
    """Render the part that is the same for every client attached to a project."""
    if len(url.encode()) > MAX_FIELD:
        raise ValueError(f"url is longer than {MAX_FIELD} bytes")
    head = f"<account>\n<url>{_escape_markup(url)}</url>\n"
    if url_signature:
        head += f"<url_signature>\n{_verbatim('url_signature', url_signature)}</url_signature>\n"
    return head


def _add_account(parts: list[str], account: AccountEntry) -> None:
    parts.append(_account_head(account.url, account.url_signature))
    if account.authenticator:
        parts.append(_key("authenticator", account.authenticator))
    if account.resource_share is not None:
        parts.append(f"<resource_share>{_number(account.resource_share)}</resource_share>\n")
    if account.update:
        parts.append("<update/>\n")
    if account.dont_request_more_work:
        parts.append("<dont_request_more_work/>\n")
    if account.detach_when_done:
        parts.append("<detach_when_done/>\n")
    if account.suspend is not None:
        parts.append(f"<suspend>{int(account.suspend)}</suspend>\n")
    if account.abort_not_started:
        parts.append("<abort_not_started/>\n")
    parts += [_shown("no_rsc", resource) for resource in account.no_rsc]
    if account.user_total_ec is not None:
        parts.append(f"<user_total_ec>{_number(account.user_total_ec)}</user_total_ec>\n")
    if account.user_avg_ec is not None:
        parts.append(f"<user_avg_ec>{_number(account.user_avg_ec)}</user_avg_ec>\n")
    if account.totals is not None:
        parts.append(_totals(account.totals))
    parts.append("</account>\n")


_TOTALS: Final = "".join([f"<{kind}>{{}}</{kind}>\n" for kind in KINDS]).format


def _totals(totals: Totals) -> str:
    return _TOTALS(*map(format_micro, totals[:4]), *totals[4:])


def _opaque(token: str) -> str:
    if not _HOST_TOKEN.fullmatch(token):
        raise ValueError("host_token is not 1 to 64 letters and digits")
    return f"<opaque><host>{token}</host></opaque>\n"


def _number(value: Number) -> str:
    """Return a finite number as the client reads it: no exponent, no trailing zeros."""
    if not -1e15 < value < 1e15:
        raise ValueError(f"{value} is not a number from -1e15 to 1e15")
    if value == int(value):
        return str(int(value))
    return f"{value:.6f}".rstrip("0").rstrip(".")


def _add_options(parts: list[str], reply: AccountManagerReply) -> None:
    """Add the elements that most replies do not have."""
    for message in reply.messages:
        parts.append(f"<message>{escape(str(message), MAX_MESSAGE)}</message>\n")
    yes = "".join([f"<yes>{int(keyword)}</yes>\n" for keyword in reply.keywords_yes])
    no = "".join([f"<no>{int(keyword)}</no>\n" for keyword in reply.keywords_no])
    if yes or no:
        parts.append(f"<user_keywords>\n{yes}{no}</user_keywords>\n")
    if reply.global_preferences is not None:
        parts.append(_preferences(reply.global_preferences))
    if reply.host_venue is not None:
        parts.append(_shown("host_venue", reply.host_venue))
    feeds = "".join([_feed(feed) for feed in reply.rss_feeds])
    if feeds:
        parts.append(f"<rss_feeds>\n{feeds}</rss_feeds>\n")
    if reply.no_project_notices:
        parts.append("<no_project_notices/>\n")
    if reply.send_tasks:
        parts.append(_SEND_TASKS[reply.send_tasks])


def _feed(feed: RssFeed) -> str:
    return (
        f"<rss_feed>\n{_key('url', feed.url)}<poll_interval>{int(feed.poll_interval_secs)}</poll_interval>\n"
        "</rss_feed>\n"
    )


def _preferences(preferences: Preferences) -> str:
    venues = [
        f'<venue name="{_preference_name(venue)}">\n{_preference_set(chosen)}</venue>\n'
        for venue, chosen in preferences.venues.items()
    ]
    return (
        f"<global_preferences>\n<mod_time>{int(preferences.mod_time)}</mod_time>\n"
        f"{_preference_set(preferences.general)}{''.join(venues)}</global_preferences>\n"
    )


def _preference_set(chosen: PreferenceSet) -> str:
    days = [
        f"<day_prefs>\n<day_of_week>{int(day)}</day_of_week>\n{_preference_values(values)}</day_prefs>\n"
        for day, values in chosen.days.items()
    ]
    return _preference_values(chosen.values) + "".join(days)


def _preference_values(values: Mapping[str, Number]) -> str:
    return "".join([f"<{_preference_name(name)}>{_number(value)}</{name}>\n" for name, value in values.items()])


def _preference_name(name: str) -> str:
    if not _PREFERENCE.fullmatch(name):
        raise ValueError(f"{name!r} is not the name of a preference or venue")
    return name
