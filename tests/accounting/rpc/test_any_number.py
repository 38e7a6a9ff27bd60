"""Whatever numbers a client sends to the account manager, commands, tasks and pages go on working."""

from __future__ import annotations

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
from django.test import Client
from django.utils import timezone
from django.utils.module_loading import import_string

from accounting.models import HostProject, Project
from portal.dashboard.record import take_all
from portal.models import Host, User
from tests.support.am_rpc import attach, hours_pass, post, work
from tests.support.numbers import NUMBERS
from tests.support.sessions import sign_in_lately

pytestmark = pytest.mark.django_db

# Everything that a client sends as a number with decimals, but for its clock: an old message changes nothing.
_MEASURED: Final = (
    b"p_fpops|p_iops|p_membw|p_calculated|m_nbytes|m_cache|m_swap|d_total|d_free|peak_flops|available_ram|resource_share"
    b"|on_frac|active_frac|gpu_active_frac|connected_frac|cpu_and_network_available_frac|client_start_time"
    b"|previous_uptime|total_duration|bwup|bwdown|not_started_dur|in_progress_dur|disk_usage|disk_share|fraction_done"
    b"|report_deadline|elapsed_time|estimated_cpu_time_remaining"
)
_TOTALS: Final = (b"cpu_ec", b"gpu_ec", b"cpu_time", b"gpu_time")
TASKS: Final = b"""<results><result><name>t</name><fraction_done>0</fraction_done><report_deadline>1</report_deadline>
<elapsed_time>1</elapsed_time><estimated_cpu_time_remaining>1</estimated_cpu_time_remaining></result></results>
<net_stats><bwup>1</bwup><bwdown>1</bwdown></net_stats>
"""


def with_number(request: bytes, number: str, totals: bytes) -> bytes:
    request = request.replace(b"</acct_mgr_request>", TASKS + b"</acct_mgr_request>")
    return re.sub(rb"<(%b|%b)>[^<]*</\1>" % (_MEASURED, totals), rb"<\1>%b</\1>" % number.encode(), request)


@pytest.fixture(autouse=True)
def _folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What tasks write and read is not the site's own."""
    monkeypatch.setattr(settings, "MEDIA_ROOT", tmp_path / "files")
    monkeypatch.setattr(settings, "STATISTICS_IMPORT_DIR", tmp_path / "import")


@pytest.fixture
def reported(alice: User, projects: list[Project]) -> None:
    """A computer for each number and total; each has worked for an hour since its first report, and goes on."""
    for index, number in enumerate(NUMBERS):
        computer = attach(alice, f"pc{index}")
        for totals in (*_TOTALS, b"none"):
            hours_pass(computer, 2)
            work(computer, projects[0], 1)
            assert post(with_number(computer.request(timezone.now().timestamp()), number, totals)).error[0] == 0


@pytest.mark.usefixtures("reported")
def test_any_number_leaves_the_books_and_all_commands_and_tasks_working() -> None:
    assert HostProject.objects.filter(credited__2__gt=0).count() == len(NUMBERS)
    call_command("check_ledger", stdout=StringIO())
    failed = {}
    for name in sorted({entry["task"] for entry in settings.CELERY_BEAT_SCHEDULE.values()}):
        try:
            with transaction.atomic():
                import_string(name)()
        except Exception as error:
            failed[name] = repr(error)
    assert failed == {}


def all_pages() -> Iterator[str]:
    yield from ("/home/", "/history/", "/history/records/", "/history/history.csv", "/computers/", "/projects/")
    yield from ("/admin/portal/operatingfigure/panels/", "/status/", "/")
    for host in Host.objects.all():
        yield f"/computers/{host.pk}/"
    for model in admin.site._registry:
        base = f"/admin/{model._meta.app_label}/{model._meta.model_name}/"
        yield base
        yield from (f"{base}{row.pk}/change/" for row in model._default_manager.order_by("-pk")[:2])


def all_emulations() -> Iterator[str]:
    return (f"/emulator/new/computer/{host.pk}/" for host in Host.objects.all())


@pytest.mark.usefixtures("reported")
def test_any_number_leaves_all_pages_working(alice: User) -> None:
    User.objects.filter(pk=alice.pk).update(is_staff=True, is_superuser=True)
    alice.refresh_from_db()
    client = Client(raise_request_exception=False)
    sign_in_lately(client, alice)
    take_all(timezone.now())
    statuses = {path: client.get(path, follow=True).status_code for path in all_pages()}
    statuses |= {path: client.post(path, follow=True).status_code for path in all_emulations()}
    assert {path: status for path, status in statuses.items() if status != 200} == {}
