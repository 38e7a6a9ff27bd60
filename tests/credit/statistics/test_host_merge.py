"""Credit of two records of one computer becomes that of one, whatever is granted meanwhile."""

from __future__ import annotations

import pytest
from django.db import transaction
from django.db.models import F

from credit.models import HostCredit
from credit.statistics.host_merge import merge_host
from portal.models import Host, User
from tests.support.lock_waits import meanwhile


@pytest.mark.django_db(transaction=True)
def test_credit_that_is_granted_while_records_are_joined_is_not_lost(alice: User) -> None:
    older, newer = (Host.objects.create(owner=alice, domain_name=name) for name in ("older", "newer"))
    HostCredit.objects.bulk_create([HostCredit(host=older, total_credit=10), HostCredit(host=newer, total_credit=5)])
    with meanwhile(lambda: transaction.atomic(merge_host)(older.pk, newer.pk)) as begin:
        with transaction.atomic():
            HostCredit.objects.filter(host=newer).update(total_credit=F("total_credit") + 1)
            second = begin()
        second.result()
    # 10 + 5, and 1 that was granted meanwhile
    assert [(row.host_id, row.total_credit) for row in HostCredit.objects.all()] == [(newer.pk, 16)]
