"""Tell apart clients that report with the id of one computer, by their cross-project ids (CPIDs) or project numbers.

A client that gets a new CPID never goes back to its old one, or states its previous one at its next report. So a CPID
that comes back after another one shows two clients, such as those of a copied data folder. Then the one whose CPID came
later gets its own record at its next report. Both continue from their own last reports: until they are known to be two,
their totals are stored at each change of the CPID. Credit already given stays where it is. The allowance belongs to the
record: it is never given twice.

A project that finds a copied folder gives one of the two clients a new number, and that client then makes a new CPID
from its network address and the path of its folder. If it is the first of the two, this is the CPID that both have
already. So a client's number at a project serves the same purpose as its CPID.
"""

from __future__ import annotations

import datetime as dt
import re
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple

from django.db import transaction
from django.db.models import F, Q

from accounting.engine.ledger import STALE_WITHIN_US
from accounting.ledger.locks import lock_ledgers
from accounting.models import HostClient, HostLedger, HostProject, Project
from accounting.rpc.description import appearance_of
from accounting.wire.requests import AccountManagerRequest
from portal.computers.identify import SAME_NAME_AFTER, HostDescription, find_host, new_host
from portal.models import Host, User

MAX_CLIENTS: Final = 100
"""The most CPIDs remembered per computer; the latest ones count."""
FORGOTTEN_AFTER: Final = dt.timedelta(days=180)

_NUMBER_KEY: Final = re.compile(r".* (\d{1,18}) (\d{1,18})", re.DOTALL)
_TOTALS: Final = ("reported", "handed")
_NO_TOTALS: Final[dict[str, Any]] = {"reported": None, "handed": None, "restart": None, "earlier": [], "broken": []}
_WISHES: Final = ("suspended", "told_suspended", "no_new_work", "excluded", "no_rsc", "drop_waiting")


class IdChange(NamedTuple):
    """The CPID of a client, its previous one as it states it, and that of the record's present client.

    Where CPIDs are equal, numbers at a project stand for them (``number_key``).
    """

    key: str
    previous: str
    current: str


class Recognised(NamedTuple):
    """The record of a client; ``goes_on``: it continues from its own totals, whatever id it sends.

    ``is_late``: this is an old message, from before the client's CPID or number changed. ``own_last_at``: when it last
    reported, if another client has reported as this computer since.
    """

    host: Host
    is_new: bool = False
    goes_on: bool = False
    own_last_at: dt.datetime | None = None
    is_late: bool = False


def recognise(
    user_id: int,
    request: AccountManagerRequest,
    hostids: Mapping[int, int],
    now: dt.datetime,
    join_token_id: int | None,
) -> Recognised:
    """Return the record of this client of the user, created if there is none. ``hostids``: its numbers at projects, by
    our id. ``join_token_id``: that of the token that it sent, if any.

    Runs inside the caller's transaction. Locks the user's row, and the record's ledger if its CPID is a different one.
    """
    appearance = appearance_of(request)
    host = find_host(user_id, appearance, now, join_token_id)
    if host is None and join_token_id is None:
        # Computers installed from one image have its numbers and ids.
        host = _renamed(user_id, appearance, request.previous_host_cpid, hostids)
    host = host or _reported_before(user_id, appearance, now)
    is_new = host is None
    host = host or new_host(user_id, appearance, now, join_token_id=join_token_id)
    if not is_new and request.host_token is None:
        host = _with_same_numbers(host, hostids)
    if is_new or not request.host_cpid or not host.host_cpid:
        return Recognised(host, is_new)
    lock_ledgers(host.owner_id, host.pk)
    change = _change(host, request, hostids)
    if change is None:
        return Recognised(host)
    return _after(change, host, request, _at_own_project(host, hostids), now)


