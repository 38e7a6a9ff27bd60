"""A workunit whose data or comparison makes a pass fail waits in the retry queue, and all others continue."""

from __future__ import annotations

import datetime as dt
import hashlib
from math import inf, nan
from pathlib import Path
from typing import Any, Final

import pytest
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.db import IntegrityError, OperationalError, connection
from pytest_django import Settings

from credit.models import (
    App,
    AppVersion,
    Comparison,
    CreditSystem,
    HostAppVersion,
    Outcome,
    Platform,
    Result,
    RuleSet,
    ValidateState,
    Workunit,
)
from credit.statistics.feeder import feed
from credit.validator import passes
from portal.models import Host
from tests.support.credit_factories import NOON, make_version
from tests.support.validator_runs import LATER, differences, done, record, report, validate

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("registered_functions")]


def long_winded(first: object, second: object) -> bool:
    """A project's function that says all it knows when it fails, and quotes what it read."""
    raise ValueError("line 1 is no number: \x00" + "x" * 1000)


def swallowing(first: object, second: object) -> bool:
    """A project's function that notices a mistake of the database's, and leaves its transaction as it is."""
    try:
        with connection.cursor() as cursor:
            cursor.execute("INSERT INTO credit_platform (name) VALUES (NULL)")
    except IntegrityError:
        return False
    return True


@pytest.mark.parametrize("function", ["long_winded", "swallowing"])
def test_a_function_that_fails_in_any_way_keeps_its_workunit_waiting_and_no_pass_fails(
    function: str, app: App, version: AppVersion, hosts: list[Host]
) -> None:
    path = f"tests.credit.validator.test_failed_passes.{function}"
    App.objects.update(comparison=Comparison.CUSTOM, comparison_function=path)
    workunit = done(app, version, hosts[0])
    assert validate(app).nfaults == 1
    workunit.refresh_from_db()
    assert workunit.need_validate
    assert workunit.validate_after == LATER + dt.timedelta(hours=1)
    assert "no number" in workunit.validate_fault or "transaction" in workunit.validate_fault
    assert Platform.objects.count() == 1


@pytest.mark.parametrize("digest", [b"", b"short"])
def test_digests_that_are_none_are_equal_to_nothing(
    digest: bytes, app: App, version: AppVersion, hosts: list[Host]
) -> None:
    workunit = done(app, version, *hosts[:2], output_digest=digest)
    made = validate(app)
    assert (made.nvalid, made.ndecided) == (0, 0)
    assert set(workunit.results.values_list("outcome", flat=True)) == {Outcome.VALIDATE_ERROR}


def test_outputs_of_another_form_make_their_result_unfit_and_no_pass_fail(
    app: App, version: AppVersion, hosts: list[Host]
) -> None:
    App.objects.update(comparison=Comparison.TOLERANCE)
    workunit = done(app, version, *hosts[:2], min_quorum=1)
    strange = workunit.results.order_by("pk")[0]
    Result.objects.filter(pk=strange.pk).update(outputs=[{"name": "r_0", "nbytes": "many", "path": "x", "md5": "y"}])
    assert validate(app).nvalid == 1
    strange.refresh_from_db()
    assert (strange.outcome, strange.validate_state) == (Outcome.VALIDATE_ERROR, ValidateState.INIT)


def deliver(result: Result, text: bytes) -> str:
    path = default_storage.save(f"{result.name}_0", ContentFile(text))
    files = [{"name": f"{result.name}_0", "path": path, "nbytes": len(text), "md5": hashlib.md5(text).hexdigest()}]
    Result.objects.filter(pk=result.pk).update(outputs=files, output_digest=hashlib.md5(text).digest())
    return path


def test_a_late_result_whose_yardstick_is_gone_is_too_late_and_not_wrong(
    app: App, version: AppVersion, hosts: list[Host], settings: Settings, tmp_path: Path
) -> None:
    settings.MEDIA_ROOT = tmp_path
    App.objects.update(comparison=Comparison.TOLERANCE)
    workunit = done(app, version, hosts[0])
    path = deliver(workunit.results.get(), b"1.0")
    assert validate(app).nvalid == 1
    default_storage.delete(path)
    late = report(workunit, version, hosts[1])
    deliver(late, b"1.0000001")
    Workunit.objects.update(need_validate=True)
    validate(app)
    late.refresh_from_db()
    assert late.validate_state == ValidateState.TOO_LATE
    assert workunit.results.get(host=hosts[0]).validate_state == ValidateState.VALID
    assert HostAppVersion.objects.get(host=hosts[1]).error_rate == 0.1
    assert differences() == []


