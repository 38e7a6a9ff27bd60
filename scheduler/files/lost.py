"""Results that were sent, but that a restored database does not know, or believes to be unsent."""

from __future__ import annotations

import re
from typing import Final

from django.db import transaction
from django.db.models import F
from django.db.models.functions import Least
from django.utils import timezone

from credit.models import Outcome, Result, ServerState, Workunit
from credit.models.work import MAX_RESULTS_PER_WORKUNIT

_NAME: Final = re.compile(r"(.+)_[0-9]{1,4}(?:_r[0-9a-f]{8})?")


@transaction.atomic
def take_back(name: str) -> Result | None:
    """Restore the result as a late one: it counts for the computer that reports it. None if its workunit is lost, too.

    Its upload certificate proves that it was sent, so a result is restored only when its outputs arrive. Locks the
    workunit.
    """
    match = _NAME.fullmatch(name)
    workunit = match and Workunit.objects.select_for_update(no_key=True).filter(name=match[1]).first()
    if not workunit:
        return None
    late = {"server_state": ServerState.OVER, "outcome": Outcome.NO_REPLY}
    result, is_new = Result.objects.select_related("workunit").get_or_create(
        name=name, defaults={"workunit": workunit, "app_id": workunit.app_id, **late}
    )
    if is_new or Result.objects.filter(pk=result.pk, server_state=ServerState.UNSENT).update(**late):
        # Another one is needed in its place, unless this one comes, so it does not count against the limit.
        Workunit.objects.filter(pk=workunit.pk).update(
            transition_at=timezone.now(), max_total_results=Least(F("max_total_results") + 1, MAX_RESULTS_PER_WORKUNIT)
        )
        result.server_state, result.outcome = ServerState.OVER, Outcome.NO_REPLY
    return result
