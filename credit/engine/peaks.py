"""The peak speed at which a record's averages of PFC were measured, and how they change when a job has another.

PFC is run time × peak FLOPS, and a host's average moves by one hundredth a job. If only the reported peak changed, each
job would claim too much, or too little, until the average had caught up: after a driver update, on a faster device, on
more processors, and for anyone who reports more than before. So a record keeps the peak of its samples. A small change,
as between two benchmarks, rescales the averages by the same ratio. After any other change the average of PFC starts
again: nothing that a client reports distinguishes a faster device from an inflated number (docs/explanation/credit.md,
"Peaks that change").
"""

from __future__ import annotations

from typing import Final

from credit.engine.averages import Average
from credit.engine.facts import HostVersionFacts, ResultFacts
from credit.engine.rules import Rules

PEAK_RANGE: Final = (1e-40, 1e40)
"""Peaks outside this range count as unknown, so that products of ratios and averages neither overflow nor underflow."""
MOST_STEADY: Final = 1.05
"""Peaks that differ by at most this factor are attributed to the same devices."""


def peak_ratio(record: HostVersionFacts, result: ResultFacts, rules: Rules) -> float:
    """Return the peak of the result's job over that of the record's samples; 1 if either is unknown."""
    before, now = record.peak_flops, result.peak_flops
    if before is None or now == before or not rules.averages_follow_peak or not _is_known(now):
        return 1.0
    return now / before


def pfc_at_peak(record: HostVersionFacts, ratio: float) -> Average:
    """Return the average of PFC for a job with this ``peak_ratio``; without samples if it starts again."""
    pfc = record.pfc
    if ratio == 1.0:
        return pfc
    if not _is_steady(ratio):
        return Average()
    return Average(pfc.n, None if pfc.avg is None else pfc.avg * ratio)


def follow_peak(record: HostVersionFacts, result: ResultFacts, rules: Rules) -> None:
    """Rescale the record's averages of PFC to the result's peak, before its sample is added, and store the peak.

    Clean samples and those that wait to be clean are always rescaled: they only limit a factor above 1.
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