def test_a_workunit_that_no_pass_gets_over_is_queued_for_retry_and_the_others_go_on(
    app: App, version: AppVersion, hosts: list[Host]
) -> None:
    before, poison, *after = [done(app, version, *hosts[:2]) for _ in range(12)]
    # No type that the site knows: what reads it fails.
    poison.results.update(processor_type="abacus")
    made = [validate(app) for _ in range(4)]
    assert sum(report.nvalid for report in made) == 22
    assert sum(report.nfaults for report in made) == 1
    poison.refresh_from_db()
    assert (poison.need_validate, poison.validate_after) == (True, LATER + dt.timedelta(hours=1))
    assert "TypeError" in poison.validate_fault
    assert not Workunit.objects.filter(pk__in=[each.pk for each in (before, *after)], need_validate=True).exists()
    assert differences() == []
    # Repaired, it is decided like any other.
    poison.results.update(processor_type="CPU")
    assert validate(app, LATER + dt.timedelta(hours=2)).nvalid == 2


def test_a_row_that_the_database_refuses_queues_its_workunit_for_retry_and_no_other(
    app: App, version: AppVersion, hosts: list[Host]
) -> None:
    workunits = [done(app, version, *hosts[:2]) for _ in range(10)]
    refused = workunits[6].results.order_by("pk")[1]
    with connection.cursor() as cursor:
        cursor.execute("SET CONSTRAINTS ALL IMMEDIATE")
        rule = "ADD CONSTRAINT none_of_these CHECK (id <> %s OR validate_state = 0)"
        cursor.execute(f"ALTER TABLE credit_result {rule}", [refused.pk])
    while Workunit.objects.filter(need_validate=True, validate_after=None).exists():
        validate(app)
    workunits[6].refresh_from_db()
    assert workunits[6].need_validate
    assert workunits[6].validate_fault.startswith("IntegrityError: ")
    assert "none_of_these" in workunits[6].validate_fault
    assert Result.objects.filter(validate_state=ValidateState.VALID).count() == 18
    assert differences() == []


def test_a_database_that_fails_queues_nothing_for_retry(
    app: App, version: AppVersion, hosts: list[Host], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise OperationalError("deadlock detected")

    workunit = done(app, version, *hosts[:2])
    monkeypatch.setattr(passes, "read_results", fail)
    with pytest.raises(OperationalError, match="deadlock"):
        validate(app)
    workunit.refresh_from_db()
    assert workunit.validate_fault == ""


ODD: Final[list[dict[str, Any]]] = [
    *({"elapsed_secs": secs} for secs in (nan, inf, -inf, -1e304, 1e150, 1e304, 1e-300, None)),
    *({"cpu_secs": secs} for secs in (nan, inf, -1.0, 1e304, 0.0, None)),
    *({"peak_flops": flops} for flops in (nan, inf, -1.0, 0.0, 1e304, 1e9, 1e-300, None)),
    *({"fpops_cumulative": flops} for flops in (nan, inf, -1.0, 1e304)),
    {"fpops_per_cpu_sec": 1e304},
    {"sent_at": NOON + dt.timedelta(days=3)},
    {"received_at": NOON - dt.timedelta(days=3000)},
    {"app_version": None, "elapsed_secs": 1e304},
]


@pytest.mark.parametrize("system", list(CreditSystem))
@pytest.mark.parametrize("rule_set", list(RuleSet))
def test_numbers_that_no_computer_has_leave_nothing_undecided_and_the_books_hold(
    rule_set: str, system: str, app: App, hosts: list[Host]
) -> None:
    App.objects.update(
        rule_set=rule_set, credit_system=system, fixed_credit=3.0, max_credited_secs=1e4, min_avg_pfc=1.1
    )
    version = make_version(app, plan_class="mt", pfc_n=200, pfc_avg=1e25, pfc_scale=1e25)
    record(hosts[0], version, pfc_n=30, pfc_avg=1e-9, et_n=3, et_avg=0.1)
    for odd in ODD:
        done(app, None if "app_version" in odd else version, *hosts[:2]).results.update(**odd)
    made = validate(app)
    assert (made.ndecided, made.nvalid, made.nfaults) == (len(ODD), 2 * len(ODD), 0)
    assert differences() == []
    assert feed(NOON).napps == 1
