"""A computer's troubles with its projects: no work, no answer, the project has ended. Pure.

At each contact a client reports which requests for work came to nothing, and how often a project did not answer (BOINC
protocol, AM RPC request). This module adds since when that has been so, and decides how long it counts after the
project has left the computer.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable
from typing import Any, Final

from accounting.engine.choice.facts import Trouble, TroubleKind

# A client retries after a minute, then at growing intervals: three failures in a row are no accident.
MIN_FAILURES: Final = 3
# How long troubles count after the project has left the computer.
KEPT_AFTER_DETACH: Final = dt.timedelta(days=1)

# Looking these up in the enumeration would cost ten times as much.
_NO_WORK, _FAILING, _ENDED = (kind.value for kind in (TroubleKind.NO_WORK, TroubleKind.FAILING, TroubleKind.ENDED))
_KINDS: Final = {kind.value: kind for kind in TroubleKind}

# (kind, processor type or "", since when in Unix seconds), as in JSON
StoredTroubles = list[list[Any]]


def note_troubles(
    no_work: Iterable[str], failures: int, has_ended: bool, before: StoredTroubles | None, now: dt.datetime
) -> StoredTroubles:
    """Return a project's reported troubles, each with the time since when it has been reported."""
    met = [(_NO_WORK, type_) for type_ in no_work]
    if failures >= MIN_FAILURES:
        met.append((_FAILING, ""))
    if has_ended:
        met.append((_ENDED, ""))
    if not met:
        return []
    since = {(kind, type_): at for kind, type_, at in before or ()}
    now_secs = int(now.timestamp())
    return [[kind, type_, since.get((kind, type_), now_secs)] for kind, type_ in dict.fromkeys(met)]


def current_troubles(
    stored: StoredTroubles | None, at_secs: int | None, *, is_here: bool, now: dt.datetime
) -> tuple[Trouble, ...]:
    """Return the stored troubles that still count; ``at_secs``: the last report, in Unix seconds."""
    if not stored:
        return ()
    if not is_here and (at_secs is None or now.timestamp() - at_secs > KEPT_AFTER_DETACH.total_seconds()):
        return ()
    return tuple(
        [Trouble(_KINDS[kind], type_, dt.datetime.fromtimestamp(since, dt.UTC)) for kind, type_, since in stored]
    )
