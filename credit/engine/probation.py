"""The effect of a host's successes and failures on its record: probation, error rate and jobs per day.

Credit document, "Cheat prevention" and "Error rate, host punishment". The scheduler counts jobs sent and reports, the
transitioner time-outs, the validator validity. Each changes only its own fields of the record; the functions'
docstrings name them.
"""

from __future__ import annotations

from datetime import date, timedelta
from enum import Enum, auto
from typing import Final

from credit.engine.averages import Average
from credit.engine.facts import AppFacts, HostVersionFacts
from credit.engine.rules import Rules


class Ending(Enum):
    """How a job ended, as far as it says something about its computer."""

    SUCCESS = auto()  # a successful report, valid or not
    NOT_NEEDED = auto()  # the project aborted it, or would have
    FAILED = auto()  # computed and failed, timed out, or reported in a way that no client means
    ABORTED = auto()  # by the volunteer or the client
    UNASKED_ABORT = auto()  # reported as aborted by the project, which did not abort it
    NOT_DOWNLOADED = auto()
    NOT_UPLOADED = auto()  # an output is missing, or differs from what the client says
    LOST = auto()  # the computer no longer has it


_ERRORS: Final = frozenset({Ending.FAILED, Ending.ABORTED})
"""The endings that the document names."""
_NO_CRASH: Final = frozenset({Ending.ABORTED, Ending.NOT_DOWNLOADED, Ending.LOST})
"""Endings that the owner may intend, or that may be the project's or the network's fault: the quota is unchanged."""


UNDONE: Final = _NO_CRASH
"""Endings of jobs that a computer was sent but did not compute. A cheat who picks jobs discards the others this way."""


def counts_again(nundone: int, njobs: int, max_undone_share: float) -> bool:
    """Whether a job that was not computed counts as one more job in the day's quota; the first few do not.

    ``nundone``: jobs of the day that ended this way, including this one; ``njobs``: jobs of the day that count.
    """
    return nundone > max_undone_share * max(njobs, nundone)


def is_on_probation(record: HostVersionFacts, now: float, rules: Rules) -> bool:
    """Whether the host has yet to show that it does not pick its jobs (whether or not the app uses probation).

    It is if it has too few clean samples, or if too many of its recent jobs ended without a valid result. To the letter
    it is for a spell after each failure.
    """
    if rules.only_clean_samples_raise:
        return record.clean_pfc.n < rules.min_host_samples or fails_often(record, rules)
    since = record.host_scale_time
    return record.scale_probation or (since is not None and now < since)


def fails_often(record: HostVersionFacts, rules: Rules) -> bool:
    """Whether so many of the host's recent jobs ended without a valid result that it may have picked those it
    completed.
    """
    return record.failing_share > rules.max_failing_share


def count_sent(record: HostVersionFacts, now: float, delay_bound_secs: float, today: date) -> None:
    """Count a job that was sent: ``host_scale_time``, ``n_jobs_today``, ``jobs_day``.

    Only the first job sent in a spell of probation sets ``host_scale_time``. If each did, a host that gets a job a day
    with a deadline of a week would never leave.
    """
    if record.scale_probation and record.host_scale_time is None:
        record.host_scale_time = now + delay_bound_secs
    if not counts_for(record.jobs_day, today):
        record.jobs_day = today
        record.n_jobs_today = 0
    record.n_jobs_today += 1


def count_error(record: HostVersionFacts, now: float, delay_bound_secs: float, rules: Rules) -> None:
    """Count a job that ended without success: a new spell, ``failing_share``, ``error_rate``, ``consecutive_valid``.

    The transitioner counts time-outs in SQL, with the same effect as this and ``count_crash``.
    """
    _count_failure(record, now, delay_bound_secs, rules)
    record.error_rate = _raised(record.error_rate, rules)
    record.consecutive_valid = 0


