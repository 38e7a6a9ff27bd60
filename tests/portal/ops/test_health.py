"""Load balancers learn whether a process lives and whether it can serve."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest
from django.core.cache import cache
from django.db import connection
from django.test import Client
from pytest_django import Settings

from portal.databases.clocks import ahead_secs
from portal.ops import health
from tests.support.small_disk import small_disk
from tests.support.wait import wait_for_lock

ROOT = Path(__file__).resolve().parents[3]
ASK_READYZ = """
import django; django.setup()
from django.test import Client
reply = Client().get("/readyz")
print(reply.status_code, reply.content.decode())
"""


def test_a_living_process_says_so_under_any_host_name_and_without_the_database(client: Client) -> None:
    # The test has no access to the database: a query would fail it.
    reply = client.get("/healthz", headers={"host": "10.0.0.7"})
    assert (reply.status_code, reply.content) == (200, b"ok\n")
    assert not reply.cookies


@pytest.mark.django_db(transaction=True)
def test_a_site_whose_parts_work_is_ready(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "_migrated", False)
    reply = client.get("/readyz", headers={"host": "10.0.0.7"})
    assert reply.status_code == 200
    assert reply.json() == {
        "ready": True,
        "parts": {"database": "ok", "cache": "ok", "files": "ok", "clock": "ok", "migrations": "ok"},
    }


@pytest.mark.django_db(transaction=True)
def test_a_probe_leaves_no_table_to_its_session(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    # The end of the session would drop it, and wait for a standby that may be out of reach.
    monkeypatch.setattr(health, "_written", {})
    assert client.get("/readyz").status_code == 200
    with connection.cursor() as cursor:
        cursor.execute("SELECT relname FROM pg_class WHERE relpersistence = 't' AND relname = 'readyz'")
        assert cursor.fetchall() == []


@pytest.mark.django_db
def test_a_migration_that_is_not_applied_makes_the_site_unready(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(health, "_migrated", False)
    with connection.cursor() as cursor:
        cursor.execute("DELETE FROM django_migrations WHERE app = 'accounting'")
    reply = client.get("/readyz")
    assert reply.status_code == 503
    works = dict.fromkeys(("database", "cache", "files", "clock"), "ok")
    assert reply.json()["parts"] == works | {"migrations": "failed"}


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(("secs", "status"), [(59.0, 200), (61.0, 503), (-61.0, 503)])
def test_a_machine_whose_clock_is_wrong_is_not_ready(
    client: Client, monkeypatch: pytest.MonkeyPatch, secs: float, status: int
) -> None:
    monkeypatch.setattr(health, "ahead_secs", lambda session: ahead_secs(session) + secs)
    reply = client.get("/readyz")
    assert (reply.status_code, reply.json()["parts"]["clock"] == "ok") == (status, status == 200)


@pytest.mark.system
@pytest.mark.parametrize(
    ("name", "url", "failed"),
    [
        ("DATABASE_URL", "postgresql://nobody@/none?host=/nonexistent", {"database", "clock", "migrations"}),
        ("CACHE_URL", "redis://127.0.0.1:1/0", {"cache"}),
    ],
)
def test_a_server_that_is_down_is_named_and_nothing_else_is_told(
    settings: Settings, name: str, url: str, failed: set[str]
) -> None:
    run = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", ASK_READYZ],
        cwd=ROOT,
        env={
            **os.environ,
            "DJANGO_SETTINGS_MODULE": "portal.settings",
            "DATABASE_URL": settings.DATABASE_URL,
            "BROKER_URL": "redis://127.0.0.1:1/0",
            "CACHE_URL": settings.CACHE_URL,
            name: url,
        },
        capture_output=True,
        text=True,
        timeout=60,
    )
    status, _, body = run.stdout.partition(" ")
    assert status == "503", run.stderr
    for part in ("database", "cache"):
        assert (f'"{part}": "failed"' in body) == (part in failed)
    assert url not in body
    assert "readiness_failed" in run.stderr


# With the servers and folders of a private installation below VAR_DIR.
ASK_BEFORE_AND_AFTER_FILLING = """
from pathlib import Path
import django; django.setup()
from django.conf import settings
from django.test import Client
from portal.databases.clocks import ahead_secs
from portal.ops import health
from tests.support.small_disk import fill
# However slow the machine is, what was tried stands until the test has it forgotten.
health.WRITE_EVERY_SECS = 3600.0
def ask():
    parts = Client().get("/readyz").json()["parts"]
    return parts["database"], parts["files"]
print(*ask())
fill(Path(settings.VAR_DIR), 64 * 1024)
print(*ask())
health._written.clear()
print(*ask())
"""


@pytest.mark.system
def test_a_full_disk_makes_the_site_unready_at_the_next_try(tmp_path: Path) -> None:
    own = {"DATABASE_URL", "BROKER_URL", "CACHE_URL"}
    inherited = {name: value for name, value in os.environ.items() if name not in own}
    with small_disk(tmp_path / "var", 256 * 1024**2) as var_dir:
        try:
            run = subprocess.run(
                [sys.executable, "-W", "ignore", "-c", ASK_BEFORE_AND_AFTER_FILLING],
                cwd=ROOT,
                env={**inherited, "DJANGO_SETTINGS_MODULE": "portal.settings", "VAR_DIR": str(var_dir)},
                capture_output=True,
                text=True,
                timeout=120,
            )
        finally:
            for lock in var_dir.rglob("server.lock"):
                wait_for_lock(lock)
    # In the middle the outcome of the first try is still given.
    assert run.stdout.splitlines() == ["ok ok", "ok ok", "failed failed"], run.stderr
    assert "No space left on device" in run.stderr


@pytest.mark.django_db(transaction=True)
def test_probes_write_only_now_and_then(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "WRITE_EVERY_SECS", 3600.0)
    monkeypatch.setattr(health, "_written", {})
    tries: list[str] = []
    for name in ("_write_to_database", "_write_files"):
        monkeypatch.setattr(health, name, partial(tries.append, name))
    for _ in range(3):
        assert client.get("/readyz").json()["parts"]["files"] == "ok"
    assert tries == ["_write_to_database", "_write_files"]


def test_a_cache_that_forgets_is_not_ready(settings: Settings) -> None:
    settings.CACHES = {"default": {"BACKEND": "django.core.cache.backends.dummy.DummyCache"}}
    assert cache.get("anything") is None
    with pytest.raises(health.NotReady, match="does not keep"):
        health._check_cache()


def test_a_probe_is_a_get(client: Client) -> None:
    assert client.post("/healthz").status_code == 405
    assert client.head("/healthz").status_code == 200
