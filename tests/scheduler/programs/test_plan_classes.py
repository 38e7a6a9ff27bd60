"""Plan classes made by operators: what the admin refuses, what a release requires of them, and who gets versions."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import IntegrityError, transaction
from django.test import Client

from credit.models import App, AppVersion, Result
from portal.models import User
from scheduler.models import PlanClass
from tests.support.credit_factories import make_app, make_result, make_version, make_workunit
from tests.support.scheduler_clients import computer_of, gpu, messages, names, value

pytestmark = pytest.mark.django_db
ADD = "/admin/scheduler/planclass/add/"
NUMBERS = (
    *("min_client_version", "max_client_version", "max_driver_version", "max_compute_capability", "min_cuda_version"),
    *("max_cuda_version", "min_opencl_version", "max_opencl_version", "min_gpu_peak_flops", "max_gpu_peak_flops"),
    *("gpu_ram_used_bytes", "cpu_share", "min_virtualbox_version", "max_virtualbox_version"),
    *("min_os_version", "max_os_version", "min_libc_version"),
)
CUDA: dict[str, Any] = {
    **dict.fromkeys(NUMBERS, 0),
    "projected_flops_scale": 1,
    "name": "cuda",
    "processor_type": "NVIDIA",
    "avg_ncpus": 0.2,
    "max_ncpus": 1,
    "gpu_usage": 1,
    "min_ncpus": 0,
    "cpu_features": "",
    "min_gpu_ram_bytes": 2**30,
    "min_driver_version": 53000,
    "min_compute_capability": 705,
}


@pytest.fixture
def app(db: None) -> App:
    app = make_app()
    make_result(make_workunit(app, fpops_est=1e13, fpops_bound=1e16))
    return app


def errors(desk: Client, path: str = ADD, **fields: Any) -> dict[str, list[str]]:
    response = desk.post(path, {**CUDA, **fields})
    return {} if response.status_code == 302 else dict(response.context["adminform"].form.errors)


def test_a_class_made_in_the_admin_decides_who_gets_its_versions(desk: Client, app: App, alice: User) -> None:
    assert errors(desk) == {}
    make_version(app, plan_class="cuda", processor_type="NVIDIA", gpu_usage=1)
    old = computer_of(alice, coprocs=gpu(secs=100, drvVersion=47000))
    assert "need other processors or drivers, or more graphics memory" in messages(old.ask())[0]
    new = computer_of(alice, coprocs=gpu(secs=100))
    reply = new.ask()
    assert len(names(reply, "result")) == 1
    # What the class says is what the client is told to keep free.
    assert "<avg_ncpus>0.2</avg_ncpus>" in reply
    assert "gpu_ram" not in reply
    PlanClass.objects.update(gpu_ram_used_bytes=2**30)
    computer = computer_of(alice, coprocs=gpu(secs=100))
    make_result(make_workunit(app, fpops_est=1e13, fpops_bound=1e16))
    # As BOINC's own server has it
    assert value(computer.ask(), "gpu_ram") == "1073741824.000000"
    assert "<plan_class>cuda</plan_class>" in reply


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"processor_type": "CPU"}, "gpu_usage"),
        ({"processor_type": "CPU", "gpu_usage": 0, "avg_ncpus": 0}, "avg_ncpus"),
        ({"avg_ncpus": "nan"}, "avg_ncpus"),
        ({"avg_ncpus": -1}, "avg_ncpus"),
        ({"avg_ncpus": 1e304}, "avg_ncpus"),
        ({"gpu_usage": 65}, "gpu_usage"),
        ({"max_ncpus": 0}, "max_ncpus"),
        ({"min_gpu_ram_bytes": -1}, "min_gpu_ram_bytes"),
        ({"min_gpu_ram_bytes": 2**51}, "min_gpu_ram_bytes"),
        ({"name": "../cuda"}, "name"),
        ({"processor_type": "TPU"}, "processor_type"),
        ({"os_pattern": "(a+)+"}, "os_pattern"),
        ({"gpu_model_pattern": "(a+)+"}, "gpu_model_pattern"),
        ({"cpu_vendor_pattern": "["}, "cpu_vendor_pattern"),
        ({"cpu_model_pattern": "a{2}"}, "cpu_model_pattern"),
        ({"cpu_share": 1.5}, "cpu_share"),
        ({"max_gpu_peak_flops": "inf"}, "max_gpu_peak_flops"),
        ({"max_gpu_peak_flops": 1e30}, "max_gpu_peak_flops"),
        ({"gpu_ram_used_bytes": -1}, "gpu_ram_used_bytes"),
        ({"min_client_version": -1}, "min_client_version"),
        ({"excluded_virtualbox_versions": "7.0.12"}, "excluded_virtualbox_versions"),
    ],
)
def test_a_class_without_sense_is_refused_by_its_field(desk: Client, fields: dict[str, Any], field: str) -> None:
    assert list(errors(desk, **fields)) == [field]
    assert not PlanClass.objects.exists()


def test_what_uses_nothing_cannot_be_stored_at_all(app: App) -> None:
    with pytest.raises(IntegrityError, match="planclass_uses_something"), transaction.atomic():
        PlanClass.objects.create(name="none", avg_ncpus=0)
    with pytest.raises(IntegrityError, match="appversion_uses_something"), transaction.atomic():
        make_version(app, avg_ncpus=0)
    make_version(app, avg_ncpus=0, processor_type="NVIDIA", gpu_usage=1)


def test_a_version_in_the_admin_cannot_be_made_to_use_nothing(desk: Client, app: App) -> None:
    version = make_version(app)
    path = f"/admin/credit/appversion/{version.pk}/change/"
    response = desk.post(path, {"avg_ncpus": 0, "gpu_usage": 0, "min_gpu_ram_bytes": 0})
    assert "could never be sent" in response.context["adminform"].form.errors["avg_ncpus"][0]
    assert AppVersion.objects.get().avg_ncpus == 1


def test_a_class_that_versions_have_keeps_its_name_and_type(desk: Client, app: App) -> None:
    plan = PlanClass.objects.create(**CUDA)
    path = f"/admin/scheduler/planclass/{plan.pk}/change/"
    assert errors(desk, path, processor_type="ATI") == {}
    assert errors(desk, path) == {}
    make_version(app, plan_class="cuda", processor_type="NVIDIA", gpu_usage=1)
    assert list(errors(desk, path, processor_type="ATI", name="other")) == ["processor_type"]
    assert desk.post(path.replace("change", "delete"), {"post": "yes"}).status_code == 403
    plan.refresh_from_db()
    assert (plan.name, plan.processor_type) == ("cuda", "NVIDIA")


def test_a_version_is_not_released_for_another_type_than_its_class(tmp_path: Path) -> None:
    PlanClass.objects.create(**CUDA)
    (tmp_path / "main.sh").write_text("#!/bin/sh\n")
    (tmp_path / "version.toml").write_text(
        'app = "alpine"\nversion_num = 1\nplatform = "p"\nplan_class = "cuda"\n'
        '[[files]]\npath = "main.sh"\nmain_program = true\n'
    )
    with pytest.raises(CommandError, match="processor_type: CPU, but plan class cuda is for NVIDIA"):
        call_command("release_app_version", tmp_path)


@pytest.mark.parametrize(
    ("percent", "nthreads", "peak_flops"),
    [
        # 16 processors of 4 GFLOPS; the class uses 8 at most.
        ("25.000000", 4, 16e9),
        ("75", 8, 32e9),
        # At least one, as in clients; 0 is no limit there.
        ("1", 1, 4e9),
        ("0", 8, 32e9),
        ("nan", 8, 32e9),
    ],
)
def test_jobs_use_the_processors_that_boinc_may_use_and_programs_are_told(
    app: App, alice: User, percent: str, nthreads: int, peak_flops: float
) -> None:
    PlanClass.objects.create(name="mt", max_ncpus=8, nthreads_cmdline=True)
    make_version(app, plan_class="mt", cmdline="--fast")
    may_use = f"<global_preferences>\n<max_ncpus_pct>{percent}</max_ncpus_pct>\n</global_preferences>\n"
    extra = f"<working_global_preferences>\n{may_use}</working_global_preferences>\n"
    reply = computer_of(alice, ncpus=16).ask(1, extra=extra)
    assert value(reply, "avg_ncpus") == str(nthreads)
    assert value(reply, "cmdline") == f"--fast --nthreads {nthreads}"
    result = Result.objects.get()
    assert (result.peak_flops, result.projected_flops) == (peak_flops, peak_flops / 2)


def test_builds_for_the_same_gpus_are_all_sent_until_it_is_known_which_is_faster(app: App, alice: User) -> None:
    builds = {}
    for number, name in ((101, "cuda"), (102, "cuda_new")):
        PlanClass.objects.create(**{**CUDA, "name": name})
        builds[name] = make_version(app, version_num=number, plan_class=name, processor_type="NVIDIA", gpu_usage=1)
    for _ in range(60):
        make_result(make_workunit(app, fpops_est=1e13, fpops_bound=1e16))
    computers = [computer_of(alice, coprocs=gpu(instances=1), cpid=f"{number:032x}") for number in range(40)]
    sent = Counter(value(computer.ask(), "plan_class") for computer in computers)
    # The newer one to three quarters of those that have run neither
    assert 24 <= sent["cuda_new"] <= 36
    assert sent.total() == 40


@pytest.mark.parametrize("name", ["client_version", "driver_version", "compute_capability", "cuda_version"])
def test_limits_that_leave_out_every_computer_are_refused(desk: Client, name: str) -> None:
    limits: dict[str, Any] = {f"min_{name}": 800, f"max_{name}": 799}
    assert f"max_{name}" in errors(desk, **limits)
    assert errors(desk, **{**limits, f"max_{name}": 800}) == {}


def test_a_class_of_versions_neither_begins_nor_ends_to_need_docker(desk: Client) -> None:
    """The jobs of their apps were checked for containers, or were not."""
    docker = PlanClass.objects.create(name="buda", needs_docker=True)
    plain = PlanClass.objects.create(name="plain")
    fields = {"processor_type": "CPU", "gpu_usage": 0, "avg_ncpus": 1}
    changed = [(docker, {"name": "buda"}), (plain, {"name": "plain", "needs_docker": "on"})]
    for plan, change in changed:
        version = make_version(make_app(f"app_{plan.name}"), plan_class=plan.name)
        path = f"/admin/scheduler/planclass/{plan.pk}/change/"
        assert "needs_docker" in errors(desk, path, **fields, **change)
        version.delete()
        assert errors(desk, path, **fields, **change) == {}
