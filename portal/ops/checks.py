"""System checks of the settings: values that cannot work together, or that are unsafe in production.

portal/environment.py refuses single values outside their limits when it reads them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from ipaddress import ip_network
from pathlib import Path
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

from django.apps import AppConfig
from django.conf import settings
from django.core import checks
from django.core.checks import CheckMessage
from django.db import Error, connection

from portal import environment
from portal.databases.clocks import WARN_SECS, ahead_secs
from portal.wire import signing

MIN_SECRET_CHARS = 32
_LOOPBACK = ("localhost", "::1")
# Clients and the list of projects limit the address of the site's own project to 255 characters.
MAX_SITE_URL_CHARS = 200


@checks.register()
def check_site_url(app_configs: Sequence[AppConfig] | None, **_: Any) -> list[CheckMessage]:
    """Check the form of SITE_URL: clients keep the address that they attached to, so it must have the form they use."""
    url = settings.SITE_URL
    messages: list[CheckMessage] = []
    if len(url) > MAX_SITE_URL_CHARS or not re.fullmatch(
        r"https?://[a-z0-9-]+(\.[a-z0-9-]+)+(:\d{1,5})?/([^/?#\s]+/)*", url
    ):
        messages.append(
            checks.Error(
                f"SITE_URL {url!r} is not an address that BOINC clients can attach to.",
                hint="Give http:// or https://, a host in lower case with a dot in it, and a slash at the end: at most"
                f" {MAX_SITE_URL_CHARS} characters.",
                id="cobblestone.E001",
            )
        )
        return messages
    host = urlsplit(url).hostname or ""
    if not any(_allows(pattern, host) for pattern in settings.ALLOWED_HOSTS):
        messages.append(
            checks.Error(
                f"ALLOWED_HOSTS does not have {host!r}, the host of SITE_URL: all pages would be refused.",
                hint="Add it to ALLOWED_HOSTS, or leave ALLOWED_HOSTS out.",
                id="cobblestone.E002",
            )
        )
    return messages


def _allows(pattern: str, host: str) -> bool:
    return pattern == "*" or pattern == host or (pattern.startswith(".") and host.endswith(pattern))


@checks.register()
def check_client_versions(app_configs: Sequence[AppConfig] | None, **_: Any) -> list[CheckMessage]:
    """Report limits that exclude every client: the site would look like a project without work."""
    least, greatest = settings.MIN_CLIENT_VERSION, settings.MAX_CLIENT_VERSION
    if not (least and greatest) or _version(least) <= _version(greatest):
        return []
    return [
        checks.Error(
            f"MIN_CLIENT_VERSION ({least}) is more than MAX_CLIENT_VERSION ({greatest}).",
            hint="No computer would get work.",
            id="cobblestone.E007",
        )
    ]


def _version(text: str) -> tuple[int, ...]:
    return (*map(int, text.split(".")), 0)[:3]


@checks.register()
def check_repeat_intervals(app_configs: Sequence[AppConfig] | None, **_: Any) -> list[CheckMessage]:
    """Check that the first contact after an attachment, which brings the resource shares, is not later than others."""
    if settings.AM_REPEAT_SECS_AFTER_ATTACH <= settings.AM_REPEAT_SECS:
        return []
    return [
        checks.Error(
            f"AM_REPEAT_SECS_AFTER_ATTACH ({settings.AM_REPEAT_SECS_AFTER_ATTACH}) is more than AM_REPEAT_SECS "
            f"({settings.AM_REPEAT_SECS}).",
            hint="A client learns its resource shares at the second contact: make it soon, such as 120 seconds.",
            id="cobblestone.E003",
        )
    ]


@checks.register()
def check_signing_keys(app_configs: Sequence[AppConfig] | None, **_: Any) -> list[CheckMessage]:
    """Check the keys: clients never replace a public one, and a private one is needed only for signing."""
    private: signing.PrivateKey | None = None
    public: signing.PublicKey | None = None
    try:
        if settings.AM_SIGNING_KEY.exists():
            private = signing.parse_private_key(_read_key(settings.AM_SIGNING_KEY))
        if settings.AM_SIGNING_KEY_PUBLIC.exists():
            public = signing.parse_public_key(_read_key(settings.AM_SIGNING_KEY_PUBLIC))
    except (OSError, UnicodeDecodeError, signing.SigningError) as error:
        return [
            checks.Error(
                f"A signing key cannot be used: {error}",
                hint="AM_SIGNING_KEY and AM_SIGNING_KEY_PUBLIC name files with 1024-bit keys as BOINC writes them.",
                id="cobblestone.E004",
            )
        ]
    if private and public and signing.public_key_text(private) != signing.public_key_text(public):
        return [
            checks.Error(
                f"{settings.AM_SIGNING_KEY} and {settings.AM_SIGNING_KEY_PUBLIC} are not a pair.",
                hint="Clients refuse signatures that do not match the key that they received when they attached.",
                id="cobblestone.E005",
            )
        ]
    if public and settings.CODE_SIGNING_KEY_PUBLIC.exists():
        with suppress(OSError, UnicodeDecodeError, signing.SigningError):
            code_key = signing.parse_public_key(_read_key(settings.CODE_SIGNING_KEY_PUBLIC))
            if signing.public_key_text(code_key) == signing.public_key_text(public):
                return [
                    checks.Error(
                        "AM_SIGNING_KEY_PUBLIC and CODE_SIGNING_KEY_PUBLIC are the same key.",
                        hint="Give each its own: clients could take the signature of one purpose for another.",
                        id="cobblestone.E006",
                    )
                ]
    return []


def _read_key(path: Path) -> str:
    return path.read_text(encoding="ascii")


@checks.register()
def check_pool(app_configs: Sequence[AppConfig] | None, **_: Any) -> list[CheckMessage]:
    """Check the pool: threads may outnumber connections, but not by so much that they wait too long for one."""
    threads = environment.integer("GRANIAN_BLOCKING_THREADS", 1, low=1, high=10_000)
    if threads <= 8 * settings.DB_POOL_MAX:
        return []
    return [
        checks.Warning(
            f"{threads} web threads share {settings.DB_POOL_MAX} database connections.",
            hint="Raise DB_POOL_MAX (and PostgreSQL's max_connections), or lower GRANIAN_BLOCKING_THREADS.",
            id="cobblestone.W006",
        )
    ]


class _Setting(NamedTuple):
    """A setting that is handy on a private machine and wrong on a public site. ``message`` may name `{hosts}`."""

    id: str
    is_wrong: Callable[[], bool]
    message: str
    hint: str


_OF_PRODUCTION: Final = (
    _Setting(
        id="cobblestone.W007",
        is_wrong=lambda: not settings.SITE_URL.startswith("https://"),
        message="SITE_URL does not begin with https://: passwords and keys would travel in the clear.",
        hint="Clients keep the address that they attached to, so decide before the first one does.",
    ),
    _Setting(
        id="cobblestone.W012",
        is_wrong=lambda: settings.SECURE_SSL_REDIRECT and not settings.BEHIND_PROXY,
        message="BEHIND_PROXY is off: behind a proxy that ends TLS, every page would redirect to itself for ever.",
        hint="Set BEHIND_PROXY=1, and see that the proxy sets X-Forwarded-Proto and X-Forwarded-For.",
    ),
    _Setting(
        id="cobblestone.W014",
        is_wrong=lambda: not settings.STAFF_SECOND_FACTOR,
        message="STAFF_SECOND_FACTOR is off: an operator's password alone opens the admin.",
        hint="Leave STAFF_SECOND_FACTOR out; it is on by default for https.",
    ),
    _Setting(
        id="cobblestone.W032",
        is_wrong=lambda: settings.DEMO,
        message="DEMO is on: a site without accounts gets a volunteer whose password is in the sources.",
        hint="Set DEMO=no.",
    ),
    _Setting(
        id="cobblestone.W031",
        is_wrong=lambda: settings.CLIENT_PASSWORD_ALONE,
        message="CLIENT_PASSWORD_ALONE is on: a BOINC client gets a key of an account with a second factor.",
        hint="Leave CLIENT_PASSWORD_ALONE out: people with a second factor then use login tokens in BOINC.",
    ),
    _Setting(
        id="cobblestone.W027",
        is_wrong=lambda: bool({"*", "localhost", "127.0.0.1"} & {*settings.ALLOWED_HOSTS}),
        message="ALLOWED_HOSTS has names that are not this site's alone: {hosts}.",
        hint="Leave ALLOWED_HOSTS out: the host of SITE_URL is enough.",
    ),
    _Setting(
        id="cobblestone.W026",
        is_wrong=lambda: not settings.STAFF_IDLE_SECS,
        message="STAFF_IDLE_SECS is 0: an operator's idle browser stays signed in for two weeks.",
        hint="Leave STAFF_IDLE_SECS out; it is an hour by default.",
    ),
    _Setting(
        id="cobblestone.W009",
        is_wrong=lambda: settings.SECRET_KEY == settings.ACCOUNT_KEY_SECRET,
        message="ACCOUNT_KEY_SECRET is the same as SECRET_KEY.",
        hint="Give it a value of its own: SECRET_KEY may be changed, ACCOUNT_KEY_SECRET may not.",
    ),
)


@checks.register(deploy=True)
def check_production(app_configs: Sequence[AppConfig] | None, **_: Any) -> list[CheckMessage]:
    """Settings that are handy on a private machine and wrong on a public site."""
    hosts = ", ".join(settings.ALLOWED_HOSTS)
    wrong: list[CheckMessage] = [
        checks.Warning(setting.message.format(hosts=hosts), hint=setting.hint, id=setting.id)
        for setting in _OF_PRODUCTION
        if setting.is_wrong()
    ]
    # Django checks SECRET_KEY itself.
    return wrong + [
        checks.Warning(
            f"{name} has fewer than {MIN_SECRET_CHARS} characters.",
            hint='Make one: python -c "import secrets; print(secrets.token_urlsafe(48))"',
            id="cobblestone.W008",
        )
        for name in ("ACCOUNT_KEY_SECRET", "CERTIFICATE_SECRET")
        if len(getattr(settings, name)) < MIN_SECRET_CHARS
    ]


@checks.register(checks.Tags.database, deploy=True)
def check_two_persons(
    app_configs: Sequence[AppConfig] | None, databases: Sequence[str] | None = None, **_: Any
) -> list[CheckMessage]:
    """Warn of one person holding the most dangerous rights where a second could confirm. Asks the database."""
    from portal.models import User

    if settings.TWO_PERSONS or not databases:
        return []
    nsuperusers = User.objects.filter(is_superuser=True, is_active=True).count()
    if nsuperusers < 2:
        return []
    return [
        checks.Warning(
            f"TWO_PERSONS is off, although {nsuperusers} people are superusers.",
            hint="Set TWO_PERSONS=1: a release, a new key, more rights or another address then need a second person.",
            id="cobblestone.W029",
        )
    ]


@checks.register(deploy=True)
def check_private_keys(app_configs: Sequence[AppConfig] | None, **_: Any) -> list[CheckMessage]:
    """Warn of private keys: anyone who breaks into a server that signs can run any program on volunteers' computers."""
    return [
        checks.Warning(
            f"The private key of {name} lies on this server: {path}",
            hint="Move it to a machine without a network, and sign there: docs/how-to/deploy.md, docs/how-to/jobs.md.",
            id="cobblestone.W013",
        )
        for name, path in (("AM_SIGNING_KEY", settings.AM_SIGNING_KEY), ("CODE_SIGNING_KEY", settings.CODE_SIGNING_KEY))
        if path.exists()
    ]


