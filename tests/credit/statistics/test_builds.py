"""Which build of an app is fastest on which hardware, as shown to operators."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client

from credit.models import AppVersion, HostAppVersion
from credit.statistics.builds import build_speeds
from portal.models import Host, User
from tests.support.credit_factories import make_app, make_version

pytestmark = pytest.mark.django_db
GPU: dict[str, Any] = {"processor_type": "NVIDIA", "gpu_usage": 1}


def ran(version: AppVersion, model: str, *averages: tuple[int, float, float]) -> None:
    """One computer with this GPU for each number of run times, average and variance (s for an estimated FLOP)."""
    owner = User.objects.get_or_create(email="mara@example.org")[0]
    for n, average, variance in averages:
        coprocs = [{"type": "ATI", "name": "Navi"}, {"type": "NVIDIA", "name": model}]
        HostAppVersion.objects.create(
            host=Host.objects.create(owner=owner, coprocs=coprocs),
            app=version.app,
            app_version=version,
            processor_type="NVIDIA",
            et_n=n,
            et_avg=average,
            et_var=variance,
        )


def test_builds_are_compared_on_each_model_with_samples_and_spread(desk: Client) -> None:
    app = make_app()
    old, new = (make_version(app, 101 + number, plan_class=f"cuda{number}", **GPU) for number in range(2))
    withdrawn = make_version(app, 103, plan_class="cuda3", is_deprecated=True, **GPU)
    ran(old, "RTX 9", (30, 4e-12, 0.0), (10, 8e-12, 0.0))
    ran(new, "RTX 9", (4, 2e-12, 1e-24))
    ran(old, "GT 1", (5, 1e-10, 0.0))
    ran(withdrawn, "GT 1", (50, 1e-12, 0.0))
    speeds = build_speeds(old)
    assert [(row.model, row.version, row.ncomputers, row.nsamples, row.is_fastest) for row in speeds] == [
        ("RTX 9", new, 1, 4, True),
        ("RTX 9", old, 2, 40, False),
        # Nothing to compare it with
        ("GT 1", old, 1, 5, False),
    ]
    # 1 / 2e-12; (30 × 4 + 10 × 8) / 40 = 5
    assert [row.flops for row in speeds] == pytest.approx([5e11, 2e11, 1e10])
    # √1 / 2; (30 × 16 + 10 × 64) / 40 = 28, √(28 - 25) / 5
    assert [row.spread for row in speeds] == pytest.approx([0.5, 3**0.5 / 5, 0.0], abs=1e-9)
    page = desk.get(f"/admin/credit/appversion/{old.pk}/change/").content.decode()
    assert "RTX 9" in page and "500" in page and "fastest" in page


def test_a_version_without_run_times_has_no_speeds() -> None:
    assert build_speeds(make_version(make_app())) == []