def count_ending(
    record: HostVersionFacts, ending: Ending, now: float, delay_bound_secs: float, most: int, rules: Rules
) -> bool:
    """Count a job that ended: the fields of ``count_error``, and ``max_jobs_per_day``; return whether the record
    changed.

    For ``most`` see ``most_jobs_per_day``. Whether a success is valid is counted later, by ``count_valid`` or
    ``count_invalid``.
    """
    if ending is Ending.SUCCESS:
        count_success(record, most)
        return True
    if ending is Ending.NOT_NEEDED or not (rules.counts_every_ending or ending in _ERRORS):
        return False
    count_error(record, now, delay_bound_secs, rules)
    if ending not in _NO_CRASH:
        count_crash(record, most)
    return True


def count_cheat(record: HostVersionFacts, now: float, delay_bound_secs: float, rules: Rules) -> None:
    """Count a claim above the workunit's bound or based on impossible numbers: a new spell, ``failing_share``, and
    enough suspicion to replicate its jobs for a while. A worse error rate is kept, except to the letter.
    """
    _count_failure(record, now, delay_bound_secs, rules)
    least = record.error_rate if rules.cheats_keep_worse_error_rate else 0.0
    record.error_rate = max(rules.initial_error_rate, least)


def count_valid(
    record: HostVersionFacts, now: float, delay_bound_secs: float, rules: Rules, is_unreplicated: bool = False
) -> None:
    """Count a valid result: ``consecutive_valid``, ``error_rate``, ``failing_share``, the end of a spell, clean
    samples.

    A single result of an app whose workunits usually have more (``is_unreplicated``) was compared with nothing, so
    except to the letter it does not make a host trusted. Deployed rules: ``max_jobs_per_day`` too.
    """
    if rules.daily_result_quota is not None:
        record.max_jobs_per_day += 1
    if not (is_unreplicated and rules.trusts_compared_only):
        record.consecutive_valid += 1
        record.error_rate *= rules.error_rate_kept_when_valid
    since = record.host_scale_time
    if record.scale_probation and since is not None and now > since:
        record.scale_probation = False
    record.failing_share *= 1 - rules.failing_weight
    if rules.only_clean_samples_raise:
        _age_samples(record, now, delay_bound_secs, rules)


def _age_samples(record: HostVersionFacts, now: float, delay_bound_secs: float, rules: Rules) -> None:
    """Move samples on: they are collected for at least one delay bound, wait as long again, and are then clean. By
    then, jobs that were held back have timed out. Samples that come or wait while too many jobs fail never become
    clean.
    """
    if fails_often(record, rules):
        record.waiting_pfc, record.recent_pfc = Average(), Average()
        record.samples_since = now
    elif record.samples_since is None or now > record.samples_since + delay_bound_secs:
        record.clean_pfc.join(record.waiting_pfc, rules.host_average, record.pfc.avg or 0.0)
        record.waiting_pfc, record.recent_pfc = record.recent_pfc, Average()
        record.samples_since = now
    elif record.samples_since > now:
        record.samples_since = now  # the server's clock was ahead


def count_invalid(record: HostVersionFacts, now: float, delay_bound_secs: float, rules: Rules) -> None:
    """Count a result found wrong: a new spell, ``failing_share``, ``consecutive_valid``, ``error_rate``.

    Deployed rules: ``max_jobs_per_day`` too.
    """
    if rules.counts_every_ending:
        _count_failure(record, now, delay_bound_secs, rules)
    record.consecutive_valid = 0
    record.error_rate = _raised(record.error_rate, rules)
    quota = rules.daily_result_quota
    if quota is not None and record.max_jobs_per_day > quota:
        record.max_jobs_per_day -= 1


def _count_failure(record: HostVersionFacts, now: float, delay_bound_secs: float, rules: Rules) -> None:
    """Update ``failing_share`` and begin a new spell. It never ends before the current one: delay bounds differ."""
    count_failing(record, rules)
    record.scale_probation = True
    record.host_scale_time = max(record.host_scale_time or 0.0, now + delay_bound_secs)