def _with_same_numbers(host: Host, hostids: Mapping[int, int]) -> Host:
    """Of the owner's records with this CPID, return that whose client had most of these numbers at projects, else
    ``host``.
    """
    rows = HostProject.objects.filter(
        host__owner=host.owner_id, host__merged_into=None, host__host_cpid=host.host_cpid, project__in=hostids
    ).exclude(host__host_cpid="")
    same = Counter(row.host_id for row in rows if _has_number(row, hostids))
    if not same or same[host.pk] == max(same.values()):
        return host
    return Host.objects.get(pk=max(same, key=lambda pk: (same[pk], pk)))


def _renamed(user_id: int, appearance: HostDescription, previous_cpid: str, hostids: Mapping[int, int]) -> Host | None:
    """Return the owner's record with this CPID and hardware under another name, if there is further evidence: the
    client had this CPID at its last contact here, or has a number at a project that the record's client has.
    """
    if not (appearance.host_cpid and appearance.os_name and appearance.p_model):
        return None
    alike = Host.objects.filter(
        owner_id=user_id,
        merged_into=None,
        host_cpid=appearance.host_cpid,
        os_name=appearance.os_name,
        p_vendor=appearance.p_vendor,
        p_model=appearance.p_model,
    ).order_by("-last_contact_at")
    if previous_cpid == appearance.host_cpid:
        return alike.first()
    rows = HostProject.objects.filter(host__in=alike, project__in=hostids).select_related("host")
    same = [row.host for row in rows.order_by("-host__last_contact_at") if _has_number(row, hostids)]
    return same[0] if same else None


def _has_number(row: HostProject, hostids: Mapping[int, int]) -> bool:
    return bool(row.state.get("hostid") == hostids[row.project_id])


def _reported_before(user_id: int, appearance: HostDescription, now: dt.datetime) -> Host | None:
    """Return the computer as which a client with this CPID reported before another one did; not under another name,
    unless it has been silent (`portal.computers.identify`).
    """
    if not (appearance.host_cpid and appearance.os_name and appearance.p_model):
        return None
    clients = HostClient.objects.filter(
        Q(host__domain_name__in=("", appearance.domain_name)) | Q(host__last_contact_at__lt=now - SAME_NAME_AFTER),
        host__owner_id=user_id,
        host__merged_into=None,
        cpid=appearance.host_cpid,
        host__os_name=appearance.os_name,
        host__p_vendor=appearance.p_vendor,
        host__p_model=appearance.p_model,
    )
    client = clients.select_related("host").order_by("-seen_at").first()
    return client.host if client is not None else None


def _change(host: Host, request: AccountManagerRequest, hostids: Mapping[int, int]) -> IdChange | None:
    """Return the difference from the record's present client, if any."""
    if request.host_cpid != host.host_cpid:
        return IdChange(request.host_cpid, request.previous_host_cpid, host.host_cpid)
    # A single client may get another number, or an earlier one, with a new attachment to the project.
    listed = HostProject.objects.filter(host=host, project__in=hostids, listed=True).order_by("project_id")
    numbers = [(row.project_id, row.state.get("hostid") or hostids[row.project_id]) for row in listed]
    changes = [
        IdChange(number_key(host, project, hostids[project]), "", number_key(host, project, number))
        for project, number in numbers
        if number != hostids[project]
    ]
    clients = set(HostClient.objects.filter(host=host, cpid__in=[change.key for change in changes]).values_list("cpid"))
    return next((change for change in changes if (change.key,) in clients), changes[0] if changes else None)


def number_key(host: Host, project_id: int, number: int) -> str:
    """Return the substitute for the CPID of a client that shares its CPID with another, but has its own number at a
    project.
    """
    return f"{host.host_cpid} {project_id} {number}"


def number_of(key: str) -> tuple[int, int] | None:
    """Return the project and the client's number there for which this key stands; None: it is a CPID."""
    match = _NUMBER_KEY.fullmatch(key)
    return (int(match[1]), int(match[2])) if match else None


def keys_of_present(host: Host, rows: Iterable[HostProject]) -> set[str]:
    """Return all keys of the client that reported last; ``rows``: the host's."""
    numbers = {row.project_id: row.state.get("hostid") for row in rows}
    return {host.host_cpid, *(number_key(host, id_, number) for id_, number in numbers.items() if number)}


