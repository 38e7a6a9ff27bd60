"""Decide what to alert a volunteer about: what has begun, and what is over, since the last evaluation. Pure.

Troubles, which last, and events, which only happen, are handled alike: each has a key, and is reported when its key is
seen for the first time. So evaluating twice reports nothing twice, and a lasting trouble is reported once.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final


class AlertKind(StrEnum):
    SILENT = "silent"
    FAILING = "failing"
    PROJECT = "project"
    SECURITY = "security"
    NEWS = "news"


LASTING: Final = frozenset({AlertKind.SILENT, AlertKind.FAILING, AlertKind.PROJECT})
"""Kinds that have an end; the others happen at a moment."""
OVER_AFTER: Final = dt.timedelta(hours=1)
"""A trouble is over when it has not been seen for this long. One that comes and goes faster is one trouble."""


@dataclass(frozen=True, slots=True)
class Observation:
    """A present trouble or a recent event. ``key``: unique, and the same each time that it is seen.

    ``text``: a sentence. ``path``: the page of this site with more about it.
    """

    kind: AlertKind
    key: str
    text: str
    path: str


@dataclass(frozen=True, slots=True)
class OpenAlert:
    """An earlier observation. ``gone_since``: when it was first missed; None while it is present."""

    kind: AlertKind
    key: str
    text: str
    path: str
    gone_since: dt.datetime | None = None


@dataclass(frozen=True, slots=True)
class Evaluation:
    """``open``: what to remember, by key; ``begun`` and ``over``: what to report, in order of keys."""

    open: dict[str, OpenAlert]
    begun: list[Observation]
    over: list[OpenAlert]


def evaluate(
    before: Mapping[str, OpenAlert], seen: Iterable[Observation], now: dt.datetime, *, is_first: bool = False
) -> Evaluation:
    """Compare with the last evaluation. At the first one, present troubles are remembered but not reported: pages show
    them.

    The result does not depend on the order of observations; of two with one key, the smaller text counts.
    """
    there: dict[str, Observation] = {}
    for observation in sorted(seen, key=lambda observation: (observation.key, observation.text, observation.path)):
        there.setdefault(observation.key, observation)
    open_before, begun, over = {}, [], []
    for key, observation in there.items():
        open_before[key] = OpenAlert(observation.kind, key, observation.text, observation.path)
        if key not in before and not (is_first and observation.kind in LASTING):
            begun.append(observation)
    for key, missed in sorted(before.items()):
        if key in there:
            continue
        gone_since = missed.gone_since or now
        if now - gone_since < OVER_AFTER:
            open_before[key] = replace(missed, gone_since=gone_since)
        elif missed.kind in LASTING:
            over.append(missed)
    return Evaluation(open_before, begun, over)


# --- retrying ------------------------------------------------------------------------------------------------

RETRY_AFTER: Final = tuple(dt.timedelta(minutes=minutes) for minutes in (1, 5, 30, 120, 360))
"""Wait after the first failure, the second …; the last value repeats."""
KEPT_TRYING: Final = dt.timedelta(hours=24)
"""A message that could not be sent by then is given up: it is no longer news."""
FAILING_FOR: Final = dt.timedelta(days=3)
"""A channel that has failed for this long is paused,"""
MIN_TRIES_TO_PAUSE: Final = 3
"""but not at the first attempts of a message that is being retried: the other side may be back meanwhile."""
_GONE: Final = frozenset({404, 410})
_LATER: Final = frozenset({408, 425, 429})


class Verdict(StrEnum):
    """What happens to a message after an attempt. PAUSE: it is given up, and so are all others of its channel."""

    SENT = "sent"
    LATER = "later"
    FAILED = "failed"
    PAUSE = "pause"


@dataclass(frozen=True, slots=True)
class Try:
    """An attempt to send a message. ``status``: the server's answer, None if there was none.

    ``is_refused``: this site does not send to the address. ``ntries``: including this one.
    """

    status: int | None
    is_refused: bool
    ntries: int
    created_at: dt.datetime
    failing_since: dt.datetime | None
    retry_secs: int = 0


def judge(tried: Try, now: dt.datetime) -> tuple[Verdict, dt.datetime | None]:
    """Decide what happens to the message, and when it is tried again."""
    if tried.status is not None and 200 <= tried.status < 300:
        return Verdict.SENT, None
    is_long = tried.failing_since is not None and now - tried.failing_since >= FAILING_FOR
    is_final = tried.status is not None and tried.status < 500 and tried.status not in _LATER
    is_pausing = is_long and (is_final or tried.ntries >= MIN_TRIES_TO_PAUSE)
    if tried.is_refused or tried.status in _GONE or is_pausing:
        return Verdict.PAUSE, None
    if is_final:
        return Verdict.FAILED, None
    wait = RETRY_AFTER[min(tried.ntries, len(RETRY_AFTER)) - 1]
    again = now + max(wait, dt.timedelta(seconds=tried.retry_secs))
    if again - tried.created_at >= KEPT_TRYING:
        return Verdict.FAILED, None
    return Verdict.LATER, again
