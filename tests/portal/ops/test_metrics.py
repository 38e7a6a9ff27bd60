"""What Prometheus reads: requests of clients and people, tasks, and queues; only operators read it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from celery import shared_task
from django.db import IntegrityError
from django.http import HttpRequest, HttpResponse
from django.test import Client
from django.urls import include, path
from prometheus_client import REGISTRY
from prometheus_client.core import Metric
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.registry import Collector
from pytest_django import Settings

from portal.apps import PortalConfig
from portal.celery import app
from portal.clients.paths import ClientPath
from portal.clients.views import ClientView
from portal.ops import metrics, metrics_folder
from portal.tasks import tidy_up

ROOT = Path(__file__).resolve().parents[3]


def fine(request: HttpRequest, pk: int = 0) -> HttpResponse:
    if request.GET.get("fail"):
        raise ValueError
    return HttpResponse("fine")


RPC = ClientPath("/rpc.php", "tests.support.client_handlers.tell", "error")
urlpatterns = [
    path("rpc.php", ClientView.as_view(route=RPC)),
    path("page/<int:pk>/", fine, name="a_page"),
    path("", include("portal.urls")),
]


def read(client: Client) -> dict[tuple[str, ...], float]:
    """All samples by name and label values (in the order of the labels' names)."""
    text = client.get("/metrics").content.decode()
    return {
        (sample.name, *(sample.labels[label] for label in sorted(sample.labels))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


@pytest.mark.django_db
@pytest.mark.urls(__name__)
def test_requests_of_clients_are_counted_by_outcome(settings: Settings) -> None:
    settings.CLIENT_PATHS = {"/rpc.php": RPC}
    client = Client(raise_request_exception=False)
    before = read(client)
    for query in ("", "", "?fail=1"):
        client.get(f"/rpc.php{query}")
    after = read(client)

    def grown(*key: str) -> float:
        return after[key] - before.get(key, 0)

    assert grown("cobblestone_rpcs_total", "0", "/rpc.php") == 2
    assert grown("cobblestone_rpcs_total", "-1", "/rpc.php") == 1
    assert grown("cobblestone_rpc_seconds_count", "/rpc.php") == 3
    assert grown("cobblestone_rpc_seconds_bucket", "+Inf", "/rpc.php") == 3


def test_a_request_is_counted_while_another_is_the_first_of_its_kind(monkeypatch: pytest.MonkeyPatch) -> None:
    """A new process answers its first requests at the same time."""
    really = metrics._rpc_secs.labels

    def labels_while_another_is_counted(*labels: str) -> object:
        monkeypatch.undo()
        metrics.count_rpc("/first", 0, 0.5)
        return really(*labels)

    monkeypatch.setattr(metrics._rpc_secs, "labels", labels_while_another_is_counted)
    metrics.count_rpc("/first", 0, 0.5)
    assert REGISTRY.get_sample_value("cobblestone_rpcs_total", {"path": "/first", "error_num": "0"}) == 2
    assert REGISTRY.get_sample_value("cobblestone_rpc_seconds_count", {"path": "/first"}) == 2


def test_an_app_that_cannot_tell_leaves_the_other_metrics(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    class Broken(Collector):
        def collect(self) -> Iterator[Metric]:
            raise OSError("no database")

    monkeypatch.setattr(PortalConfig, "collectors", lambda _: [Broken()])
    assert ("cobblestone_queue_length", app.conf.task_default_queue) in read(client)


@pytest.mark.urls(__name__)
def test_pages_are_counted_by_view_not_by_address(client: Client) -> None:
    before = read(client)
    for pk in range(3):
        client.get(f"/page/{pk}/")
    client.get("/nowhere/1")
    client.get("/nowhere/2")
    after = read(client)
    assert (
        after["cobblestone_pages_total", "200", "a_page"] - before.get(("cobblestone_pages_total", "200", "a_page"), 0)
        == 3
    )
    assert (
        after["cobblestone_pages_total", "404", "unknown"]
        - before.get(("cobblestone_pages_total", "404", "unknown"), 0)
        == 2
    )
    assert not any("/page/1/" in key for key in after)


def test_tasks_are_counted_and_their_last_success_is_kept(client: Client, settings: Settings) -> None:
    @shared_task(name="tests.metered")
    def metered(fail: bool) -> None:
        if fail:
            raise ValueError("it is full")

    settings.CELERY_BEAT_SCHEDULE = {
        "metered": {"task": "tests.metered", "schedule": 60, "options": {"headers": {"every_secs": 60}}}
    }
    assert ("cobblestone_task_last_success_seconds", "tests.metered") not in read(client)
    metered.apply(args=(True,))
    metered.apply(args=(False,))
    metered.apply(args=(False,))
    found = read(client)
    assert found["cobblestone_tasks_total", "succeeded", "tests.metered"] == 2
    assert found["cobblestone_tasks_total", "failed", "tests.metered"] == 1
    assert found["cobblestone_task_last_success_seconds", "tests.metered"] > 1.7e9
    assert found["cobblestone_task_last_failure_seconds", "tests.metered"] > 1.7e9
    assert found["cobblestone_task_seconds", "tests.metered"] >= 0
    (run,) = metrics.task_runs()
    assert (run.succeeded, run.failed, run.fault) == (2, 1, "ValueError: it is full")


@pytest.fixture
def own_queue(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """A queue on the real broker that nobody else uses."""
    name = f"test-metrics-{os.getpid()}"
    monkeypatch.setitem(app.conf, "task_default_queue", name)
    yield name
    with app.connection_for_write() as connection, connection.SimpleQueue(name) as queue:
        queue.queue.delete()


def test_the_fault_of_a_task_has_no_rows_of_the_database() -> None:
    """Operators who may see the dashboard need not be those who may see volunteers' addresses."""
    fault = IntegrityError("duplicate key\nDETAIL:  Key (email)=(alice@example.org) already exists.")
    metrics._count_failure(sender=tidy_up, task_id="1", exception=fault)
    run = next(run for run in metrics.task_runs() if run.task == tidy_up.name)
    assert run.fault == "IntegrityError: duplicate key"


def test_waiting_tasks_are_counted_at_the_broker(client: Client, own_queue: str) -> None:
    assert read(client)["cobblestone_queue_length", own_queue] == 0
    with app.connection_for_write() as connection, connection.SimpleQueue(own_queue) as queue:
        queue.put({"task": 1})
        queue.put({"task": 2})
    assert read(client)["cobblestone_queue_length", own_queue] == 2


def test_the_queue_of_requested_work_has_a_series_of_its_own(client: Client, own_queue: str) -> None:
    lengths = {key[1] for key in read(client) if key[0] == "cobblestone_queue_length"}
    assert lengths == {own_queue, "requested"}


def test_a_broker_that_is_down_leaves_the_other_metrics(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(**_: object) -> None:
        raise ConnectionRefusedError

    monkeypatch.setattr(app, "connection_for_read", refuse)
    found = read(client)
    assert not any(key[0] == "cobblestone_queue_length" for key in found)
    assert any(key[0] == "cobblestone_tasks_total" for key in found)


@pytest.mark.parametrize(
    ("token", "headers", "address", "status"),
    [
        ("", {}, "127.0.0.1", 200),
        ("", {}, "::1", 200),
        ("", {}, "192.0.2.7", 404),
        # A proxy on this machine asks for somebody else.
        ("", {"x-forwarded-for": "192.0.2.7"}, "127.0.0.1", 404),
        ("", {"x-forwarded-for": "127.0.0.1"}, "127.0.0.1", 404),
        ("s3cret", {}, "127.0.0.1", 404),
        ("s3cret", {"authorization": "Bearer wrong"}, "127.0.0.1", 404),
        ("s3cret", {"authorization": "Bearer s3cret"}, "192.0.2.7", 200),
    ],
)
def test_only_who_has_the_token_or_is_on_the_machine_reads_the_metrics(
    client: Client, settings: Settings, token: str, headers: dict[str, str], address: str, status: int
) -> None:
    settings.METRICS_TOKEN = token
    reply = client.get("/metrics", headers=headers, REMOTE_ADDR=address)
    assert reply.status_code == status
    assert (b"cobblestone" in reply.content) == (status == 200)


COUNT = """
import sys
from pathlib import Path
from portal.ops import metrics_folder
metrics_folder.join(Path(sys.argv[1]))
from portal.ops import metrics
for _ in range(int(sys.argv[2])):
    metrics.count_rpc("/rpc.php", 0, 0.004)
print("counted", flush=True)
sys.stdin.readline()
if len(sys.argv) > 3:
    import django
    from django.test import RequestFactory
    django.setup()
    print(metrics.metrics(RequestFactory().get("/metrics")).content.decode())
"""


def _count(folder: Path, times: int, *more: str) -> subprocess.Popen[str]:
    """Starts a process that counts and then waits for a line."""
    process = subprocess.Popen(
        [sys.executable, "-c", COUNT, str(folder), str(times), *more],
        cwd=ROOT,
        env={**os.environ, "DJANGO_SETTINGS_MODULE": "portal.settings"},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "counted\n"
    return process


@pytest.mark.system
def test_processes_tell_the_sum_of_all_even_after_one_has_ended(tmp_path: Path) -> None:
    folder = tmp_path / "a folder"
    first = _count(folder, 3)
    second = _count(folder, 4)
    third = _count(folder, 5, "tell")
    first.communicate("\n")
    told = third.communicate("\n")[0]
    second.communicate("\n")
    # 3 + 4 + 5
    assert 'cobblestone_rpcs_total{error_num="0",path="/rpc.php"} 12.0' in told
    assert 'cobblestone_rpc_seconds_count{path="/rpc.php"} 12.0' in told


@pytest.mark.system
def test_a_new_start_counts_from_nothing(tmp_path: Path) -> None:
    _count(tmp_path, 3).communicate("\n")
    assert list(tmp_path.glob("*.db"))
    told = _count(tmp_path, 2, "tell").communicate("\n")[0]
    assert 'cobblestone_rpcs_total{error_num="0",path="/rpc.php"} 2.0' in told


def test_joining_names_the_folder_to_the_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PROMETHEUS_MULTIPROC_DIR", "before")
    metrics_folder.join(tmp_path / "new")
    assert os.environ["PROMETHEUS_MULTIPROC_DIR"] == str(tmp_path / "new")
