"""check_credit finds what does not add up."""

from __future__ import annotations

from io import StringIO
from math import inf, nan

import psycopg
import pytest
from django.core.management import CommandError, call_command
from django.db.models import F, Model

from credit.models import App, AppVersion, HostCredit, Result, UserCredit, Workunit
from credit.statistics import check
from portal.databases.params import psycopg_params
from portal.extras import ArchivedCredit
from portal.models import Host, User
from scheduler.apps import SchedulerConfig
from tests.support.credit_factories import make_app, make_version
from tests.support.validator_runs import differences, done, validate, volunteers

pytestmark = pytest.mark.django_db


@pytest.fixture
def app() -> App:
    """With two workunits, of two results each, that were validated."""
    app = make_app()
    version = make_version(app)
    hosts = volunteers(2)
    for _ in range(2):
        done(app, version, *hosts)
    validate(app)
    return app


def test_what_the_validator_leaves_is_consistent(app: App) -> None:
    out = StringIO()
    call_command("check_credit", stdout=out)
    assert out.getvalue() == "Validated credit is consistent.\n"


@pytest.mark.parametrize(
    ("model", "change", "found"),
    [
        (UserCredit, {"total_credit": F("total_credit") + 0.001}, "user {pk}: has"),
        (HostCredit, {"total_credit": 0}, "host {pk}: has 0"),
        (Result, {"granted_credit": None, "granted_at": None}, "result {pk}: it is valid, but was not granted"),
        (Result, {"granted_credit": F("granted_credit") * 2}, "result {pk}: it is valid, but was not granted"),
        (Result, {"validate_state": 2}, "result {pk}: it was granted credit, but is not valid"),
        (Result, {"raw_pfc": F("raw_pfc") * 1.001}, "result {pk}: claimed 12000000000000.0 FLOPs, but its numbers"),
        (Result, {"claimed_credit": 1}, "result {pk}: claimed"),
        (Result, {"user_id": 2**40}, "result {pk}: its volunteer 1099511627776 does not exist"),
        (Result, {"host_id": 2**40}, "result {pk}: its computer 1099511627776 does not exist"),
        (Result, {"app_version_id": 2**40}, "result {pk}: its version 1099511627776 does not exist"),
        (Workunit, {"canonical_credit": 3}, "workunit {pk}: its canonical result was granted other credit"),
        (Workunit, {"canonical_result": None, "assimilate_state": 0, "canonical_credit": None}, "it is valid, but"),
        (AppVersion, {"total_credit": F("total_credit") * 1.001}, "version {pk}: has"),
        (AppVersion, {"ngranted": 3}, "for 3 results, but its results add up to"),
    ],
)
def test_a_planted_difference_is_found(app: App, model: type[Model], change: dict[str, object], found: str) -> None:
    row = model._default_manager.earliest("pk")
    model._default_manager.filter(pk=row.pk).update(**change)
    lines = differences()
    assert any(found.format(pk=row.pk) in line for line in lines), lines
    with pytest.raises(CommandError, match="differences") as caught:
        call_command("check_credit", stdout=StringIO())
    assert caught.value.returncode == 1


@pytest.mark.parametrize("number", [5e-324, 1e-310, 1e-200, 1e199, 1e304, nan, inf, -inf, -1e304])
@pytest.mark.parametrize(
    "column", ["raw_pfc", "claimed_pfc", "claimed_credit", "version_scale", "host_scale", "min_avg_pfc"]
)
def test_no_stored_number_ends_the_check(app: App, column: str, number: float) -> None:
    first, second, *_ = Result.objects.order_by("pk")
    Result.objects.filter(pk=first.pk).update(**{column: number})
    Result.objects.filter(pk=second.pk).update(claimed_credit=1)
    lines = differences()
    assert any(line.startswith(f"result {second.pk}: claimed") for line in lines), "it goes on"
    # Of claims of 1e200 FLOPs and more, factors may make more than a number can be: they are not worked out again.
    is_too_much = column == "raw_pfc" and not abs(number) < 1e200 and number == number
    if not is_too_much and column != "min_avg_pfc":
        assert any(line.startswith(f"result {first.pk}: claimed") for line in lines), "it names the row"


def test_a_canonical_result_has_to_be_the_workunits_own(app: App) -> None:
    one, two = Workunit.objects.order_by("pk")
    Workunit.objects.filter(pk=one.pk).update(canonical_result=two.canonical_result)
    assert differences() == [f"workunit {one.pk}: its canonical result is none of its own"]


def test_a_version_keeps_its_total_when_a_volunteer_leaves(app: App) -> None:
    before = AppVersion.objects.values_list("total_credit", "ngranted").get()
    User.objects.all()[:1].get().delete()
    assert UserCredit.objects.count() == HostCredit.objects.count() == 1
    assert AppVersion.objects.values_list("total_credit", "ngranted").get() == before
    assert before[1] == 4
    assert differences() == []


def test_archived_results_count(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    host = Host.objects.order_by("pk")[0]
    UserCredit.objects.filter(user=host.owner_id).update(total_credit=F("total_credit") + 5)
    HostCredit.objects.filter(host=host).update(total_credit=F("total_credit") + 5)
    version = AppVersion.objects.get()
    AppVersion.objects.update(total_credit=F("total_credit") + 5, ngranted=F("ngranted") + 1)
    assert len(differences()) == 3
    # One task: 5 granted, 2 of them while it ran
    owners = {check.Owner.USER: host.owner_id, check.Owner.HOST: host.pk, check.Owner.VERSION: version.pk}
    monkeypatch.setattr(SchedulerConfig, "archived_credit", lambda _, owner: [ArchivedCredit(owners[owner], 1, 5.0)])
    assert differences() == []


@pytest.mark.django_db(transaction=True)
def test_what_is_archived_during_the_check_is_not_missed(app: App, monkeypatch: pytest.MonkeyPatch) -> None:
    result = Result.objects.order_by("pk")[0]

    def archived(_: SchedulerConfig, owner: check.Owner) -> list[ArchivedCredit]:
        assert Result.objects.count() == 4  # the first look into the database, as an archive's is
        # The purge moves a result, after the archive was read.
        with psycopg.connect(**psycopg_params(), autocommit=True) as purge:
            purge.execute(
                "UPDATE credit_result SET granted_credit = NULL, partial_credit = 0 WHERE id = %s", [result.pk]
            )
        return []

    monkeypatch.setattr(SchedulerConfig, "archived_credit", archived)
    assert differences() == []
    monkeypatch.setattr(SchedulerConfig, "archived_credit", lambda _, owner: [])
    assert differences() != []