def _after(
    change: IdChange, host: Host, request: AccountManagerRequest, own: Host | None, now: dt.datetime
) -> Recognised:
    """Return the record of a client that was taken for this computer, but may be another one: perhaps ``own``."""
    rows = HostClient.objects.filter(host=host, cpid__in=change)
    clients = {client.cpid: client for client in rows}
    cpid = request.host_cpid
    for key in (change.key, change.previous):
        if key != change.current and key in clients and clients[key].told_apart_at is not None:
            return _record_of(clients[key], cpid, own, now)
    seen, present = clients.get(change.key), clients.get(change.current)
    if seen is not None and _is_late(request, seen, now):
        return Recognised(host, is_late=True)
    if own is not None:
        return _record_of(seen or _keep_books(host, change.key, now, told_apart_at=now), cpid, own, now)
    if seen is None or change.previous == change.current:
        _keep_books(host, change.current, now, told_apart_at=None)
        if seen is not None:
            _count_once(host, seen.books)
        return Recognised(host)
    if present is not None and present.pk < seen.pk:
        return _record_of(seen, cpid, own, now)
    _keep_books(host, change.current, now, told_apart_at=now)
    return _restored(host, seen)


def _is_late(request: AccountManagerRequest, client: HostClient, now: dt.datetime) -> bool:
    """Whether this client already sent as much or more before another id replaced it (accounting rules, rule 1).

    Otherwise a repeated request would show two clients where the id of a single one has changed.
    """
    client_now = client.books["client_now"]
    last_at = HostLedger.objects.get(host=client.host_id).last_at
    if client_now is None or request.client_now is None or last_at is None:
        return False
    return request.client_now <= client_now and abs(now - last_at) < dt.timedelta(microseconds=STALE_WITHIN_US)


def _count_once(host: Host, books: dict[str, Any]) -> None:
    """Prevent totals that were reported under an earlier CPID from counting again.

    A client that goes back to it has at least these totals, in the host's rows. A copy may have more, if the reply that
    would have told the two apart was lost.
    """
    for row in HostProject.objects.filter(host=host, reported__isnull=False):
        before = books["projects"].get(str(row.project_id), {}).get("reported")
        if before is not None and any(own < other for own, other in zip(row.reported or (), before, strict=True)):
            row.reported = [max(own, other) for own, other in zip(row.reported or (), before, strict=True)]
            row.save(update_fields=["reported"])


def _keep_books(host: Host, key: str, now: dt.datetime, told_apart_at: dt.datetime | None) -> HostClient:
    """Store the totals of the host's present client, because another one, or another CPID, replaces it.

    The rows are created as each CPID is replaced, so the first one has the CPID that came first, and so on.
    """
    client, _ = HostClient.objects.update_or_create(
        host=host,
        cpid=key,
        defaults={"books": _books(host), "seen_at": now, "told_apart_at": told_apart_at, "record": None},
    )
    newest = HostClient.objects.filter(host=host).order_by("-seen_at", "-pk").values_list("pk", flat=True)
    HostClient.objects.filter(host=host).exclude(pk__in=list(newest[:MAX_CLIENTS])).delete()
    return client


def forget_old(now: dt.datetime) -> int:
    """Forget clients not seen for long, except the present one of a computer with others; return how many."""
    since = now - FORGOTTEN_AFTER
    old = HostClient.objects.filter(seen_at__lt=since).exclude(
        cpid=F("host__host_cpid"), host__other_clients__seen_at__gte=since
    )
    return old.delete()[0]


def split(owner_id: int, host_id: int, cpid: str, now: dt.datetime) -> bool:
    """Give the client with this CPID its own record from its next report on. False: there is none."""
    with transaction.atomic():
        User.objects.select_for_update(no_key=True).only("pk").get(pk=owner_id)
        lock_ledgers(owner_id, host_id)
        host = Host.objects.filter(pk=host_id, owner=owner_id).first()
        if host is None or cpid in keys_of_present(host, HostProject.objects.filter(host=host)):
            return False
        return HostClient.objects.filter(host=host, cpid=cpid, told_apart_at=None).update(told_apart_at=now) == 1


