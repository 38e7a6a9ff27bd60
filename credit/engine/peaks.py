"""The peak speed that a computer reports: averages of PFC follow it when it changes.

PFC is run time × peak FLOPS, and a host's average moves by a hundredth a job. If only the reported peak changed, each
job would claim too much, or too little, until the average had followed: after an update of a driver, and for whoever
reports a higher speed than before. So a record keeps the peak of its samples, and its averages are read at the peak of
the job at hand. From the first samples on, only run times count (docs/explanation/credit.md, "Peaks that change").
"""

from __future__ import annotations

from typing import Final

from credit.engine.facts import HostVersionFacts, ResultFacts
from credit.engine.rules import Rules

PEAK_RANGE: Final = (1e-40, 1e40)
"""A peak outside is not known: products of ratios and averages neither overflow nor underflow."""


def instance_flops(result: ResultFacts) -> float | None:
    """The peak FLOPS of one of the processors that the job was given; None if it is not known.

    Of one, as an owner may change how many threads a job has, or how many jobs share a GPU: its run time then changes
    by as much as its peak, and PFC stays.
    """
    flops = result.peak_flops / result.ninstances if result.ninstances > 0 else 0.0
    least, most = PEAK_RANGE
    return flops if least <= flops <= most else None


def peak_ratio(record: HostVersionFacts, result: ResultFacts, rules: Rules) -> float:
    """The peak of the result's job over that of the record's samples: what the averages are multiplied by."""
    before = record.instance_flops
    if before is None or not rules.averages_follow_peak:
        return 1.0
    now = instance_flops(result)
    return 1.0 if now is None or now == before else now / before


def follow_peak(record: HostVersionFacts, result: ResultFacts, rules: Rules) -> None:
    """Multiplies the record's averages of PFC, before the result's sample joins them, and keeps its peak."""
    if not rules.averages_follow_peak:
        return
    ratio = peak_ratio(record, result, rules)
    if ratio != 1.0:
        for average in (record.pfc, record.clean_pfc, record.waiting_pfc, record.recent_pfc):
            if average.avg is not None:
                average.avg *= ratio
    record.instance_flops = instance_flops(result) or record.instance_flops