@checks.register(deploy=True)
def check_shared(app_configs: Sequence[AppConfig] | None, **_: Any) -> list[CheckMessage]:
    """Warn of secrets made here: each machine would make its own, and refuse what another one signed or encrypted."""
    if not settings.SEVERAL_MACHINES:
        return []
    own = [f"the secret {name}" for name in settings.SECRETS_MADE_HERE]
    for name in ("AM_SIGNING_KEY_PUBLIC", "CODE_SIGNING_KEY_PUBLIC"):
        if getattr(settings, name).is_relative_to(settings.VAR_DIR):
            own.append(f"the key {name}")
    return [
        checks.Warning(
            f"The site runs on several machines, and {what} is in this machine's own folder, {settings.VAR_DIR}.",
            hint='Give all machines the same one: docs/how-to/deploy.md, "What is where".',
            id="cobblestone.W021",
        )
        for what in own
    ]


@checks.register(deploy=True)
def check_services(app_configs: Sequence[AppConfig] | None, **_: Any) -> list[CheckMessage]:
    """Check what a public site needs: a mail server, a password for Valkey, and a key to sign addresses with."""
    messages: list[CheckMessage] = []
    counts = settings.EMAIL_BACKEND == "portal.ops.mail_backend.CountingBackend"
    backend = settings.COUNTED_EMAIL_BACKEND if counts else settings.EMAIL_BACKEND
    if backend.endswith(("console.EmailBackend", "dummy.EmailBackend")):
        messages.append(
            checks.Warning(
                "E-mails are printed, not sent: nobody can confirm an address or reset a password.",
                hint="Set EMAIL_URL, as in smtp+tls://user:password@mail.example.org:587.",
                id="cobblestone.W010",
            )
        )
    if host := _host_without_tls(settings.DATABASES["default"]):
        messages.append(
            checks.Warning(
                f"DATABASE_URL uses {host} without checking who answers: others on the way can read along.",
                hint="Add ?sslmode=verify-full&sslrootcert=…: docs/how-to/high-availability.md.",
                id="cobblestone.W028",
            )
        )
    for name, url in (("BROKER_URL", settings.BROKER_URL), ("CACHE_URL", settings.CACHE_URL)):
        parts = urlsplit(url)
        if parts.hostname and not parts.password:
            messages.append(
                checks.Warning(
                    f"{name} has no password: every program that reaches that port can queue tasks and read the cache.",
                    hint="Set requirepass in Valkey's configuration and the password in the URL, or use a Unix socket.",
                    id="cobblestone.W015",
                )
            )
    if not settings.AM_SIGNING_KEY_PUBLIC.exists():
        messages.append(
            checks.Warning(
                f"There is no public signing key at {settings.AM_SIGNING_KEY_PUBLIC}: no client can attach.",
                hint="Put it there, or let manage.py prepare make a pair of keys.",
                id="cobblestone.W011",
            )
        )
    return messages


