"""Limits against guessing and floods, on client logins by password and on the REST API, counted in Valkey.

There are counters of failures (per address; per account and, separately, per computer, browser or address that the
account knows) and one of all checks per address, each in a fixed window.
Accounts and addresses are counted under hashes, so that no e-mail or IP address is stored. While Valkey is down,
nothing is limited and a warning is logged: volunteers can still attach, and the slow hash still slows down guessing.
"""

from __future__ import annotations

import hashlib
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from ipaddress import IPv6Address, ip_address, ip_network
from math import ceil
from typing import Final

import structlog
from django.conf import settings
from limits import RateLimitItem, RateLimitItemPerSecond
from limits.storage import RedisStorage
from limits.strategies import FixedWindowRateLimiter
from redis import ConnectionPool, RedisError
from redis.backoff import NoBackoff
from redis.retry import Retry

log = structlog.get_logger("throttle")

CHECKS_WINDOW_SECS: Final = 60
API_WINDOW_SECS: Final = 60
NEW_ACCOUNTS_PER_HOUR: Final = 20
NEW_TEAMS_PER_DAY: Final = 5
PROJECT_ACCOUNTS_PER_HOUR: Final = 20
"""Logins and keys at projects that a person can try: nobody can guess passwords there from here."""
LOOK_UPS_PER_HOUR: Final = 60
"""Addresses for alerts that a person can enter; each is looked up, which may take seconds."""
# Slow hashes computed at once in this process, and how long a login waits for a slot, so that logins cannot take all
# threads.
CONCURRENT_CHECKS: Final = 2
HASH_SLOT_WAIT_SECS: Final = 5.0
VALKEY_TIMEOUT_SECS: Final = 1.0

_hash_slots = threading.BoundedSemaphore(CONCURRENT_CHECKS)


@dataclass(frozen=True, slots=True)
class Quota:
    """A window's quota of requests, how many remain, and the seconds until the next window."""

    limit: int
    remaining: int
    wait_secs: int
    is_spent: bool


class Throttled(Exception):
    """There were too many attempts; ``until``: when the next one is admitted (aware, UTC)."""

    def __init__(self, until: datetime) -> None:
        super().__init__(f"throttled until {until:%H:%M:%S} UTC")
        self.until = until


class NoHashSlot(Exception):
    """No hash slot came free within HASH_SLOT_WAIT_SECS."""


def admit(address: str) -> None:
    """Admit an attempt from this address, and count it as a check; raises Throttled."""
    network = network_of(address)
    _refuse_if_spent(_failures(), "address", network)
    checks = RateLimitItemPerSecond(settings.CLIENT_PASSWORD_CHECKS_PER_MINUTE, CHECKS_WINDOW_SECS)
    _take(checks, "checks", network)


def admit_to_account(login: str, device: str) -> None:
    """Admit an attempt to this account's password check; raises Throttled.

    ``device``: what the account knows the caller by (portal/sign_in/known_devices.py). Strangers share one counter.
    """
    _refuse_if_spent(_failures(), "account", f"{login} {device}")


def count_failure(login: str, address: str, device: str) -> None:
    """Count a wrong password, or an unknown account, for the account and the address."""
    try:
        limiter = _limiter()
        limiter.hit(_failures(), "account", _digest(f"{login} {device}"))
        limiter.hit(_failures(), "address", _digest(network_of(address)))
    except RedisError as error:
        _log_unlimited(error)


def admit_new_account(address: str) -> None:
    """Count an account opened from this address; raises Throttled."""
    _take(RateLimitItemPerSecond(NEW_ACCOUNTS_PER_HOUR, 3600), "new-accounts", network_of(address))


def count_api(user_id: int) -> Quota | None:
    """Count a user's request to the REST API; None while nothing is limited."""
    item = RateLimitItemPerSecond(settings.API_REQUESTS_PER_MINUTE, API_WINDOW_SECS)
    try:
        limiter, whom = _limiter(), _digest(str(user_id))
        is_within = limiter.hit(item, "api", whom)
        stats = limiter.get_window_stats(item, "api", whom)
    except RedisError as error:
        _log_unlimited(error)
        return None
    return Quota(item.amount, stats.remaining, max(1, ceil(stats.reset_time - time.time())), not is_within)


