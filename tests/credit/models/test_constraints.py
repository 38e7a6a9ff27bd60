"""The database's constraints on settings and statistics: values out of range are refused, whoever writes them."""

from __future__ import annotations

from math import inf, nan
from typing import Any

import pytest
from django.db import DataError, IntegrityError, models, transaction
from django.db.models import FloatField

from credit.engine.rules import LIMITS
from credit.models import App, AppVersion, HostAppVersion, HostCredit, UserCredit
from tests.support.credit_factories import make_app, make_version
from tests.support.validator_runs import done, validate, volunteers

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def project() -> None:
    """A row of each table."""
    app = make_app()
    done(app, make_version(app), *volunteers(1))
    validate(app)


def is_refused(table: type[models.Model], **values: Any) -> bool:
    try:
        with transaction.atomic():
            table._default_manager.update(**values)
    except (IntegrityError, DataError):
        return True
    return False


@pytest.mark.parametrize("name", sorted(LIMITS))
def test_a_limit_of_an_app_is_held_to_its_range(name: str) -> None:
    low, high = LIMITS[name]
    kind = App._meta.get_field(name)
    wrong: list[float] = [low / 2, -low, high * 1.01, -1]
    if isinstance(kind, FloatField):
        wrong += [nan, inf, -inf]
    else:
        wrong = [int(value) for value in wrong]
    assert [value for value in wrong if not is_refused(App, **{name: value})] == []
    assert not any(is_refused(App, **{name: value}) for value in (low, high, None))


@pytest.mark.parametrize(
    ("table", "columns"),
    [
        (App, "weight fixed_credit fixed_credit_per_flop actual_flops_scale benchmark_scale comparison_tolerance"),
        (App, "comparison_absolute_tolerance min_avg_pfc"),
        (AppVersion, "avg_ncpus gpu_usage cross_project_scale pfc_avg pfc_scale total_credit expavg_credit"),
        (HostAppVersion, "pfc_avg et_avg et_var et_q turnaround_avg turnaround_var turnaround_q error_rate"),
        (HostAppVersion, "failing_share clean_pfc_avg waiting_pfc_avg recent_pfc_avg"),
        (UserCredit, "total_credit expavg_credit"),
        (HostCredit, "total_credit expavg_credit"),
    ],
)
def test_no_number_is_negative_infinite_or_none_at_all(table: type[models.Model], columns: str) -> None:
    taken = [
        (name, v) for name in columns.split() for v in (nan, inf, -inf, -1e-9) if not is_refused(table, **{name: v})
    ]
    assert taken == []


def test_counts_words_and_averages_without_samples_are_refused() -> None:
    wrong: list[tuple[type[models.Model], dict[str, Any]]] = [
        (App, {"credit_system": "none"}),
        (App, {"comparison": "guess"}),
        (App, {"replica_rule": "max"}),
        (App, {"version_average": "mode"}),
        (App, {"max_jobs_per_day_init": 0}),
        (AppVersion, {"processor_type": "FPGA", "gpu_usage": 1}),
        (AppVersion, {"ngranted": -1}),
        (AppVersion, {"min_gpu_ram_bytes": -1}),
        (AppVersion, {"pfc_n": 0}),
        (AppVersion, {"pfc_n": -1, "pfc_avg": None}),
        (HostAppVersion, {"processor_type": "FPGA"}),
        (HostAppVersion, {"pfc_avg": None}),
        (HostAppVersion, {"et_n": 0}),
        (HostAppVersion, {"waiting_pfc_n": 0, "waiting_pfc_avg": 1.0}),
        (HostAppVersion, {"failing_share": 1.1}),
        (HostAppVersion, {"turnaround_avg": None}),
    ]
    assert [(table.__name__, values) for table, values in wrong if not is_refused(table, **values)] == []
