"""Tell clients apart that report with the id of one computer, by their cross-project ids (CPIDs).

A client that gets a new CPID never goes back to its old one, or says at its next report which one it had before. So a
CPID that comes back after another one shows two clients, such as those of a copied data folder. Then the one that came
in between gets a record of its own at its next report. Both go on from what they themselves reported last: until they
are known to be two, their totals are kept at each change of the CPID. What was credited before stays where it is.
"""

from __future__ import annotations

import datetime as dt
from typing import Any, Final

from django.db import transaction

from accounting.ledger.locks import lock_ledgers
from accounting.models import HostClient, HostLedger, HostProject
from accounting.wire.requests import AccountManagerRequest
from portal.computers.identify import HostDescription, new_host
from portal.models import Host, User

_TOTALS: Final = ("reported", "high", "restart", "handed")
_WISHES: Final = ("suspended", "told_suspended", "no_new_work", "excluded", "no_rsc", "drop_waiting")


def own_record(host: Host, request: AccountManagerRequest, now: dt.datetime) -> tuple[Host, bool]:
    """The record of a client that was taken for this computer; and whether it was told apart from it.

    Runs inside the caller's transaction, which has locked the owner's row.
    """
    cpid, current = request.host_cpid, host.host_cpid
    if not cpid or not current or cpid == current:
        return host, False
    lock_ledgers(host.owner_id, host.pk)
    seen = HostClient.objects.filter(host=host, cpid=cpid).first()
    if seen is not None and seen.told_apart_at is not None:
        return _record_of(seen, now), True
    is_another = seen is not None and request.previous_host_cpid != current
    HostClient.objects.update_or_create(
        host=host,
        cpid=current,
        defaults={"books": _books(host), "seen_at": now, "told_apart_at": now if is_another else None},
    )
    if seen is not None:
        if is_another:
            _restore(host, seen.books)
        seen.delete()
    return host, False


def split(owner_id: int, host_id: int, cpid: str, now: dt.datetime) -> bool:
    """Give the client with this CPID a record of its own from its next report on. False: there is none such."""
    with transaction.atomic():
        User.objects.select_for_update(no_key=True).only("pk").get(pk=owner_id)
        lock_ledgers(owner_id, host_id)
        clients = HostClient.objects.filter(host_id=host_id, host__owner_id=owner_id, cpid=cpid, told_apart_at=None)
        return clients.update(told_apart_at=now) == 1


def _record_of(client: HostClient, now: dt.datetime) -> Host:
    """The record of a client that was told apart, made at its first report after that."""
    record = client.record
    while record is not None and record.merged_into is not None:
        record = record.merged_into
    if record is not None:
        return record
    host = client.host
    looks = HostDescription(None, client.cpid, host.domain_name, host.os_name, host.p_vendor, host.p_model)
    record = new_host(host.owner_id, looks, now)
    Host.objects.filter(pk=record.pk).update(venue=host.venue)
    ledger = HostLedger.objects.get(host=host)
    HostLedger.objects.create(host=record, excluded_types=ledger.excluded_types)
    _restore(record, client.books)
    # What it could have done before it was told apart may be credited to the other record.
    HostLedger.objects.filter(host=record).update(level=[0] * 5)
    wishes = {row.project_id: row for row in HostProject.objects.filter(host=host)}
    for row in HostProject.objects.filter(host=record):
        if (like := wishes.get(row.project_id)) is not None:
            HostProject.objects.filter(host=record, project=row.project_id).update(
                **{name: getattr(like, name) for name in _WISHES}
            )
    HostClient.objects.filter(pk=client.pk).update(record=record, books={})
    return record


def _books(host: Host) -> dict[str, Any]:
    """What its present client needs to go on later: the allowance, the last report, and the totals."""
    ledger = HostLedger.objects.get(host=host)
    return {
        "last_at": ledger.last_at.isoformat() if ledger.last_at is not None else None,
        "client_now": ledger.client_now,
        "level": ledger.level,
        "projects": {
            str(row.project_id): {
                **{name: _whole(getattr(row, name)) for name in _TOTALS},
                "listed": row.listed,
            }
            for row in HostProject.objects.filter(host=host)
        },
    }


def _whole(totals: list[Any] | None) -> list[int] | None:
    return None if totals is None else [int(amount) for amount in totals]


def _restore(host: Host, books: dict[str, Any]) -> None:
    """Let the host's client go on from these totals. What was credited, waits or was dropped stays."""
    last_at = books["last_at"]
    HostLedger.objects.filter(host=host).update(
        last_at=dt.datetime.fromisoformat(last_at) if last_at else None,
        client_now=books["client_now"],
        level=books["level"],
    )
    projects = books["projects"]
    # A project that only the other client reported is new to this one.
    HostProject.objects.filter(host=host).exclude(project__in=map(int, projects)).update(
        **dict.fromkeys(_TOTALS), listed=False
    )
    HostProject.objects.bulk_create(
        [HostProject(host=host, project_id=int(id_), **totals) for id_, totals in projects.items()],
        update_conflicts=True,
        unique_fields=["host", "project"],
        update_fields=[*_TOTALS, "listed"],
    )