def admit_web_rpc(address: str) -> None:
    """Count a web RPC of the project from this address; raises Throttled."""
    _take(RateLimitItemPerSecond(settings.WEB_RPCS_PER_MINUTE, 60), "web-rpc", network_of(address))


def admit_new_team(user_id: int) -> None:
    """Count a team that this user founds; raises Throttled."""
    _take(RateLimitItemPerSecond(NEW_TEAMS_PER_DAY, 86_400), "new-teams", str(user_id))


def admit_look_up(user_id: int) -> None:
    """Count an address for alerts that a user enters; raises Throttled."""
    _take(RateLimitItemPerSecond(LOOK_UPS_PER_HOUR, 3600), "look_ups", str(user_id))


def admit_project_account(user_id: int) -> None:
    """Count a request for an account at a project; raises Throttled."""
    _take(RateLimitItemPerSecond(PROJECT_ACCOUNTS_PER_HOUR, 3600), "project-accounts", str(user_id))


def admit_key(address: str) -> None:
    """Admit a look-up of a client key from this address; raises Throttled after too many wrong ones."""
    _refuse_if_spent(_failures(), "address", network_of(address))


def count_wrong_key(address: str, key: str = "") -> None:
    """Count a wrong key or token for the address, like a wrong password.

    ``key``: a wrong one counts once within the window, however often it comes: computers installed with one mistyped
    token repeat it, and guess nothing.
    """
    network = network_of(address)
    try:
        once = RateLimitItemPerSecond(1, settings.CLIENT_LOGIN_FAILURE_WINDOW_SECS)
        if not key or _limiter().hit(once, "wrong_key", _digest(f"{network} {key}")):
            _limiter().hit(_failures(), "address", _digest(network))
    except RedisError as error:
        _log_unlimited(error)


@contextmanager
def hash_slot() -> Iterator[None]:
    """Hold one of the few slots for slow hashes; raises NoHashSlot if none becomes free in time."""
    if not _hash_slots.acquire(timeout=HASH_SLOT_WAIT_SECS):
        raise NoHashSlot
    try:
        yield
    finally:
        _hash_slots.release()


def network_of(address: str) -> str:
    """What counts as one address: an IPv4 address, or an IPv6 network (/64), as a person or household has."""
    try:
        ip = ip_address(address)
    except ValueError:
        return "unknown"
    if not isinstance(ip, IPv6Address):
        return str(ip)
    return str(ip.ipv4_mapped or ip_network((ip, 64), strict=False))


def _failures() -> RateLimitItem:
    return RateLimitItemPerSecond(settings.CLIENT_LOGIN_FAILURES, settings.CLIENT_LOGIN_FAILURE_WINDOW_SECS)


def _take(item: RateLimitItem, kind: str, whom: str) -> None:
    """Count an attempt, and raise Throttled if there have been too many."""
    _refuse_if_spent(item, kind, whom, counts=True)


def _refuse_if_spent(item: RateLimitItem, kind: str, whom: str, *, counts: bool = False) -> None:
    try:
        limiter, digest = _limiter(), _digest(whom)
        if not (limiter.hit if counts else limiter.test)(item, kind, digest):
            reset_time = limiter.get_window_stats(item, kind, digest).reset_time
            raise Throttled(datetime.fromtimestamp(reset_time, UTC))
    except RedisError as error:
        _log_unlimited(error)


def _log_unlimited(error: RedisError) -> None:
    log.warning("login_limits_off", reason=type(error).__name__)


def _digest(text: str) -> str:
    return hashlib.sha256(text.strip().lower().encode()).hexdigest()[:32]


def _limiter() -> FixedWindowRateLimiter:
    return _limiter_at(str(settings.CACHES["default"]["LOCATION"]))


@lru_cache(maxsize=4)
def _limiter_at(url: str) -> FixedWindowRateLimiter:
    # One try and a short time-out: a login must not hang while Valkey is unreachable.
    pool = ConnectionPool.from_url(url, socket_timeout=VALKEY_TIMEOUT_SECS, retry=Retry(NoBackoff(), 0))
    return FixedWindowRateLimiter(RedisStorage("redis://", connection_pool=pool, key_prefix="limits"))
