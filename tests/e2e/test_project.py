"""A real BOINC client gets jobs of this very site, computes them, uploads, reports, and is granted credit."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.conf import global_settings
from playwright.sync_api import Page, expect
from pytest_django.fixtures import Settings

from accounting.models import Project
from credit.models import App, Result, ServerState, UserCredit, ValidateState
from portal.models import User
from scheduler.models import StoredFile
from tests.support.boinc_client import BoincClient
from tests.support.browser_visitor import sign_in
from tests.support.site_process import CHECKOUT, Site, celery_worker
from tests.support.wait import wait_until

PASSWORDS = {"alice@example.org": "alice's secret", "bob@example.org": "bob's secret"}
JOB_SECS = 240
APPS = Path(__file__).parents[1] / "data" / "apps"
# Two seconds of a processor, at the benchmark of 1 GFLOPS that clients have before they measure.
SHORT: dict[str, Any] = {
    "fpops_est": 2e9,
    "fpops_bound": 2e13,
    "output_files": [{"open_name": "out", "max_nbytes": 100_000}],
}
QUICK = {
    "SCHEDULER_REQUEST_DELAY_SECS": "1",
    "VALIDATOR_EVERY_SECS": "2",
    "TRANSITIONER_EVERY_SECS": "2",
    "AM_REPEAT_SECS_AFTER_ATTACH": "30",
}


@pytest.fixture
def site(transactional_db: None, site_var_dir: Path, tmp_path: Path) -> Iterator[Site]:
    """The site with both rooms, whose background tasks come quickly."""
    # Keys of its own, as one is changed.
    code_keys = {name: str(tmp_path / name.lower()) for name in ("CODE_SIGNING_KEY", "CODE_SIGNING_KEY_PUBLIC")}
    with Site(site_var_dir, tmp_path / "site.log", **QUICK, **code_keys) as running:
        yield running


class Manage:
    """The site's own commands, as its operator types them."""

    def __init__(self, site: Site) -> None:
        self._site = site

    def __call__(self, *arguments: str, given: str = "") -> str:
        run = subprocess.run(
            [sys.executable, "manage.py", *arguments],
            cwd=CHECKOUT,
            env=self._site.environment,
            input=given,
            capture_output=True,
            text=True,
            check=False,
        )
        assert run.returncode == 0, run.stdout + run.stderr
        return run.stdout

    def code_key(self) -> str:
        """The code-signing key in force."""
        return Path(self._site.environment["CODE_SIGNING_KEY_PUBLIC"]).read_text().strip()

    def submit(self, app: str, jobs: list[dict[str, Any]], **defaults: Any) -> None:
        self("submit_jobs", app, "-", given=json.dumps({"defaults": {**SHORT, **defaults}, "jobs": jobs}))


@pytest.fixture
def manage(site: Site) -> Manage:
    return Manage(site)


@pytest.fixture
def background(site: Site, manage: Manage, tmp_path: Path) -> Iterator[None]:
    """A Celery worker with its clock, on the site's database and queue."""
    clock = ("--beat", "--schedule", str(tmp_path / "beat"))
    with celery_worker(site.environment, tmp_path / "worker.log", *clock):
        yield


@pytest.fixture
def project(manage: Manage) -> str:
    """The master URL of the site's own project, offered to volunteers, with the Collatz app released."""
    manage("prepare")
    Project.objects.update(is_active=True)
    manage("release_app_version", str(CHECKOUT / "scheduler" / "examples" / "collatz"))
    # The example lets a newcomer's only computer check itself; here it takes two people.
    App.objects.update(one_result_per_user=True)
    return Project.objects.get().master_url


@pytest.fixture(autouse=True)
def passwords(alice: User, bob: User, settings: Settings) -> None:
    """Hashed as the site hashes them, which the tests' quick hasher does not."""
    settings.PASSWORD_HASHERS = global_settings.PASSWORD_HASHERS
    for user in (alice, bob):
        user.set_password(PASSWORDS[user.email])
        user.save()


@pytest.fixture
def clients(alice: User, bob: User, boinc_client: BoincClient, tmp_path: Path) -> Iterator[dict[str, BoincClient]]:
    """Two volunteers' computers, by their names."""
    with BoincClient(tmp_path / "other") as other:
        yield {"alice": boinc_client, "bob": other}


def held_key(client: BoincClient) -> str:
    """The code-signing key that the client keeps; empty if it has none yet."""
    state = (client.directory / "client_state.xml").read_text(errors="replace")
    found = re.search(r"<code_sign_key>\s*(.*?)\s*</code_sign_key>", state, re.DOTALL)
    return found[1] if found else ""


def attach(client: BoincClient, site: Site, email: str, project: str) -> None:
    client.attach_manager(site.url, email, PASSWORDS[email])
    try:
        wait_until(lambda: client.project_urls() == [project], "the project to be attached", 60)
    except AssertionError as error:
        error.add_note(f"{client.log()[-6000:]}\n--- site\n{site.log()[-6000:]}")
        raise


