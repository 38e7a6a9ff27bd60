"""Whatever numbers a client reports, every command, task and page of operators and volunteers keeps working."""

from __future__ import annotations

import datetime as dt
import re
from collections.abc import Iterator
from io import StringIO
from pathlib import Path
from typing import Final

import pytest
from django.conf import settings
from django.contrib import admin
from django.core.management import call_command
from django.db import transaction
from django.db.models import F
from django.test import Client
from django.utils import timezone
from django.utils.module_loading import import_string

from credit.models import App, CreditSystem, HostAppVersion, Result, RuleSet, Workunit
from portal.dashboard.record import take_all
from portal.models import Host, User
from scheduler.lifecycle import transitioner
from scheduler.models import PlanClass
from scheduler.rpc import trickles
from tests.support.credit_factories import make_app, make_result, make_version, make_workunit
from tests.support.numbers import NUMBERS
from tests.support.scheduler_clients import Computer, computer_of, gpu, names, post, result_xml
from tests.support.sessions import sign_in_lately
from tests.support.validator_runs import validate

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("registered_functions")]

DATA: Final = Path(__file__).parents[2] / "data" / "credit"
SYSTEMS: Final = (
    (RuleSet.PUBLISHED, CreditSystem.CREDITNEW),
    (RuleSet.LETTER, CreditSystem.CREDITNEW),
    (RuleSet.DEPLOYED, CreditSystem.CREDITNEW),
    (RuleSet.PUBLISHED, CreditSystem.PEAK_FLOPS),
    (RuleSet.PUBLISHED, CreditSystem.ACTUAL_FLOPS),
    (RuleSet.PUBLISHED, CreditSystem.FIXED),
    (RuleSet.PUBLISHED, CreditSystem.RUN_TIME),
)
HARDWARE: Final = "<p_membw>1</p_membw>"
_OF_RESULT: Final = (
    "final_cpu_time", "final_elapsed_time", "fpops_cumulative", "fpops_per_cpu_sec", "final_peak_working_set_size",
    "final_peak_swap_size", "final_peak_disk_usage",
)  # fmt: skip
_OF_REQUEST: Final = (
    "p_fpops", "p_iops", "p_membw", "m_nbytes", "d_total", "d_free", "d_boinc_used_project", "d_project_share",
    "estimated_delay", "peak_flops", "totalGlobalMem", "duration_correction_factor", "on_frac", "active_frac",
    "gpu_active_frac", "connected_frac", "cpu_and_network_available_frac", "now", "bwup", "bwdown",
)  # fmt: skip
EXTRA: Final = """<duration_correction_factor>1</duration_correction_factor>
<time_stats><on_frac>1</on_frac><active_frac>1</active_frac><gpu_active_frac>1</gpu_active_frac>
<connected_frac>1</connected_frac><cpu_and_network_available_frac>1</cpu_and_network_available_frac></time_stats>
<net_stats><bwup>1</bwup><bwdown>1</bwdown></net_stats>
"""


def with_number(request: bytes, number: str) -> bytes:
    """The request with this number for each of its measurements."""
    tags = "|".join(_OF_REQUEST).encode()
    return re.sub(rb"<(%b)>[^<]*</\1>" % tags, rb"<\1>%b</\1>" % number.encode(), request)


def work_of(computer: Computer, number: str) -> None:
    """A computer that gets a job of each app, tells of them while they run, and reports them, all with this number."""
    computer.read(post(computer.request(1e6, 4, extra=EXTRA)))
    jobs = list(computer.jobs)
    assert len(jobs) == len(SYSTEMS)
    trickles = "".join(
        f"<msg_from_host><result_name>{job}</result_name><time>1</time><variety>partial_credit</variety>\n"
        f"<text><result_name>{job}</result_name><elapsed_time>{number}</elapsed_time></text></msg_from_host>\n"
        for job in jobs
    )
    computer.read(post(with_number(computer.request(extra=EXTRA + trickles), number)))
    # The jobs have been out for longer than the short run times.
    Result.objects.filter(name__in=jobs).update(sent_at=F("sent_at") - dt.timedelta(hours=1))
    reports = "".join(result_xml(job, **dict.fromkeys(_OF_RESULT, number)) for job in jobs)
    reply = post(with_number(computer.request(results=reports, extra=EXTRA), number))
    assert sorted(names(reply, "result_ack")) == sorted(jobs)
    computer.read(post(with_number(computer.request(1, extra=EXTRA), number)))


@pytest.fixture(autouse=True)
def _folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What tasks write and read is not the site's own."""
    monkeypatch.setattr(settings, "MEDIA_ROOT", tmp_path / "files")
    monkeypatch.setattr(settings, "STATISTICS_IMPORT_DIR", tmp_path / "import")


@pytest.fixture
def operator() -> User:
    return User.objects.create_superuser("operator@example.org", "a secret")


@pytest.fixture
def client(operator: User) -> Client:
    client = Client()
    sign_in_lately(client, operator)
    return client


