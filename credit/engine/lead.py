"""A bound on how far a record's claims may exceed those of usual jobs in total.

A host's average follows its claims by one hundredth a job, so a change of level pays until the average has caught up:
run times that are reported too long, or honest ones after the first were reported too short. An honest host claims on
average what usual jobs do, and its lead stays near 0. So a bound on the lead costs it nothing, and limits what anybody
can gain (docs/explanation/credit.md, "Run times that change").
"""

from __future__ import annotations

from credit.engine.explanation import Explanation
from credit.engine.facts import HostVersionFacts, WorkunitFacts
from credit.engine.rules import Rules


def usual_pfc(claim: Explanation, workunit: WorkunitFacts) -> float:
    """Return what a job of this size claims on average, by the averages that the claim was based on, in FLOPs."""
    if claim.version_pfc_avg is None:
        return (claim.min_avg_pfc or 0.0) * workunit.fpops_est
    scale = 1.0 if claim.version_scale is None else claim.version_scale
    return claim.version_pfc_avg * scale * workunit.fpops_est


def most_pfc(claim: Explanation, workunit: WorkunitFacts) -> float | None:
    """Return the most that counts of a claim, in FLOPs (a usual claim plus the allowed excess); None if unbounded."""
    return None if claim.room_jobs is None else usual_pfc(claim, workunit) * (1 + claim.room_jobs)


def room_jobs(record: HostVersionFacts, rules: Rules) -> float | None:
    """Return by how many usual jobs the record's next claim may exceed one; None if unbounded."""
    most = _most_lead_jobs(record, rules)
    if most is None:
        return None
    room = max(0.0, most - record.lead_jobs)
    return room if rules.confirmation_factor is None else min(room, rules.confirmation_factor - 1)


def count_lead(record: HostVersionFacts, claim: Explanation, workunit: WorkunitFacts, rules: Rules) -> None:
    """Count a decided claim with the host's factor in ``lead_jobs``. Whatever is above the bound was not granted for
    it.
    """
    most = _most_lead_jobs(record, rules)
    usual = usual_pfc(claim, workunit)
    if most is not None and claim.host_scale is not None and usual:
        record.lead_jobs = min(most, record.lead_jobs + (claim.claimed_pfc or 0.0) / usual - 1)


def _most_lead_jobs(record: HostVersionFacts, rules: Rules) -> float | None:
    most = rules.max_lead_jobs
    return None if most is None else min(most, rules.max_lead_share * max(record.pfc.n, record.et.n))
