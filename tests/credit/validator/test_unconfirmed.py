"""The end of a wait in which nobody confirmed a single result, or the results of a pair."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from itertools import combinations
from typing import Final

import pytest
from django.conf import settings

from credit.engine.explanation import GrantRule
from credit.models import App, AppVersion, Comparison, ConfirmingPair, Outcome, Result, ServerState, Workunit
from credit.previews.facts import replay_of
from credit.previews.settings import checked
from credit.statistics import pass_log
from portal.models import Host
from scheduler.lifecycle import transitioner, unsendable
from tests.support.validator_runs import LATER, RIGHT, WRONG, differences, done, record, report, validate

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("registered_functions")]

FUNCTION: Final = f"{__name__}.failing"
HOUR: Final = dt.timedelta(hours=1)


def failing(first: object, second: object) -> bool:
    raise OSError("the reference file is missing")


def single(app: App, version: AppVersion, hosts: list[Host]) -> Workunit:
    """A trusted computer's job that took ten times as long as its usual ones."""
    record(hosts[0], version, pfc_n=50, pfc_avg=1.0, consecutive_valid=500, error_rate=0.0)
    return done(app, version, hosts[0], elapsed_secs=30_000.0, sent_at=LATER - dt.timedelta(days=1))


def pair(app: App, version: AppVersion, hosts: list[Host]) -> Workunit:
    """Two agree who do so too often; one claims two thirds of what the other claims."""
    low, high = sorted(host.owner_id for host in hosts[:2])
    ConfirmingPair.objects.create(
        app=app, one_id=low, other_id=high, together=20, expected=0.1, chance=1e-20, needs_another=True
    )
    workunit = done(app, version, hosts[0], min_quorum=2)
    report(workunit, version, hosts[1], elapsed_secs=2000.0)
    return workunit


Scene = Callable[[App, AppVersion, list[Host]], Workunit]
SCENES: Final = pytest.mark.parametrize(
    ("scene", "rule"), [(single, GrantRule.UNCONFIRMED_SINGLE), (pair, GrantRule.UNCONFIRMED_PAIR)]
)


def begin(scene: Scene, app: App, version: AppVersion, hosts: list[Host]) -> tuple[Workunit, dt.datetime]:
    """The workunit, which waits, and the end of the wait."""
    App.objects.update(adaptive_replication=True)
    workunit = scene(app, version, hosts)
    assert validate(app).nwaiting == 1
    transitioner.run(LATER)
    return workunit, LATER + settings.PAIR_WAIT


@SCENES
def test_a_preview_grants_what_was_granted(
    scene: Scene, rule: GrantRule, app: App, version: AppVersion, hosts: list[Host]
) -> None:
    workunit, end = begin(scene, app, version, hosts)
    done(app, version, hosts[2], elapsed_secs=1000.0)  # one that nobody had to confirm
    validate(app, end)
    window = pass_log.window(app.pk, 100)
    assert window is not None
    as_is = [app.credit_system, app.credit_system]
    app.refresh_from_db()
    replay = replay_of(app, checked(app, {"app": {"credit_system": as_is}}), *window[:2])
    outcomes = [outcome for logged in pass_log.read(app.pk, *window[:2]) for outcome in replay.step(logged)]
    granted = dict(workunit.results.exclude(granted_credit=None).values_list("pk", "granted_credit"))
    assert granted
    assert {o.result: o.after.credit for o in outcomes if o.workunit == workunit.pk} == granted
    assert {o.after.grant_rule for o in outcomes if o.workunit == workunit.pk} == {rule}
    assert {o.after.grant_rule for o in outcomes if o.workunit != workunit.pk} == {GrantRule.SINGLE_CLAIM}


def fail_to_compare(app: App, times: Sequence[dt.datetime]) -> None:
    """Passes at these times whose comparing function fails; afterwards outputs can be compared."""
    App.objects.update(comparison=Comparison.CUSTOM, comparison_function=FUNCTION)
    for at in times:
        assert validate(app, at).nfaults == 1
    App.objects.update(comparison=Comparison.BITWISE)


@SCENES
def test_outputs_that_cannot_be_compared_at_its_end_are_decided_once_they_can(
    scene: Scene, rule: GrantRule, app: App, version: AppVersion, hosts: list[Host]
) -> None:
    workunit, end = begin(scene, app, version, hosts)
    fail_to_compare(app, [end, end + HOUR])
    assert validate(app, end + 2 * HOUR).ndecided == 1
    assert set(workunit.results.exclude(granted_credit=None).values_list("grant_rule", flat=True)) == {rule}
    workunit.refresh_from_db()
    assert (workunit.confirm_until, workunit.validate_after, workunit.validate_fault) == (None, None, "")
    assert differences() == []


