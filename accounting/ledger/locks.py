"""Lock the ledgers of computers, for merging and for telling clients apart."""

from __future__ import annotations

from django.db.models import F

from accounting.models import HostLedger
from portal.models import Host


def lock_ledgers(owner_id: int, *host_ids: int) -> None:
    """Lock the ledger rows of those of these computers that are the owner's, in the order of their ids, creating
    missing rows.

    Counts as a contact of each, so that a report that read one of them before starts over.
    """
    own = sorted(Host.objects.filter(owner_id=owner_id, pk__in=host_ids).values_list("pk", flat=True))
    HostLedger.objects.bulk_create([HostLedger(host_id=pk) for pk in own], ignore_conflicts=True)
    list(HostLedger.objects.select_for_update().filter(pk__in=own).order_by("pk").values_list("pk"))
    HostLedger.objects.filter(pk__in=own).update(contacts=F("contacts") + 1)