def wait_for(ask: Any, what: str, clients: dict[str, BoincClient], project: str, site: Site) -> None:
    """Ask for work and report as often as the site allows, until it is true."""

    def poke() -> bool:
        if ask():
            return True
        for client in clients.values():
            client.command("--project", project, "update")
        return bool(ask())

    try:
        wait_until(poke, what, JOB_SECS)
    except AssertionError as error:
        for name, client in clients.items():
            error.add_note(f"--- {name}\n{client.log()[-6000:]}")
        error.add_note(f"--- site\n{site.log()[-6000:]}")
        raise


def test_two_computers_compute_a_replicated_job_and_are_granted_equal_credit(
    page: Page,
    site: Site,
    manage: Manage,
    background: None,
    project: str,
    clients: dict[str, BoincClient],
    alice: User,
    bob: User,
) -> None:
    for name, client in clients.items():
        attach(client, site, f"{name}@example.org", project)
    # They have the project's key, which is then changed before they fetch their first program.
    wait_for(lambda: all(held_key(client) for client in clients.values()), "the key", clients, project, site)
    first_key = held_key(clients["alice"])
    manage("change_code_signing_key")
    manage.submit(
        "collatz", [{"command_line": f"{10**12 + n} 60000"} for n in range(2)], min_quorum=2, target_nresults=2
    )
    valid = Result.objects.filter(validate_state=ValidateState.VALID)
    wait_for(lambda: valid.count() == 4, "two jobs to be validated", clients, project, site)

    assert [held_key(client) for client in clients.values()] == [manage.code_key()] * 2 != [first_key] * 2
    # Each was sent to both volunteers once, and what they uploaded is the same to the bit.
    assert sorted(valid.values_list("user__name", flat=True)) == ["Alice", "Alice", "Bob", "Bob"]
    for workunit in {result.workunit for result in valid}:
        first, second = workunit.results.all()
        assert first.output_digest == second.output_digest
        assert first.granted_credit == second.granted_credit == workunit.canonical_credit
        assert first.granted_credit is not None and first.granted_credit > 0
    totals = UserCredit.objects.get(user=alice).total_credit
    assert totals == pytest.approx(sum(row.granted_credit or 0 for row in valid if row.user_id == alice.pk))

    # Both figures for their owner: estimated by the client, granted by the project.
    clients["alice"].sync_manager()
    sign_in(page.context, site, alice)
    page.goto("/tasks/?state=valid")
    expect(page.get_by_role("row", name=re.compile("Collatz"))).to_have_count(2)
    page.get_by_role("row", name=re.compile("Collatz")).first.get_by_role("link").first.click()
    expect(page.get_by_role("heading", name="Why this credit")).to_be_visible()
    expect(page.get_by_text("another volunteer’s")).to_be_visible()
    page.goto("/history/")
    expect(page.locator("#history-table tfoot [data-kind=ec]")).not_to_have_attribute("data-micro", "0")
    manage("check_credit")
    manage("check_ledger")


def test_jobs_that_fail_say_why(
    page: Page,
    site: Site,
    manage: Manage,
    background: None,
    project: str,
    boinc_client: BoincClient,
    alice: User,
) -> None:
    for app in ("failing", "sleeper", "forged"):
        manage("release_app_version", str(APPS / app))
        manage.submit(app, [{}], min_quorum=1, target_nresults=1, max_error_results=1, output_files=[])
    forged = StoredFile.objects.get(name__startswith="forged")
    forged.signature = forged.signature.replace("a", "b")
    forged.save()
    attach(boinc_client, site, "alice@example.org", project)
    only = {"alice": boinc_client}
    in_progress = Result.objects.filter(server_state=ServerState.IN_PROGRESS, app__name="sleeper")
    wait_for(in_progress.exists, "the long job to be sent", only, project, site)
    wait_until(lambda: "EXECUTING" in boinc_client.command("--get_tasks"), "a job to run", 60)
    sleeper = in_progress.get()
    boinc_client.command("--task", project, sleeper.name, "abort")
    over = Result.objects.filter(server_state=ServerState.OVER)
    wait_for(lambda: over.count() == 3, "all three to be reported", only, project, site)
    by_app = {result.app.name: result for result in over.select_related("app")}
    assert (by_app["failing"].exit_status, by_app["sleeper"].exit_status) == (3, 203)
    assert by_app["forged"].exit_status == -186

    sign_in(page.context, site, alice)
    for app, said in {
        "failing": "the program ended with its own code 3",
        "sleeper": "it was aborted by hand",
        "forged": "did not pass its check: the signature of a program file was wrong",
    }.items():
        page.goto(f"/tasks/{by_app[app].pk}/")
        expect(page.get_by_role("main")).to_contain_text(said)
    page.goto(f"/tasks/{by_app['failing'].pk}/")
    expect(page.get_by_role("main")).to_contain_text("no such glacier")
    page.goto(f"/workunits/{by_app['failing'].workunit_id}/")
    # One more try, which is for another volunteer.
    expect(page.get_by_role("main")).to_contain_text("waits to be sent")
