"""Requests of volunteers to add more computers within a day; operators grant or decline them."""

from __future__ import annotations

import datetime as dt

from django.db import IntegrityError, transaction

from portal.models import HostLimitRequest, User


def request_limit(user: User, hosts_per_day: int, reason: str, now: dt.datetime) -> bool:
    """Store a request. False, and nothing changes, if the user has one waiting; the database allows one."""
    try:
        with transaction.atomic():
            HostLimitRequest.objects.create(user=user, hosts_per_day=hosts_per_day, reason=reason, asked_at=now)
    except IntegrityError:
        return False
    return True


def decide(request_id: int, operator: User, *, grant: bool, now: dt.datetime) -> HostLimitRequest | None:
    """Grant or decline a request that is waiting; None if somebody else has decided. Locks the request, then the user.

    A granted number becomes the account's own limit, until operators change it.
    """
    with transaction.atomic():
        waiting = HostLimitRequest.objects.select_for_update(of=("self",)).filter(pk=request_id, decided_at=None)
        request = waiting.select_related("user").first()
        if request is None:
            return None
        if grant:
            User.objects.filter(pk=request.user_id).update(new_hosts_per_day=request.hosts_per_day)
        request.decided_at, request.decided_by, request.is_granted = now, operator, grant
        request.save(update_fields=["decided_at", "decided_by", "is_granted"])
    return request
