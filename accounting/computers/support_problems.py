"""What support sees of problems with somebody's computers: that something is wrong, without project and amount."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from typing import Final

from django.db.models import Max
from django.utils.translation import gettext
from django.utils.translation import gettext_noop as _

from accounting.engine.states import NoteKind
from accounting.models import Note
from portal.extras import HostProblem
from portal.models import User

SHOWN_FOR: Final = dt.timedelta(days=30)
_TEXTS: Final[dict[str, str]] = {
    NoteKind.INVALID: _("The totals of a project could not be read"),
    NoteKind.SPEED_REPLACED: _("A speed that cannot be right was reported"),
    NoteKind.SUM_BROKEN: _("A sum that the client keeps is not a number"),
    NoteKind.RETURNED: _("A project’s old totals came back"),
    NoteKind.EC_ABOVE_TIME: _("More credit was claimed than the run time allows"),
    NoteKind.DROPPED: _("More was reported than the computer could have done"),
}


def read_problems(user: User, now: dt.datetime) -> Iterator[HostProblem]:
    """Return the kinds of recent notes that are problems, each once per computer."""
    notes = Note.objects.filter(host__owner=user, kind__in=_TEXTS, last_at__gte=now - SHOWN_FOR)
    for host_id, kind, last_at in (
        notes.values_list("host_id", "kind").annotate(Max("last_at")).order_by("host_id", "kind")
    ):
        yield HostProblem(host_id, gettext(_TEXTS[kind]), last_at)
