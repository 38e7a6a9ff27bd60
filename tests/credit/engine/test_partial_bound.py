"""Partial credit of all jobs of a computer, bounded by what its processors can have done."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from credit.engine.facts import ResultFacts
from credit.engine.partial import MAX_SAVED_SECS, MachineTime, PartialClaim, believed_instances, claim_partial
from credit.engine.rules import Rules, credit_of
from tests.support.credit_engine_facts import DAY, NOW, about, app, record, result, version, workunit

HOUR = 3600.0
PEAK = 1e9


def job(sent_at: float = NOW - HOUR, **fields: Any) -> ResultFacts:
    """A job in progress, at 1 GFLOPS; both its factors are 1."""
    given = {"peak_flops": PEAK, "sent_at": sent_at, "received_at": NOW, **fields}
    return result(record(1000, 1.0), version(1000, 1.0, 1.0), **given)


def asked(
    one: ResultFacts, machine: MachineTime, secs: float, now: float = NOW, rules: Rules | None = None
) -> PartialClaim | None:
    return claim_partial(app(rules or Rules.published()), workunit(), one, machine, secs, now)


@pytest.mark.parametrize(("rules", "hours"), [(Rules.published(), 1), (Rules.letter(), 50), (Rules.deployed(), 50)])
def test_fifty_jobs_on_one_processor_get_the_credit_of_one(rules: Rules, hours: int) -> None:
    # 50 jobs, all sent an hour ago, each name a run time of an hour.
    until, credit = None, 0.0
    for _ in range(50):
        part = asked(job(peak_flops=2e9), MachineTime(1.0, 1.0, until, NOW - HOUR), HOUR, rules=rules)
        if part is not None:
            until, credit = part.machine_credited_until, credit + part.grant.credit
    assert credit == about(credit_of(hours * HOUR * 2e9))


@pytest.mark.parametrize(
    ("claimed", "shown", "believed"),
    # Whatever a client says, four without jobs that show more; fewer if it says fewer, and at least one.
    [(1024, 0.0, 4), (1024, 3.9, 4), (1024, 8.3, 8.3), (2, 0.0, 2), (2, 8.3, 2), (0, 0.0, 1)],
)
def test_a_computer_has_four_processors_until_its_jobs_show_more(claimed: float, shown: float, believed: float) -> None:
    assert believed_instances(claimed, shown) == believed


def test_four_processors_do_four_jobs_at_a_time() -> None:
    until, got = None, []
    for _ in range(6):
        part = asked(job(), MachineTime(4.0, 1.0, until, NOW - HOUR), 2700.0)
        got.append(part.credited_elapsed_secs if part else 0.0)
        until = part.machine_credited_until if part else until
    # 4 × 3,600 s = 5 × 2,700 s + 900 s
    assert got == [about(2700)] * 5 + [about(900)]


def test_what_was_cut_off_is_credited_when_there_is_time_again() -> None:
    part = asked(job(), MachineTime(1.0, 1.0, NOW - 600, NOW - HOUR), HOUR)
    assert part is not None
    assert part.credited_elapsed_secs == about(600)
    later = replace(job(), partial_elapsed_secs=600.0, partial_credit=part.grant.credit)
    rest = asked(later, MachineTime(1.0, 1.0, part.machine_credited_until, NOW - HOUR), HOUR, NOW + 4000)
    assert rest is not None
    assert rest.credited_elapsed_secs == about(HOUR)


def test_the_first_parts_are_paid_from_the_time_the_first_job_was_sent() -> None:
    part = asked(job(NOW - DAY), MachineTime(1.0, 1.0, None, NOW - DAY), DAY)
    assert part is not None
    assert part.credited_elapsed_secs == about(DAY)
    # The time before the first of the jobs at hand was sent counts for none of them, however long the computer is idle.
    assert MachineTime(1.0, 1.0, NOW - 9 * DAY, NOW - HOUR).run_secs_left(NOW) == about(HOUR)


def test_no_more_than_thirty_days_are_saved() -> None:
    machine = MachineTime(2.0, 1.0, None, NOW - 100 * DAY)
    assert machine.run_secs_left(NOW) == about(2 * MAX_SAVED_SECS) == about(60 * DAY)


def test_a_job_for_all_processors_uses_the_time_of_all() -> None:
    machine = MachineTime(4.0, 4.0, None, NOW - HOUR)
    assert machine.run_secs_left(NOW) == about(HOUR)
    assert machine.credited_until_after(HOUR, NOW) == about(NOW)
    # Half a GPU for each of two jobs
    assert MachineTime(1.0, 0.5, None, NOW - HOUR).run_secs_left(NOW) == about(2 * HOUR)


def test_an_approximate_part_waits() -> None:
    # The version has no factor.
    young = replace(job(), version=version(50, 1.0, None))
    machine = MachineTime(1.0, 1.0, None, NOW - HOUR)
    assert asked(young, machine, HOUR) is None
    assert asked(young, machine, HOUR, rules=Rules.letter()) is not None
    assert asked(young, machine, HOUR, rules=Rules.deployed()) is not None


@dataclass(frozen=True)
class Message:
    """At which time after the one before, of which job, and which run time it names."""

    after_secs: float
    job: int
    elapsed_secs: float


MESSAGES = st.lists(
    st.builds(Message, st.floats(0, 20 * DAY), st.integers(0, 4), st.floats(0, 100 * DAY)), min_size=1, max_size=40
)


@given(MESSAGES, st.sampled_from([1.0, 3.0, 64.0]), st.lists(st.sampled_from([0.25, 1.0, 2.5]), min_size=5, max_size=5))
def test_no_more_is_credited_than_the_processors_had_time_for(
    messages: list[Message], ninstances: float, used: list[float]
) -> None:
    begin = now = NOW
    jobs = [job(begin) for _ in used]
    until: float | None = None
    device_secs = 0.0
    for message in messages:
        now += message.after_secs
        one = jobs[message.job]
        machine = MachineTime(ninstances, used[message.job], until, begin)
        part = claim_partial(app(), workunit(fpops_bound=1e20), one, machine, message.elapsed_secs, now)
        if part is None:
            continue
        new_secs = part.credited_elapsed_secs - one.partial_elapsed_secs
        assert part.credited_elapsed_secs <= message.elapsed_secs
        assert part.machine_credited_until <= now
        device_secs += new_secs * used[message.job]
        until = part.machine_credited_until
        total = one.partial_credit + part.grant.credit
        jobs[message.job] = replace(one, partial_elapsed_secs=part.credited_elapsed_secs, partial_credit=total)
        # Rounding: times are of 1e9 seconds, in steps of 2e-7.
        assert device_secs <= (now - begin) * ninstances + 1e-4
        run_secs = sum(each.partial_elapsed_secs for each in jobs)
        assert sum(each.partial_credit for each in jobs) <= credit_of(run_secs * PEAK) * (1 + 1e-9)
