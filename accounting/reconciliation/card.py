"""The card of estimated and granted credit on several pages: templates/accounting/_settled.html."""

from __future__ import annotations

from django.conf import settings
from django.utils.translation import gettext

from accounting.reconciliation.reads import Reconciled, chart_data
from accounting.reconciliation.texts import STEPS, steps_of
from credit.statistics.exports import CreditTotals, differences_of
from portal.models import Host, User


def card(
    reconciled: Reconciled,
    title: str,
    *,
    per: str = "day",
    of: User | Host | None = None,
    granted: CreditTotals | None = None,
) -> dict[str, object]:
    """Return the template values; empty if there are only estimates.

    ``of``: whose jobs of this site's own project are explained; one statement. ``granted``: that project's grants.
    """
    steps = steps_of(differences_of(of)) if of is not None and "project" in settings.ROOMS else []
    if not reconciled.has_grants and not steps and granted is None:
        return {}
    return {
        "settled": reconciled,
        "settled_title": title,
        "settled_per": gettext(STEPS[per]),
        "settled_steps": steps,
        "granted": granted,
        "settled_chart": chart_data(reconciled, per) if reconciled.has_parts else None,
    }