@SCENES
def test_a_result_that_comes_while_they_cannot_be_compared_is_heard(
    scene: Scene, rule: GrantRule, app: App, version: AppVersion, hosts: list[Host]
) -> None:
    workunit, end = begin(scene, app, version, hosts)
    fail_to_compare(app, [end])
    workunit.results.filter(host=None).delete()
    report(workunit, version, hosts[2], output_digest=WRONG)
    Workunit.objects.filter(pk=workunit.pk).update(transition_at=end)
    transitioner.run(end)
    made = validate(app, end + HOUR)
    # It disagrees: another one has to decide.
    assert (made.nworkunits, made.ndecided, made.nvalid) == (1, 0, 0)
    assert not workunit.results.exclude(granted_credit=None).exists()


def copy_of(workunit: Workunit) -> Result:
    """The one copy that was made of it, and that nobody has yet."""
    return workunit.results.get(server_state=ServerState.UNSENT)


def send(copy: Result, host: Host, at: dt.datetime, days: int = 7) -> None:
    Result.objects.filter(pk=copy.pk).update(
        server_state=ServerState.IN_PROGRESS,
        host=host,
        user=host.owner,
        sent_at=at,
        deadline_at=at + dt.timedelta(days=days),
    )


def receive(copy: Result, version: AppVersion, at: dt.datetime, **fields: object) -> None:
    """Report it; the transitioner has not looked yet."""
    Result.objects.filter(pk=copy.pk).update(
        server_state=ServerState.OVER,
        app_version=version,
        received_at=at,
        elapsed_secs=3000.0,
        peak_flops=4e9,
        **{"outcome": Outcome.SUCCESS, "output_digest": RIGHT, **fields},
    )
    Workunit.objects.filter(pk=copy.workunit_id).update(transition_at=at)


def rules_of(workunit: Workunit) -> set[int | None]:
    return set(workunit.results.exclude(granted_credit=None).values_list("grant_rule", flat=True))


@SCENES
def test_one_that_disagrees_at_the_last_moment_is_heard_before_the_transitioner_looks(
    scene: Scene, rule: GrantRule, app: App, version: AppVersion, hosts: list[Host]
) -> None:
    workunit, end = begin(scene, app, version, hosts)
    copy = copy_of(workunit)
    send(copy, hosts[2], LATER)
    receive(copy, version, end, output_digest=WRONG)
    made = validate(app, end)
    assert (made.ndecided, made.nvalid, made.ninvalid) == (0, 0, 0)
    transitioner.run(end)
    assert copy_of(workunit)


@SCENES
@pytest.mark.parametrize("is_confirmed", [True, False])
def test_a_copy_in_progress_is_waited_for_until_its_deadline_and_no_other_is_made(
    scene: Scene, rule: GrantRule, is_confirmed: bool, app: App, version: AppVersion, hosts: list[Host]
) -> None:
    workunit, end = begin(scene, app, version, hosts)
    copy = copy_of(workunit)
    sent_at = end - HOUR
    send(copy, hosts[2], sent_at)
    assert (validate(app, end).ndecided, validate(app, end + HOUR).nworkunits) == (0, 0)
    due_at = sent_at + dt.timedelta(days=7)
    if is_confirmed:
        receive(copy, version, due_at - HOUR)
        transitioner.run(due_at - HOUR)
        assert validate(app, due_at - HOUR).ndecided == 1
        assert rules_of(workunit).isdisjoint({rule})
    else:
        late = due_at + dt.timedelta(seconds=1)
        transitioner.run(late)
        assert not workunit.results.filter(server_state=ServerState.UNSENT).exists()
        assert validate(app, late).ndecided == 1
        assert rules_of(workunit) == {rule}
    assert differences() == []


@SCENES
def test_a_copy_that_was_sent_after_the_end_is_not_waited_for(
    scene: Scene, rule: GrantRule, app: App, version: AppVersion, hosts: list[Host]
) -> None:
    workunit, end = begin(scene, app, version, hosts)
    send(copy_of(workunit), hosts[2], end + HOUR)
    assert validate(app, end + HOUR).ndecided == 1
    assert rules_of(workunit) == {rule}


