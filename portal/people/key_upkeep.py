"""Ends keys of BOINC clients that have long been out of use (portal/people/key_rules.py)."""

from __future__ import annotations

import datetime as dt
from typing import Final

import structlog
from django.conf import settings
from django.db import transaction
from django.db.models import Count, Max, Q
from django.db.models.functions import Coalesce

from portal.models import ClientKey, Host, User
from portal.people import key_rules
from portal.people.accounts import live_keys

log = structlog.get_logger("housekeeping")

HOSTS_PER_RUN: Final = 10_000
"""The computers that one run examines. If there are more, each run examines others."""


def end_outdated_keys(now: dt.datetime) -> int:
    """End keys that were replaced, or are of retired computers, KEYS_KEPT_DAYS after their last use; return how many.

    Safe to repeat and to interrupt. Locks one owner's row at a time, as issuing a key does.
    """
    since = now - dt.timedelta(days=settings.KEYS_KEPT_DAYS)
    ended = 0
    for host in _candidates(since):
        with transaction.atomic():
            User.objects.select_for_update(no_key=True).only("pk").get(pk=host.owner_id)
            host.refresh_from_db(fields=["retired_at"])
            keys = live_keys(host)
            states = key_rules.states_of(keys, host.retired_at, dt.timedelta(seconds=settings.AM_REPEAT_SECS), now)
            outdated = key_rules.outdated(keys, states, host.retired_at, since)
            ended += ClientKey.objects.filter(pk__in=outdated, revoked_at=None).update(revoked_at=now)
    if ended:
        log.info("keys_ended", keys=ended)
    return ended


def _candidates(since: dt.datetime) -> list[Host]:
    """Computers with a key unused since ``since`` that either have a newer one or were retired as long ago."""
    keys = ClientKey.objects.filter(revoked_at=None).exclude(host=None)
    silent = Q(seen_at__lt=since)
    by_host = (
        keys.annotate(seen_at=Coalesce("last_used_at", "created_at"))
        .values("host")
        .annotate(silent=Count("pk", filter=silent), live=Count("pk"), retired_at=Max("host__retired_at"))
        .filter(Q(silent__gt=0) & (Q(live__gt=1) | Q(retired_at__lt=since)))
    )
    hosts = Host.objects.only("pk", "owner", "retired_at").filter(pk__in=by_host.values("host"))
    # At random: in any other order, those whose keys do not end yet would come first again.
    return list(hosts.order_by("?")[:HOSTS_PER_RUN])