def count_failing(record: HostVersionFacts, rules: Rules) -> None:
    """Update ``failing_share`` for a job of the record's version, or of an older one whose statistics it took over,
    that ended without a valid result. Otherwise a host could hold jobs back until the next version, and shed them.
    """
    record.failing_share += rules.failing_weight * (1 - record.failing_share)


def count_crash(record: HostVersionFacts, most: int) -> None:
    """Lower ``max_jobs_per_day`` after a crash or a failed upload; for ``most`` see ``most_jobs_per_day``."""
    record.max_jobs_per_day = max(1, min(record.max_jobs_per_day or most, most) - 1)


def count_success(record: HostVersionFacts, most: int) -> None:
    """Raise ``max_jobs_per_day`` after a successful report, valid or not."""
    record.max_jobs_per_day = min((record.max_jobs_per_day or most) * 2, most)


def most_jobs_per_day(max_jobs_per_day_init: int, ninstances: int) -> int:
    """Return the app's quota for a new computer times its instances of the version's processor type; at least 1."""
    return max(1, max_jobs_per_day_init * ninstances)


def counts_for(jobs_day: date | None, today: date) -> bool:
    """Whether jobs counted for ``jobs_day`` count for a request made ``today``.

    A request that waited over midnight may come after one of the new day: its jobs count for that. A day further ahead
    was counted while the server's clock was wrong.
    """
    return jobs_day is not None and today <= jobs_day <= today + timedelta(days=1)


def jobs_left_today(record: HostVersionFacts, most: int, today: date) -> int:
    """Return how many more jobs the host may get on this UTC day."""
    quota = min(record.max_jobs_per_day or most, most)
    sent = record.n_jobs_today if counts_for(record.jobs_day, today) else 0
    return max(0, quota - sent)


def replication_chance(record: HostVersionFacts | None, rules: Rules) -> float:
    """Return the chance that a single result of this host is replicated, in apps that allow single results.

    It falls with the number of valid results in a row, but never to 0: nothing else detects a host that starts to make
    up outputs.
    """
    if record is None or record.error_rate >= rules.max_error_rate_for_single:
        return 1.0
    if record.consecutive_valid < rules.always_replicated_valid:
        return 1.0
    falling = rules.always_replicated_valid / max(1, record.consecutive_valid)
    return max(rules.min_replication_chance, falling)


def is_suspicious(sample: float, host: Average | None, version: Average | None, rules: Rules) -> bool:
    """Whether a single result's PFC / fpops_est is so far from the host's or the version's average that another result
    has to confirm it. Averages below the sample thresholds are not compared. ``host``: see ``peaks.pfc_at_peak``.
    """
    factor = rules.confirmation_factor
    if factor is None:
        return False
    with_thresholds = [] if host is None else [(host, rules.min_host_samples)]
    with_thresholds += [] if version is None else [(version, rules.min_version_samples)]
    averages = [pfc.avg for pfc, threshold in with_thresholds if pfc.n >= threshold and pfc.avg]
    return any(not average / factor <= sample <= average * factor for average in averages)


def needs_confirmation(
    app: AppFacts,
    sample: float,
    record: HostVersionFacts | None,
    host: Average | None,
    version: Average | None,
    now: float,
) -> bool:
    """Whether a single result's claim has to wait for another result, in an app that usually has two of each job.

    It does if it is suspicious or, in apps with probation, if nothing shows yet what the host's claims are worth.
    """
    rules = app.rules
    if is_suspicious(sample, host, version, rules):
        return True
    if record is None or not (app.host_scale_check and rules.only_clean_samples_raise):
        return False
    return is_on_probation(record, now, rules)


def _raised(error_rate: float, rules: Rules) -> float:
    return min(1.0, error_rate + rules.error_rate_step)