@SCENES
def test_one_that_is_unfit_does_not_take_the_end_away(
    scene: Scene, rule: GrantRule, app: App, version: AppVersion, hosts: list[Host]
) -> None:
    workunit, end = begin(scene, app, version, hosts)
    copy = copy_of(workunit)
    send(copy, hosts[2], LATER)
    receive(copy, version, LATER + HOUR, output_digest=None)
    transitioner.run(LATER + HOUR)
    Workunit.objects.update(validate_fault="the storage failed")  # at an earlier try
    made = validate(app, LATER + HOUR)
    assert (made.nworkunits, made.ndecided, made.ninvalid) == (1, 0, 1)
    workunit.refresh_from_db()
    assert workunit.validate_fault == ""
    copy.refresh_from_db()
    assert copy.outcome == Outcome.VALIDATE_ERROR
    transitioner.run(LATER + HOUR)
    assert copy_of(workunit).pk != copy.pk
    assert validate(app, end - HOUR).nworkunits == 0
    assert validate(app, end).ndecided == 1
    assert rules_of(workunit) == {rule}
    assert differences() == []


@SCENES
def test_copies_that_others_give_back_do_not_end_the_job(
    scene: Scene, rule: GrantRule, app: App, version: AppVersion, hosts: list[Host]
) -> None:
    workunit, end = begin(scene, app, version, hosts)
    Workunit.objects.update(max_total_results=workunit.results.count())
    Result.objects.filter(pk=copy_of(workunit).pk).update(server_state=ServerState.OVER, outcome=Outcome.NO_REPLY)
    Workunit.objects.update(transition_at=LATER)
    transitioner.run(LATER)
    workunit.refresh_from_db()
    assert (workunit.error_mask, workunit.results.filter(server_state=ServerState.UNSENT).count()) == (0, 0)
    assert validate(app, end).ndecided == 1
    assert rules_of(workunit) == {rule}


@SCENES
def test_it_ends_though_the_app_gets_no_more_jobs(
    scene: Scene, rule: GrantRule, app: App, version: AppVersion, hosts: list[Host]
) -> None:
    workunit, end = begin(scene, app, version, hosts)
    App.objects.update(is_deprecated=True)
    assert unsendable.run(LATER) == 1
    transitioner.run(LATER)
    assert not workunit.results.filter(server_state=ServerState.UNSENT).exists()
    assert validate(app, end).ndecided == 1
    assert rules_of(workunit) == {rule}


def test_a_pair_that_stays_away_until_it_is_no_longer_listed_gets_no_more(
    app: App, version: AppVersion, hosts: list[Host]
) -> None:
    workunit, end = begin(pair, app, version, hosts)
    ConfirmingPair.objects.all().delete()
    validate(app, end)
    assert rules_of(workunit) == {GrantRule.UNCONFIRMED_PAIR}


def test_a_third_of_their_own_ends_no_wait_and_begins_none(app: App, version: AppVersion, hosts: list[Host]) -> None:
    workunit, end = begin(pair, app, version, hosts)
    for one, other in combinations(sorted(host.owner_id for host in hosts[:3]), 2):
        ConfirmingPair.objects.get_or_create(
            app=app,
            one_id=one,
            other_id=other,
            defaults={"together": 20, "expected": 0.1, "chance": 1e-20, "needs_another": True},
        )
    copy = copy_of(workunit)
    send(copy, hosts[2], LATER)
    receive(copy, version, LATER + HOUR)
    transitioner.run(LATER + HOUR)
    assert validate(app, LATER + HOUR).nwaiting == 1
    workunit.refresh_from_db()
    assert (workunit.min_quorum, workunit.confirm_until) == (4, end)
    assert validate(app, end).nvalid == 3
    assert rules_of(workunit) == {GrantRule.UNCONFIRMED_PAIR}
    assert differences() == []


def test_a_pair_gets_no_more_than_each_would_alone(app: App, version: AppVersion, hosts: list[Host]) -> None:
    AppVersion.objects.update(pfc_n=1000, pfc_avg=1.0)
    # Ahead of usual jobs by 3.5 of the 40 jobs that a record may be.
    for host in hosts[:2]:
        record(host, version, pfc_n=200, pfc_avg=1.0, lead_jobs=36.5)
    low, high = sorted(host.owner_id for host in hosts[:2])
    ConfirmingPair.objects.create(
        app=app, one_id=low, other_id=high, together=20, expected=0.1, chance=1e-20, needs_another=True
    )
    # 25,000 s at 4 GFLOPS are ten usual jobs.
    workunit = done(app, version, *hosts[:2], min_quorum=2, elapsed_secs=25_000.0, sent_at=LATER - dt.timedelta(days=1))
    validate(app)
    validate(app, LATER + settings.PAIR_WAIT)
    granted = workunit.results.filter(grant_rule=GrantRule.UNCONFIRMED_PAIR).values_list("granted_credit", flat=True)
    # A usual job, 10e12 FLOPs, and 3.5 more
    assert list(granted) == pytest.approx([4.5 * 1e13 * 200 / 86400e9] * 2)
