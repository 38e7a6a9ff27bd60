"""A site moves to another address while real clients have tasks in their queues: none is lost, and nothing detached."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from accounting.models import Project
from credit.models import Result, ServerState, ValidateState
from portal.models import Host
from tests.support.boinc_client import BoincClient
from tests.support.moved_site import FormerAddress
from tests.support.own_project import QUICK, Manage, ask_until, attach
from tests.support.site_process import Site, celery_worker
from tests.support.wait import wait_until


@pytest.fixture
def site(transactional_db: None, site_settings: dict[str, str], site_var_dir: Path, tmp_path: Path) -> Iterator[Site]:
    """One of its own, which is stopped."""
    with Site(site_var_dir, tmp_path / "site.log", **site_settings) as running:
        yield running


@pytest.mark.usefixtures("nginx")
def test_clients_keep_their_tasks_and_work_on_through_the_former_address(
    site: Site, manage: Manage, project: str, clients: dict[str, BoincClient], site_var_dir: Path, tmp_path: Path
) -> None:
    client = clients["alice"]
    attach(client, site, "alice@example.org", project)
    # Of two tasks the first runs, and is to be uploaded to the address at which it was sent.
    manage.submit("collatz", [{"command_line": f"{10**12 + n} 20000"} for n in range(2)], min_quorum=1)
    ask_until(lambda: len(tasks(client)) == 2, "two tasks", [client], project, site)
    sent = tasks(client)
    # A download that ends with the site would be tried again after minutes.
    wait_until(lambda: "EXECUTING" in client.command("--get_tasks"), "the first task to run", 60)
    site.stop()
    code_keys = {name: site.environment[name] for name in ("CODE_SIGNING_KEY", "CODE_SIGNING_KEY_PUBLIC")}
    with (
        Site(site_var_dir, tmp_path / "moved-site.log", **QUICK, **code_keys) as moved,
        FormerAddress(tmp_path / "former", urlsplit(site.url).port or 0, moved.url) as former,
        celery_worker(moved.environment, tmp_path / "worker.log", "--beat"),
    ):
        manage = Manage(moved)
        assert "Nothing was changed" in manage("prepare")
        assert f"has moved from {project} to {moved.url}project/" in manage("move_site")
        client.sync_manager()
        reported = Result.objects.filter(name__in=sent, server_state=ServerState.OVER)
        ask_until(lambda: reported.count() == 2, "both tasks to be reported", [client], project, moved)
        valid = Result.objects.filter(validate_state=ValidateState.VALID)
        ask_until(lambda: valid.count() == 2, "both tasks to be validated", [client], project, moved)
        assert sorted(valid.values_list("name", flat=True)) == sent and Result.objects.count() == 2
        client.sync_manager()
        assert client.project_urls() == [project]
        assert {"/rpc.php", "/project/scheduler", "/project/file_upload_handler"} <= set(former.requests())
        assert "?" not in former.log_of_requests.read_text()
        assert "Detaching" not in client.log() and "Resetting" not in client.log()
        # Its owner leaves the account manager at the old address, and takes it at the new one.
        client.command("--acct_mgr", "detach")
        attach(client, moved, "alice@example.org", project)
        client.sync_manager()
        assert client.project_urls() == [project] and Host.objects.count() == 1
        # Who comes later gets the new address, and a signature of it.
        attach(clients["bob"], moved, "bob@example.org", f"{moved.url}project/")
    assert Project.objects.get().addresses.get().url == project


def tasks(client: BoincClient) -> list[str]:
    lines = client.command("--get_tasks").splitlines()
    return sorted(line.split()[1] for line in lines if line.strip().startswith("name:"))
