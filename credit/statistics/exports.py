"""The data of validated credit that other apps may read, as an account manager elsewhere would read a project's."""

from __future__ import annotations

from dataclasses import dataclass

from credit.models import HostCredit, UserCredit
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
