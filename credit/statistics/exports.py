"""The data of validated credit that other apps may read, as an account manager elsewhere would read a project's."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

from credit.models import HostCredit, Result, UserCredit
from portal.models import Host, User


@dataclass(frozen=True, slots=True)
class CreditTotals:
    """Credit granted so far, and the recent average per day (credits)."""

    total_credit: float
    expavg_credit: float


def granted_to_user(user: User) -> CreditTotals | None:
    """The credit that this project granted a volunteer; None if nothing yet. One statement."""
    found = UserCredit.objects.filter(user=user).first()
    return CreditTotals(found.total_credit, found.expavg_credit) if found is not None and found.total_credit else None


def granted_to_host(host: Host) -> CreditTotals | None:
    """The same for a computer."""
    found = HostCredit.objects.filter(host=host).first()
    return CreditTotals(found.total_credit, found.expavg_credit) if found is not None and found.total_credit else None


@dataclass(frozen=True, slots=True)
class ExportedTask:
    """What became of a task: BOINC's numbers, and the credit if it was decided. ``user_id``: whose it is."""

    name: str
    user_id: int | None
    server_state: int
    outcome: int
    validate_state: int
    granted_credit: float | None


def tasks_by_name(names: Collection[str]) -> dict[str, ExportedTask]:
    """The tasks of these names that were sent, by name; one statement, by the index of names."""
    # No text in PostgreSQL has a NUL.
    rows = Result.objects.filter(name__in=[name for name in names if "\0" not in name], sent_at__isnull=False)
    columns = "name", "user_id", "server_state", "outcome", "validate_state", "granted_credit"
    return {row[0]: ExportedTask(*row) for row in rows.values_list(*columns)}
