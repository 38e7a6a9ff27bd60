"""Volunteers who agree to test new versions."""

from __future__ import annotations

import datetime as dt
from typing import Final

from django.db import transaction
from django.utils.translation import gettext_lazy as _

from portal.models import User
from portal.people import consents
from portal.people.consents import ConsentKind, Wording
from scheduler.models import BetaTester

TESTING: Final = ConsentKind(
    "testing",
    _("Testing of new versions"),
    "testing",
    (
        Wording(
            _("My computers may get versions that are still being tested"),
            _(
                "Their tasks may fail more often, and failed tasks earn no credit. You can change this at any time; it "
                "takes effect within five seconds, for tasks sent from then on."
            ),
        ),
    ),
)


def choose(user: User, agrees: bool, now: dt.datetime) -> None:
    """Store the choice, and a change of consent if it differs. One transaction; locks the user's row."""
    with transaction.atomic():
        User.objects.select_for_update(no_key=True).only("pk").get(pk=user.pk)
        if agrees:
            _, has_changed = BetaTester.objects.get_or_create(user=user, defaults={"agreed_at": now})
        else:
            has_changed = bool(BetaTester.objects.filter(user=user).delete()[0])
        if has_changed:
            consents.record(user.pk, TESTING, is_given=agrees, now=now)
