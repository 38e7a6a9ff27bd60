"""The list of pairs who confirm each other, and its effect on the validator."""

from __future__ import annotations

import datetime as dt
from itertools import combinations

import pytest
from pytest_django import Settings

from credit.engine.explanation import GrantRule
from credit.models import App, AppVersion, ConfirmingPair, Outcome, UserCredit, ValidateState, Workunit
from credit.statistics import pairs
from portal.models import Host
from scheduler.lifecycle import transitioner
from tests.support.credit_factories import make_app, make_success, make_version, make_workunit
from tests.support.validator_runs import LATER, RIGHT, WRONG, differences, done, report, validate, volunteers
from tools.benchmarks.harness.statements import statements

pytestmark = pytest.mark.django_db


def confirmed(app: App, version: AppVersion, *hosts: Host, **fields: object) -> Workunit:
    workunit = make_workunit(app)
    for host in hosts:
        make_success(workunit, host, app_version=version, validate_state=ValidateState.VALID, **fields)
    return workunit


def meet(app: App, version: AppVersion, honest: list[Host], pair: list[Host], njobs: int) -> None:
    """Each two honest volunteers have one workunit in common, the pair all of its own, and one with others each."""
    for one, other in combinations(honest, 2):
        confirmed(app, version, one, other)
    for _ in range(njobs):
        confirmed(app, version, *pair)
    for one, other in zip(pair, honest, strict=False):
        confirmed(app, version, one, other)


def test_a_pair_that_confirms_each_other_is_listed_and_nobody_else(app: App, version: AppVersion) -> None:
    *honest, one, other = volunteers(12)
    meet(app, version, honest, [one, other], 8)
    assert pairs.count_all(LATER) == 1
    row = ConfirmingPair.objects.get()
    assert (row.one_id, row.other_id, row.together) == (*sorted((one.owner_id, other.owner_id)), 8)
    # 45 + 8 + 2 workunits have 110 results; of the pair's 9 others each, 9 / 101 are the partner's by chance.
    assert row.expected == pytest.approx(9 * 9 / 101)
    # 9 × (9 / 101)^8 × (92 / 101) + (9 / 101)^9, of 66 pairs
    assert row.chance == pytest.approx(66 * (9 * (9 / 101) ** 8 * 92 / 101 + (9 / 101) ** 9))
    assert row.needs_another is False
    assert pairs.renew(app.pk, LATER) == ConfirmingPair.objects.count() == 1


def test_the_setting_says_which_pairs_need_a_third(app: App, version: AppVersion, settings: Settings) -> None:
    *honest, one, other = volunteers(12)
    meet(app, version, honest, [one, other], 8)
    settings.PAIR_CHANCE = 0.01
    pairs.renew(app.pk, LATER)
    assert ConfirmingPair.objects.get().needs_another
    settings.PAIR_CHANCE = 0
    pairs.renew(app.pk, LATER)
    assert not ConfirmingPair.objects.get().needs_another


def test_old_results_other_apps_and_single_results_do_not_count(app: App, version: AppVersion) -> None:
    *honest, one, other = volunteers(12)
    elsewhere = make_version(make_app(name="boreal"))
    meet(app, version, honest, [one, other], 0)
    for _ in range(8):
        confirmed(app, version, one, other, received_at=LATER - pairs.LOOKED_BACK - dt.timedelta(seconds=1))
        confirmed(elsewhere.app, elsewhere, one, other)
        confirmed(app, version, one)
    assert pairs.renew(app.pk, LATER) == 0


def test_the_list_has_a_limit_and_keeps_the_least_likely(
    app: App, version: AppVersion, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pairs, "MAX_PAIRS_PER_APP", 1)
    *honest, one, other, third, fourth = volunteers(14)
    meet(app, version, honest, [one, other], 9)
    meet(app, version, [], [third, fourth], 4)
    assert pairs.renew(app.pk, LATER) == 1
    assert ConfirmingPair.objects.get().together == 9


def listed(app: App, one: Host, other: Host) -> None:
    low, high = sorted((one.owner_id, other.owner_id))
    ConfirmingPair.objects.create(
        app=app, one_id=low, other_id=high, together=20, expected=0.1, chance=1e-20, needs_another=True
    )


@pytest.mark.parametrize(("output", "nvalid"), [(RIGHT, 3), (WRONG, 0)], ids=["agrees", "differs"])
def test_what_a_pair_agrees_on_is_paid_when_a_third_agrees(
    app: App, version: AppVersion, output: bytes, nvalid: int
) -> None:
    one, other, third, _ = volunteers(4)
    listed(app, one, other)
    workunit = done(app, version, one, other)
    made = validate(app)
    assert (made.ndecided, made.nwaiting, made.credit) == (0, 1, 0.0)
    transitioner.run(LATER)
    workunit.refresh_from_db()
    assert (workunit.min_quorum, workunit.target_nresults, workunit.results.count()) == (3, 3, 3)
    workunit.results.filter(host=None).delete()
    assert validate(app).nworkunits == 0
    report(workunit, version, third, output_digest=output)
    Workunit.objects.filter(pk=workunit.pk).update(transition_at=LATER)
    transitioner.run(LATER)
    assert validate(app).nvalid == nvalid
    assert UserCredit.objects.filter(total_credit__gt=0).count() == nvalid
    assert differences() == []


def test_a_pair_that_nobody_confirms_in_time_gets_the_smaller_claim(
    app: App, version: AppVersion, settings: Settings
) -> None:
    one, other = volunteers(2)
    listed(app, one, other)
    workunit = done(app, version, one)
    report(workunit, version, other, elapsed_secs=2000.0)
    Workunit.objects.update(min_quorum=2, target_nresults=2)
    validate(app)
    transitioner.run(LATER)
    late = LATER + settings.PAIR_WAIT
    assert validate(app, late - dt.timedelta(seconds=1)).nworkunits == 0
    assert validate(app, late).nvalid == 2
    rows = workunit.results.exclude(granted_credit=None)
    assert {row.grant_rule for row in rows} == {GrantRule.UNCONFIRMED_PAIR}
    # 2,000 s at 4 GFLOPS, without any factor yet
    assert [row.granted_credit for row in rows] == pytest.approx([8e12 * 200 / 86400e9] * 2)
    assert differences() == []
    # The third one is not needed any more.
    transitioner.run(late)
    assert set(workunit.results.filter(host=None).values_list("outcome", flat=True)) == {Outcome.DIDNT_NEED}


def test_others_are_paid_as_ever_and_a_pass_has_as_many_statements(app: App, version: AppVersion) -> None:
    one, other, third, fourth = volunteers(4)
    done(app, version, one, other, third, fourth)
    validate(app)
    done(app, version, one, third)
    before = statements(lambda: validate(app))
    listed(app, one, other)
    done(app, version, one, third)
    done(app, version, other, fourth)
    assert statements(lambda: validate(app)) == before
    assert UserCredit.objects.filter(total_credit__gt=0).count() == 4


def test_the_list_goes_with_an_account(app: App) -> None:
    one, other, *_ = volunteers(4)
    listed(app, one, other)
    one.owner.delete()
    assert not ConfirmingPair.objects.exists()
