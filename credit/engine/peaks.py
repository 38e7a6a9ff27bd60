"""The peak speed at which a record's averages of PFC are, and what becomes of them when a job has another.

PFC is run time × peak FLOPS, and a host's average moves by a hundredth a job. If only the reported peak changed, each
job would claim too much, or too little, until the average had followed: after an update of a driver, on a faster
device, on more processors, and for anyone who reports more than before. So a record keeps the peak of its samples. A
little change, as of one benchmark to the next, moves the averages by as much. After any other the average of PFC begins
again: nothing that a client reports tells a faster device from a higher number (docs/explanation/credit.md, "Peaks that
change").
"""

from __future__ import annotations

from typing import Final

from credit.engine.averages import Average
from credit.engine.facts import HostVersionFacts, ResultFacts
from credit.engine.rules import Rules

PEAK_RANGE: Final = (1e-40, 1e40)
"""A peak outside is not known: products of ratios and averages neither overflow nor underflow."""
MOST_STEADY: Final = 1.05
"""A peak at most this many times the one before, or a part as small of it, is of the same devices."""


def peak_ratio(record: HostVersionFacts, result: ResultFacts, rules: Rules) -> float:
    """The peak of the result's job over that of the record's samples; 1 if either is not known."""
    before, now = record.peak_flops, result.peak_flops
    if before is None or now == before or not rules.averages_follow_peak or not _is_known(now):
        return 1.0
    return now / before


def pfc_at_peak(record: HostVersionFacts, ratio: float) -> Average:
    """The average of PFC as a job with this ``peak_ratio`` reads it; without a sample where it begins again."""
    pfc = record.pfc
    if ratio == 1.0:
        return pfc
    if not _is_steady(ratio):
        return Average()
    return Average(pfc.n, None if pfc.avg is None else pfc.avg * ratio)


def follow_peak(record: HostVersionFacts, result: ResultFacts, rules: Rules) -> None:
    """Brings the record's averages of PFC to the peak of the result, before its sample joins them, and keeps the peak.

    The clean samples and those that wait to be clean are moved in any case: they only limit a factor above 1.
    """
    if not rules.averages_follow_peak:
        return
    ratio = peak_ratio(record, result, rules)
    if ratio != 1.0:
        record.pfc = pfc_at_peak(record, ratio)
        for average in (record.clean_pfc, record.waiting_pfc, record.recent_pfc):
            if average.avg is not None:
                average.avg *= ratio
    if _is_known(result.peak_flops):
        record.peak_flops = result.peak_flops


def _is_known(peak_flops: float) -> bool:
    least, most = PEAK_RANGE
    return least <= peak_flops <= most


def _is_steady(ratio: float) -> bool:
    return 1 / MOST_STEADY <= ratio <= MOST_STEADY
