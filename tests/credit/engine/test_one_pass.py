"""A pass over a batch: the order of its workunits, late results, single results that wait, results that are wrong."""

from __future__ import annotations

from math import nan
from typing import Any

import pytest

from credit.engine.explanation import GrantRule
from credit.engine.facts import AppFacts, ResultFacts
from credit.engine.passes import ComparedWorkunit, PassDecisions, add_samples, count_for_newer, decide_batch
from credit.engine.rules import Rules
from credit.engine.states import ValidateState
from tests.support.credit_engine_facts import BOUND, CREDIT_OF_EST, EST, NOW, about, app, record, result, version

VALID, INVALID, INCONCLUSIVE, INIT, TOO_LATE = (
    *(ValidateState.VALID, ValidateState.INVALID, ValidateState.INCONCLUSIVE),
    *(ValidateState.INIT, ValidateState.TOO_LATE),
)


def compared(id_: int, places: range, *states: ValidateState, **fields: Any) -> ComparedWorkunit:
    """A workunit with a quorum of as many as it has results."""
    quorum = fields.pop("min_quorum", len(states))
    return ComparedWorkunit(EST, BOUND, quorum, quorum, 0.0, id=id_, places=places, states=states, **fields)


def decide(facts: AppFacts, workunits: list[ComparedWorkunit], *results: ResultFacts) -> PassDecisions:
    return decide_batch(facts, workunits, results, NOW)


def test_each_workunit_sees_the_records_as_the_one_before_left_them_and_versions_as_the_pass_began() -> None:
    # The tenth sample is that of the first workunit; only then the host's average counts: 2 / 1.
    host, ran = record(9, 1.0), version(100, 2.0, 1.0)
    decided = decide(
        app(), [compared(1, range(1), VALID), compared(2, range(1, 2), VALID)], result(host, ran), result(host, ran)
    )
    assert [claim.host_scale for claim in decided.claims if claim is not None] == [None, 2.0]
    assert (ran.pfc.n, ran.samples) == (100, [1.0, 1.0])
    add_samples(app(), ran, ran.pfc)
    assert ran.pfc.n == 102


def test_what_becomes_of_each_result_is_told_at_its_place() -> None:
    ran = version(100, 1.0, 1.0)
    results = [result(record(20, 1.0), ran) for _ in range(7)]
    batch = [
        compared(7, range(3), VALID, INVALID, VALID, canonical=0),
        compared(8, range(3, 5), INCONCLUSIVE, INCONCLUSIVE),
        compared(9, range(5, 7), INVALID, INIT),
    ]
    decided = decide(app(), batch, *results)
    assert decided.workunits == [(7, 0, about(CREDIT_OF_EST)), (8, None, None), (9, None, None)]
    assert dict(zip(decided.places, decided.states, strict=True)) == {
        **{0: VALID, 2: VALID, 1: INVALID, 3: INCONCLUSIVE, 4: INCONCLUSIVE},
        5: INVALID,  # and 6 waits for another one, as it is
    }
    assert (decided.granted_places, decided.credits_due) == ([0, 2], [about(CREDIT_OF_EST)] * 2)


@pytest.mark.parametrize(("earlier", "credit"), [(7.0, 7.0), (nan, 0.0)])
def test_late_results_get_what_the_canonical_one_was_granted(earlier: float, credit: float) -> None:
    results = [result(record(), version(), partial_credit=3.0) for _ in range(2)]
    late = compared(1, range(2), VALID, TOO_LATE, earlier_credit=earlier)
    decided = decide(app(), [late], *results)
    assert (decided.workunits, decided.states) == ([(1, None, None)], [VALID, TOO_LATE])
    # Of 7 credits 3 came while it ran.
    assert (decided.credits, decided.credits_due) == ([credit, None], [max(0.0, credit - 3.0)])


@pytest.mark.parametrize(("rules", "expected"), [(Rules.published(), [0, 0]), (Rules.deployed(), [0, 1])])
def test_late_results_of_one_host_share_what_was_there_before_but_by_the_deployed_rules(
    rules: Rules, expected: list[int]
) -> None:
    host, ran = record(), version()
    late = compared(1, range(2), VALID, VALID, earlier_credit=1.0)
    decided = decide(app(rules), [late], *[result(host, ran, peak_flops=2e9)] * 2)
    assert [claim.host_pfc_n for claim in decided.claims if claim is not None] == expected


def test_a_single_result_that_is_far_from_the_averages_waits_and_leaves_no_trace() -> None:
    host, ran = record(20, 1.0), version(100, 1.0, 1.0)
    usual, unusual = result(host, ran), result(host, ran, 11_000.0)
    batch = [compared(1, range(1), VALID), compared(2, range(1, 2), VALID), compared(3, range(1, 2), INVALID)]
    decided = decide(app(), batch, usual, unusual)
    assert (decided.waiting_ids, [id_ for id_, *_ in decided.workunits]) == ([2], [1, 3])
    assert (host.pfc.n, ran.samples) == (21, [1.0])
    # Where jobs have one result, nobody could confirm it.
    assert decide(app(target_nresults=1), batch[1:2], usual, unusual).waiting_ids == []


@pytest.mark.parametrize(("quorum", "rule"), [(2, GrantRule.MEAN_OF_NORMAL), (3, GrantRule.UNCONFIRMED_PAIR)])
def test_after_its_wait_a_pair_gets_the_usual_mean_if_as_many_agree_as_were_to(quorum: int, rule: GrantRule) -> None:
    ran, waited = version(100_000, 1.0, 1.0), compared(1, range(2), VALID, VALID)
    waited.has_waited, waited.min_quorum = True, quorum
    decided = decide(app(), [waited], result(record(20, 1.0), ran), result(record(20, 1.0), ran, 1200.0))
    assert decided.grant_rules == [rule] * 2


@pytest.mark.parametrize(("rules", "share"), [(Rules.published(), 0.01), (Rules.letter(), 0.0)])
def test_a_wrong_result_counts_for_records_of_newer_versions_where_every_ending_counts(
    rules: Rules, share: float
) -> None:
    newer = record()
    count_for_newer(app(rules), [newer])
    assert newer.failing_share == about(share)


def test_the_parts_of_a_batch_are_told_as_one() -> None:
    results = [result(record(), version()) for _ in range(2)]
    whole = decide(app(), [compared(1, range(1), VALID)], *results)
    whole.extend(decide(app(), [compared(2, range(1, 2), VALID)], *results))
    assert ([id_ for id_, *_ in whole.workunits], whole.places) == ([1, 2], [0, 1])