def _record_of(client: HostClient, cpid: str, own: Host | None, now: dt.datetime) -> Recognised:
    """Return the record of a client that was told apart, created at its first report after that."""
    record = client.record
    while record is not None and record.merged_into is not None:
        record = record.merged_into
    if record is not None:
        HostClient.objects.filter(pk=client.pk).update(seen_at=now)
        return Recognised(record, goes_on=True)
    host, books = client.host, client.books
    record = own
    if record is None:
        looks = HostDescription(None, cpid, host.domain_name, host.os_name, host.p_vendor, host.p_model)
        record = new_host(host.owner_id, looks, now, like=host)
    Host.objects.filter(pk=record.pk).update(venue=host.venue)
    # What it could have done before it was told apart may be credited to the other record.
    HostLedger.objects.create(
        host=record,
        excluded_types=HostLedger.objects.get(host=host).excluded_types,
        last_at=_time(books["last_at"]),
        client_now=books["client_now"],
    )
    wishes = {row.project_id: row for row in HostProject.objects.filter(host=host)}
    for id_, totals in books["projects"].items():
        like = wishes.get(int(id_))
        # Old totals that may come back could be the other client's: its own only grew.
        fields = {name: totals[name] for name in (*_TOTALS, "listed", "broken")}
        HostProject.objects.create(
            host=record,
            project_id=int(id_),
            **fields,
            **({} if like is None else {name: getattr(like, name) for name in _WISHES}),
        )
    HostClient.objects.filter(pk=client.pk).update(
        record=record, books={}, seen_at=now, told_apart_at=client.told_apart_at or now
    )
    return Recognised(record, goes_on=True)


def _at_own_project(host: Host, hostids: Mapping[int, int]) -> Host | None:
    """Return the record of a client that the site's own project told apart and the account manager does not know
    yet.
    """
    own = Project.served_here().first()
    number = hostids.get(own.pk, 0) if own is not None else 0
    if HostProject.objects.filter(host=host, project=own, state__hostid=number).exists():
        # The record's client has had this number before: it does not distinguish two clients.
        return None
    return Host.objects.filter(pk=number, owner=host.owner_id, merged_into=None, ledger=None).first()


def _books(host: Host) -> dict[str, Any]:
    """Return what its present client needs to continue later: its last report, and the totals."""
    ledger = HostLedger.objects.get(host=host)
    return {
        "last_at": ledger.last_at.isoformat() if ledger.last_at is not None else None,
        "client_now": ledger.client_now,
        "projects": {
            str(row.project_id): {
                **{name: _whole(getattr(row, name)) for name in (*_TOTALS, "restart")},
                "earlier": [_whole(totals) for totals in row.earlier],
                "listed": row.listed,
                "broken": row.broken,
            }
            for row in HostProject.objects.filter(host=host)
        },
    }


def _whole(totals: list[Any] | None) -> list[int] | None:
    return None if totals is None else [int(amount) for amount in totals]


def _time(text: str | None) -> dt.datetime | None:
    return dt.datetime.fromisoformat(text) if text else None


def _restored(host: Host, client: HostClient) -> Recognised:
    """Return the host, whose client continues from its own totals. Credited, waiting and dropped amounts stay.

    So do the allowance and the time of the last report: they bound the computer's total credit.
    """
    books = client.books
    HostLedger.objects.filter(host=host).update(client_now=books["client_now"])
    projects = books["projects"]
    # A project that only the other client reported is new to this one.
    HostProject.objects.filter(host=host).exclude(project__in=map(int, projects)).update(**_NO_TOTALS, listed=False)
    HostProject.objects.bulk_create(
        [HostProject(host=host, project_id=int(id_), **totals) for id_, totals in projects.items()],
        update_conflicts=True,
        unique_fields=["host", "project"],
        update_fields=[*_NO_TOTALS, "listed"],
    )
    return Recognised(host, goes_on=True, own_last_at=_time(books["last_at"]))
