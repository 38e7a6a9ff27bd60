"""The credit of archived tasks, for the check of credit's totals."""

from __future__ import annotations

from collections.abc import Iterable

from django.db.models import Count, FloatField, Sum, TextField, Value
from django.db.models.fields.json import KT
from django.db.models.functions import Cast, Coalesce, Greatest

from credit.engine.explanation import GrantRule
from credit.statistics.check import Owner
from portal.extras import ArchivedCredit
from scheduler.models import ArchivedTask


def archived_credit(owner: Owner) -> Iterable[ArchivedCredit]:
    """Return sums over the archived tasks of each owner that still exists, limited to credit earned here."""
    granted = Cast(KT("facts__granted_credit"), FloatField())
    partial = Cast(KT("facts__partial_credit"), FloatField())
    tasks = ArchivedTask.objects.filter(**{f"{owner.value}__isnull": False}).order_by()
    rule = Coalesce(KT("facts__grant_rule"), Value(""), output_field=TextField())
    tasks = tasks.alias(rule=rule).exclude(rule=str(GrantRule.CARRIED_OVER.value))
    sums = tasks.values_list(owner.value).annotate(
        ngranted=Count(granted), credit=Sum(Greatest(Coalesce(granted, 0.0), Coalesce(partial, 0.0)))
    )
    return [ArchivedCredit(*row) for row in sums]