@pytest.fixture
def reported(operator: User) -> None:
    """Jobs that were reported with all these numbers, and checked as far as there is anything to check."""
    for index, (rule_set, system) in enumerate(SYSTEMS):
        app = make_app(
            f"app{index}",
            rule_set=rule_set,
            credit_system=system,
            fixed_credit_per_flop=1e-300,
            max_credited_secs=1e9,
            trickle_function="scheduler.rpc.trickles.grant_partial_credit",
            min_avg_pfc=1.1,
        )
        make_version(app, pfc_n=100, pfc_avg=1.1, pfc_scale=1.0)
    now = timezone.now()
    for number in NUMBERS:
        for app in App.objects.all():
            make_result(make_workunit(app, fpops_est=1e12, min_quorum=1, target_nresults=1))
        computer = computer_of(operator, coprocs=gpu(), hardware=HARDWARE)
        work_of(computer, number)
    trickles.handle_waiting(now)
    Result.objects.update(output_digest=b"o" * 16)
    later = now + dt.timedelta(minutes=1)
    transitioner.run(later)
    for app in App.objects.all():
        validate(app, later)
    Workunit.objects.update(transition_at=later)
    transitioner.run(later)


@pytest.mark.parametrize(
    ("reported", "kept"), [("5e-324", 0.0), ("1e-10", 0.0), ("9.9e-7", 0.0), ("-0.0", 0.0), ("1e-6", 1e-6)]
)
def test_a_run_time_below_a_microsecond_is_none_and_the_audit_ends(reported: str, kept: float, operator: User) -> None:
    app = make_app()
    make_version(app)
    make_result(make_workunit(app, min_quorum=1, target_nresults=1))
    computer = computer_of(operator)
    computer.read(post(computer.request(1)))
    [job] = computer.jobs
    report = (DATA / "subnormal-run-time.xml").read_text().replace("@RESULT@", job).replace("5e-324", reported)
    assert names(post(computer.request(results=report)), "result_ack") == [job]
    row = Result.objects.get()
    assert (row.elapsed_secs, row.cpu_secs) == (kept, kept)
    Result.objects.update(output_digest=b"o" * 16, sent_at=F("sent_at") - dt.timedelta(hours=1))
    transitioner.run(timezone.now())
    validate(app, timezone.now())
    # The default of a run time that is none: the estimate of 1e13 FLOPs. Else 1 µs at 4 GFLOPS
    flops = 1e13 if not kept else 4e9 * 1e-6
    assert Result.objects.get().granted_credit == pytest.approx(flops * 200 / 86400e9)
    out = StringIO()
    call_command("check_credit", stdout=out)
    assert out.getvalue() == "Validated credit is consistent.\n"


@pytest.mark.parametrize("peak_flops", ["0.000000", "nan", "4.3980464e16"])
def test_a_gpu_of_no_speed_or_of_one_that_none_has_brings_the_default_and_its_owner_is_told(
    peak_flops: str, operator: User, client: Client
) -> None:
    app = make_app(min_avg_pfc=2.0)
    make_version(app, processor_type="NVIDIA", plan_class="cuda", gpu_usage=1, pfc_n=1000, pfc_avg=20.0, pfc_scale=0.1)
    PlanClass.objects.create(name="cuda", processor_type="NVIDIA", gpu_usage=1)
    make_result(make_workunit(app, min_quorum=1, target_nresults=1))
    computer = computer_of(operator, coprocs=gpu(secs=1e6, instances=1, peak_flops=peak_flops))
    computer.ask(0)
    [job] = computer.jobs
    computer.ask(results=result_xml(job, final_elapsed_time=2000.0))
    Result.objects.update(output_digest=b"o" * 16, sent_at=F("sent_at") - dt.timedelta(hours=1))
    transitioner.run(timezone.now())
    validate(app, timezone.now())
    row = Result.objects.get()
    # 2 × the estimate of 1e13 FLOPs
    assert row.granted_credit == pytest.approx(2e13 * 200 / 86400e9)
    record = HostAppVersion.objects.get()
    assert (record.pfc_n, record.failing_share) == (0, 0.0)
    assert "reports no speed for its GPU" in client.get(f"/tasks/{row.pk}/").content.decode()


@pytest.mark.usefixtures("reported")
def test_any_report_leaves_the_books_and_all_commands_and_tasks_working() -> None:
    assert Result.objects.filter(granted_credit__isnull=False).count() == len(NUMBERS) * len(SYSTEMS)
    for command in ("check_credit", "check_ledger", "cross_project_factors", "export_statistics"):
        call_command(command, stdout=StringIO())
    failed = {}
    for name in sorted({entry["task"] for entry in settings.CELERY_BEAT_SCHEDULE.values()}):
        try:
            with transaction.atomic():
                import_string(name)()
        except Exception as error:
            failed[name] = repr(error)
    assert failed == {}


def all_pages(operator: User) -> Iterator[str]:
    """Each list of the admin and the pages of its newest rows, the dashboard, and what volunteers see of their work."""
    yield from (
        "/admin/",
        "/admin/portal/operatingfigure/panels/",
        "/status/",
        "/server_status.php",
        "/apps/",
        "/tasks/",
        "/computers/",
    )
    yield from ("/home/", "/history/", "/history/records/", "/history/history.csv", "/project/top/", "/projects/")
    yield from (f"/apps/{app.name}/" for app in App.objects.all())
    yield from (f"/tasks/{result.pk}/" for result in Result.objects.all())
    yield from (f"/computers/{host.pk}/" for host in Host.objects.all())
    for model in admin.site._registry:
        base = f"/admin/{model._meta.app_label}/{model._meta.model_name}/"
        yield base
        for row in model._default_manager.order_by("-pk")[:2]:
            yield f"{base}{row.pk}/change/"


@pytest.mark.usefixtures("reported")
def test_any_report_leaves_all_pages_working(client: Client, operator: User) -> None:
    take_all(timezone.now())
    client.raise_request_exception = False
    statuses = {path: client.get(path, follow=True).status_code for path in all_pages(operator)}
    assert {path: status for path, status in statuses.items() if status != 200} == {}
