"""Partial credit by trickle-up messages, for jobs that run for months (credit document, "Peak FLOP Count", notes).

A trickle-up message names the job's run time so far, and claims credit for the new part. The final report claims the
rest, and the statistics get one sample of the whole job. The sum of all partial claims stays within the workunit's
bound, and that of all jobs of a computer within what its processors can have done. A message whose claim would be the
default or approximate grants nothing; the final report does.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf
from typing import Final

from credit.engine.claims.deployed import deployed_claim, effective_peak_flops
from credit.engine.claims.published import published_claim
from credit.engine.explanation import ClaimRule, Explanation, Grant, GrantRule
from credit.engine.facts import AppFacts, CreditSystem, ResultFacts, WorkunitFacts
from credit.engine.probation import is_on_probation
from credit.engine.rules import MAX_CREDIT, MIN_ELAPSED_SECS, credit_of

MAX_SAVED_SECS: Final = 30 * 86400.0
"""Processor time of a computer that has not been credited for this long can no longer be credited by trickle-up
messages.
"""


UNPROVEN_INSTANCES: Final = 4.0
"""Processors that a computer is believed to have until its valid jobs have shown more."""


def believed_instances(claimed: float, proven: float) -> float:
    """Return the processors that count: at most as many as the client claims, or as valid jobs have shown to run at
    once.
    """
    return min(max(claimed, 1.0), max(UNPROVEN_INSTANCES, proven))


@dataclass(frozen=True, slots=True)
class MachineTime:
    """The time of a computer's processors of one kind, CPUs or GPUs, that messages may still be credited for.

    It is believed to have ``ninstances`` of the kind (``believed_instances``), and the job was given ``used`` of them.
    Their time is credited up to ``credited_until`` (None: never). Its jobs in progress cannot have run before the first
    of them was sent.
    """

    ninstances: float
    used: float
    credited_until: float | None
    first_sent_at: float

    def _since(self, now: float) -> float:
        since = max(self.first_sent_at, now - MAX_SAVED_SECS)
        return since if self.credited_until is None else max(since, self.credited_until)

    def run_secs_left(self, now: float) -> float:
        """Return the run time of the job that can still be credited."""
        return max(0.0, now - self._since(now)) * self.ninstances / self.used

    def credited_until_after(self, run_secs: float, now: float) -> float:
        """Return ``credited_until`` after the job was credited for ``run_secs`` more run time."""
        return min(now, self._since(now) + run_secs * self.used / self.ninstances)


@dataclass(slots=True)
class PartialClaim:
    """The grant for a trickle-up message, and how much run time is credited with it.

    ``machine_credited_until``: the new ``MachineTime.credited_until``. ``is_provisional``: it is taken back unless the
    job ends with a valid result, because the computer's record is on probation.
    """

    grant: Grant
    credited_elapsed_secs: float
    claim: Explanation
    machine_credited_until: float
    is_provisional: bool = False


def claim_partial(
    app: AppFacts,
    workunit: WorkunitFacts,
    result: ResultFacts,
    machine: MachineTime,
    elapsed_secs: float,
    now: float,
) -> PartialClaim | None:
    """Return the grant for a trickle-up message that names this run time, or None. Changes nothing.

    ``result`` is the job in progress with the part credited so far; its run time is not read. Only for the third credit
    system: the others count what is known at the end.
    """
    if workunit.is_own or app.credit_system is not CreditSystem.CREDITNEW or not MIN_ELAPSED_SECS <= elapsed_secs < inf:
        return None
    peak, _ = effective_peak_flops(result, app.rules)
    if not 0 < peak < inf:
        return None
    elapsed = min(elapsed_secs, now - result.sent_at, workunit.fpops_bound / peak)
    if app.rules.bounds_partial_credit:
        elapsed = min(elapsed, result.partial_elapsed_secs + machine.run_secs_left(now))
    if not elapsed > result.partial_elapsed_secs:
        return None
    claim = _claim(app, workunit, replace(result, elapsed_secs=elapsed, received_at=now, partial_credit=0.0), now)
    if claim.claim_rule < ClaimRule.ANONYMOUS_NORMALISED or not claim.claimed_pfc:
        return None
    if claim.is_approximate and app.rules.approximate_parts_wait:
        return None
    credit = credit_of(claim.claimed_pfc)
    room = max(0.0, min(app.rules.max_granted_credit or MAX_CREDIT, MAX_CREDIT) - result.partial_credit)
    until = machine.credited_until_after(elapsed - result.partial_elapsed_secs, now)
    record = result.host_version
    is_provisional = app.rules.bounds_partial_credit and (record is None or is_on_probation(record, now, app.rules))
    granted = Grant(min(credit, room), GrantRule.PARTIAL, credit > room)
    return PartialClaim(granted, elapsed, claim, until, is_provisional)


def _claim(app: AppFacts, workunit: WorkunitFacts, so_far: ResultFacts, now: float) -> Explanation:
    # Dividing and multiplying by the peak may round to just above the bound.
    padded = replace(workunit, fpops_bound=workunit.fpops_bound * (1 + 1e-12))
    if app.rules.claims_as_server:
        return deployed_claim(app, padded, so_far)
    return published_claim(app, padded, so_far, now)
