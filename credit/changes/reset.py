"""Reset the statistics of a version and of its computers, or restore earlier ones.

Both keep the statistics that they replace, so each can be undone like any other change.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final

from django.db import OperationalError, connection, transaction
from django.db.models import Q, QuerySet
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _
from psycopg.errors import LockNotAvailable

from credit.changes import sql
from credit.models import AppVersion, HostAppVersion, StatisticsSnapshot
from portal.audit.proposals import Proposal
from portal.audit.steps import RowOperation
from portal.audit.undo import OPERATION as OPERATION_KEY
from portal.audit.values import Line, in_words
from portal.models import Change

OPERATION: Final = "statistics"
_NAMES: Final = ("pfc_n", "pfc_avg", "pfc_scale", "is_counted")
_LABELS: Final = {
    "pfc_n": _("Samples"),
    "pfc_avg": _("Average of PFC / estimate"),
    "pfc_scale": _("Factor"),
    "is_counted": _("Counts towards the app’s lowest average"),
}


_MAX_TRIES: Final = 20


class _NewRecordsError(Exception):
    """Others have locked records that were created while these were being locked."""


@dataclass(frozen=True, slots=True)
class _Statistics:
    pfc_n: int = 0
    pfc_avg: float | None = None
    pfc_scale: float | None = None
    is_counted: bool = False


def proposal(version: AppVersion) -> Proposal:
    """Build the proposal of a reset."""
    return Proposal(model=AppVersion._meta.label, pk=version.pk, operation=OPERATION)


def _proposed(proposal: Proposal) -> _Statistics:
    """Return the statistics of the snapshot to restore; none for a reset."""
    if proposal.subject is None:
        return _Statistics()
    snapshot = StatisticsSnapshot.objects.get(pk=proposal.subject)
    return _Statistics(snapshot.pfc_n, snapshot.pfc_avg, snapshot.pfc_scale, snapshot.is_counted)


def _records_with_statistics(version: AppVersion) -> QuerySet[HostAppVersion]:
    """Return the records that `sql.KEEP_RECORDS` keeps."""
    return HostAppVersion.objects.filter(Q(pfc_n__gt=0) | Q(clean_pfc_n__gt=0) | Q(et_n__gt=0), app_version=version)


def _title(version: AppVersion, proposal: Proposal) -> str:
    text = (
        gettext("Restore the statistics of %(version)s")
        if proposal.subject
        else gettext("Reset the statistics of %(version)s")
    )
    return text % {"version": version}


def _lines(version: AppVersion, proposal: Proposal) -> list[Line]:
    proposed = _proposed(proposal)
    lines = [
        Line(name, str(_LABELS[name]), in_words(None, getattr(version, name)), in_words(None, getattr(proposed, name)))
        for name in _NAMES
    ]
    records = HostAppVersion.objects.filter(app_version=version)
    here = records.filter(pfc_n__gt=0).count()
    snapshot = StatisticsSnapshot.objects.filter(pk=proposal.subject).first() if proposal.subject else None
    after = snapshot.host_records.filter(pfc_n__gt=0, record__in=records).count() if snapshot is not None else 0
    return [*lines, Line("host_records", gettext("Computers with samples"), str(here), str(after))]


def _notes(version: AppVersion, proposal: Proposal) -> list[str]:
    if proposal.subject is not None:
        return [
            gettext(
                "The earlier statistics of the version and of its computers are restored. Samples collected since then "
                "are removed, and kept with this change."
            ),
        ]
    return [
        gettext(
            "The averages of the version and of its computers are reset. Until there are enough samples again, claims "
            "are approximate: they are based on the app’s lowest average, or on the estimate."
        ),
        gettext("Granted credit stays as it is. The current statistics are kept, so the change can be undone."),
    ]


def _lock(proposal: Proposal) -> None:
    """Lock records by id, then the version, as validators do; never wait for a record while holding the version.

    If another transaction holds a newly created record, it may be waiting for the version. So the version is released,
    and everything is locked again.
    """
    for _try in range(_MAX_TRIES):
        with suppress(_NewRecordsError), transaction.atomic(), connection.cursor() as cursor:
            cursor.execute(sql.LOCK_RECORDS, [proposal.pk])
            cursor.execute(sql.LOCK_VERSION, [proposal.pk])
            try:
                cursor.execute(sql.LOCK_NEW_RECORDS, [proposal.pk])
            except OperationalError as error:
                if not isinstance(error.__cause__, LockNotAvailable):
                    raise
                raise _NewRecordsError from error
            return
    raise OperationalError("validators make new records of computers all the time")


def _carry_out(version: AppVersion, proposal: Proposal) -> Change | None:
    """Apply the proposal in the caller's transaction, which has locked the records and the version.

    Return None if there is nothing to reset.
    """
    proposed = _proposed(proposal)
    before = _Statistics(*(getattr(version, name) for name in _NAMES))
    if proposal.subject is None and before == proposed and not _records_with_statistics(version).exists():
        return None
    change: Change = Change.objects.log_create(
        version,
        action=Change.Action.UPDATE,
        changes={
            name: [getattr(before, name), getattr(proposed, name)]
            for name in _NAMES
            if getattr(before, name) != getattr(proposed, name)
        },
        force_log=True,
        additional_data={OPERATION_KEY: OPERATION},
    )
    snapshot = StatisticsSnapshot.objects.create(
        change=change, app_version=version, **{name: getattr(before, name) for name in _NAMES}
    )
    with connection.cursor() as cursor:
        cursor.execute(sql.READ_LOCKED_RECORDS, [version.pk])
        locked = [id_ for (id_,) in cursor.fetchall()]
        cursor.execute(sql.KEEP_RECORDS, [snapshot.pk, locked])
        cursor.execute(sql.EMPTY_RECORDS, [locked])
        if proposal.subject is not None:
            cursor.execute(sql.RESTORE_RECORDS, [proposal.subject])
    AppVersion.objects.filter(pk=version.pk).update(**{name: getattr(proposed, name) for name in _NAMES})
    return change


def _undo(change: Change) -> Proposal:
    snapshot = StatisticsSnapshot.objects.get(change=change)
    return Proposal(
        model=AppVersion._meta.label,
        pk=snapshot.app_version_id,
        operation=OPERATION,
        subject=snapshot.pk,
        undoes=change.pk,
    )


operation: Final[Any] = RowOperation(
    title=_title,
    lines=_lines,
    notes=_notes,
    lock=_lock,
    carry_out=_carry_out,
    undo=_undo,
)
