"""The end of a wait in which nobody confirmed a single result, or what two of a pair agree on."""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from typing import Final

import pytest
from django.conf import settings

from credit.engine.explanation import GrantRule
from credit.models import App, AppVersion, Comparison, ConfirmingPair, Workunit
from credit.previews.facts import replay_of
from credit.previews.settings import checked
from credit.statistics import pass_log
from portal.models import Host
from scheduler.lifecycle import transitioner
from tests.support.validator_runs import LATER, WRONG, differences, done, record, report, validate

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
    assert (workunit.awaits_confirmation, workunit.validate_after, workunit.validate_fault) == (False, None, "")
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