@checks.register(deploy=True)
def check_clock(app_configs: Sequence[AppConfig] | None, **_: Any) -> list[CheckMessage]:
    """Compare this machine's clock with the database's, if that can be reached."""
    try:
        with connection.cursor() as cursor:
            secs = ahead_secs(cursor)
    except Error:
        return []
    if abs(secs) <= WARN_SECS:
        return []
    return [
        checks.Warning(
            f"This machine's clock is {abs(secs):.1f} s {'ahead of' if secs > 0 else 'behind'} the database's.",
            hint="Run chrony on every machine of the site: docs/how-to/high-availability.md.",
            id="cobblestone.W030",
        )
    ]


def _host_without_tls(database: Mapping[str, Any]) -> str:
    """The host of a database on another machine that is used without verified TLS; empty if there is none."""
    if database.get("OPTIONS", {}).get("sslmode") in ("verify-ca", "verify-full"):
        return ""
    host = str(database.get("HOST", ""))
    return "" if host.startswith(("/", "127.")) or host in _LOOPBACK else host


@checks.register(deploy=True)
def check_fetching(app_configs: Sequence[AppConfig] | None, **_: Any) -> list[CheckMessage]:
    """Warn that projects' addresses could reach PostgreSQL, Valkey, or secrets that clouds serve at an address."""
    inside = [ip_network(text) for text in ("127.0.0.0/8", "169.254.0.0/16", "::1/128", "fe80::/10")]
    return [
        checks.Warning(
            f"FETCH_ALLOWED_NETWORKS has {network}, which includes addresses of this machine itself.",
            hint="Name the networks of your own projects only.",
            id="cobblestone.W020",
        )
        for network in settings.FETCH_ALLOWED_NETWORKS
        if any(network.version == inner.version and network.overlaps(inner) for inner in inside)
    ]
