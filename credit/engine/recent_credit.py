"""Recent average credit: credits per day, with a half-life of seven days."""

from __future__ import annotations

from math import exp, expm1, log
from typing import Final

from credit.engine.rules import Rules

DAY_SECS: Final = 86400.0
MIN_SECS: Final = 1.0
"""A first grant is spread over at least this time."""
_DEPLOYED_MIN_LOSS: Final = 1e-6


def add_credit(
    average: float, updated_at: float | None, now: float, credit: float, since: float, rules: Rules
) -> tuple[float, float]:
    """Return the average and its time after a grant.

    ``average``: credits per day as of ``updated_at`` (None: never granted anything); ``since``: when the job was sent.
    With x days since the last update and w = 0.5^(x / 7): average × w + (1 − w) × credit / x; for x = 0 (several grants
    at once) its limit, average + ln 2 × credit / 7. A first grant: credit / days since the job was sent. If the clock
    was set back, no time has passed.
    """
    if updated_at is None:
        days = max(now - since, MIN_SECS) / DAY_SECS
        return credit / days, now
    if now <= updated_at:
        return average + log(2) * credit / (rules.credit_half_life_secs / DAY_SECS), updated_at
    decay = log(2) * (now - updated_at) / rules.credit_half_life_secs
    return average * exp(-decay) - expm1(-decay) * credit / ((now - updated_at) / DAY_SECS), now


def decayed(average: float, updated_at: float | None, now: float, rules: Rules) -> float:
    """Return the average at a later time without further grants, in credits per day."""
    if updated_at is None or now <= updated_at:
        return average
    return average * exp(-log(2) * (now - updated_at) / rules.credit_half_life_secs)


def take_back(average: float, updated_at: float | None, now: float, credit: float, at: float, rules: Rules) -> float:
    """Return the average as of ``now`` without a credit that was granted ``at`` that time; never below 0."""
    share = log(2) * credit / (rules.credit_half_life_secs / DAY_SECS)
    return max(0.0, decayed(average, updated_at, now, rules) - decayed(share, at, now, rules))


def add_credit_as_deployed(
    average: float, updated_at: float | None, now: float, credit: float, since: float, rules: Rules
) -> float:
    """Return the average after a grant as BOINC's server computes it: the limit is used while the loss is below 1e-6.

    ``updated_at`` None: never updated. A first grant in the very second when the job was sent leaves the average
    unchanged.
    """
    if updated_at is None:
        return credit / ((now - since) / DAY_SECS) if now != since else average
    secs = max(0.0, now - updated_at)
    decay = exp(-secs * log(2) / rules.credit_half_life_secs)
    average *= decay
    if 1 - decay > _DEPLOYED_MIN_LOSS:
        return average + (1 - decay) * credit / (secs / DAY_SECS)
    return average + log(2) * credit * DAY_SECS / rules.credit_half_life_secs
