"""A real BOINC client gets jobs of this very site, computes them, uploads, reports, and is granted credit."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from accounting.engine.client_tasks import TaskState
from accounting.models import FollowedTask, Project, TaskList
from accounting.running_tasks import follow
from credit.models import Result, ServerState, UserCredit, ValidateState
from portal.models import User
from scheduler.models import KeptOutput, StoredFile
from tests.support.boinc_client import BoincClient
from tests.support.browser_visitor import sign_in
from tests.support.own_project import Manage, ask_until, attach
from tests.support.site_process import Site
from tests.support.wait import wait_until

APPS = Path(__file__).parents[2] / "data" / "apps"


def held_key(client: BoincClient) -> str:
    """The code-signing key that the client keeps; empty if it has none yet."""
    state = (client.directory / "client_state.xml").read_text(errors="replace")
    match = re.search(r"<code_sign_key>\s*(.*?)\s*</code_sign_key>", state, re.DOTALL)
    return match[1] if match else ""


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
    ask_until(lambda: all(held_key(client) for client in clients.values()), "the key", clients.values(), project, site)
    first_key = held_key(clients["alice"])
    manage("change_code_signing_key")
    manage.submit(
        "collatz", [{"command_line": f"{10**12 + n} 60000"} for n in range(2)], min_quorum=2, target_nresults=2
    )
    valid = Result.objects.filter(validate_state=ValidateState.VALID)
    ask_until(lambda: valid.count() == 4, "two jobs to be validated", clients.values(), project, site)

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


def release_apps_that_fail(manage: Manage) -> None:
    """A program that ends with a code of its own, one that sleeps, and one whose signature is wrong; a job of each."""
    for app in ("failing", "sleeper", "forged"):
        manage("release_app_version", str(APPS / app))
        manage.submit(app, [{}], min_quorum=1, target_nresults=1, max_error_results=1, output_files=[])
    forged = StoredFile.objects.get(name__startswith="forged")
    forged.signature = forged.signature.replace("a", "b")
    forged.save()


def listed(client: BoincClient, job: str) -> dict[str, Any] | None:
    """The job in the client's list of tasks, which it was asked for when it attached, and sends at each contact."""
    client.sync_manager()
    return next((task for task in TaskList.objects.get().tasks if task["name"] == job), None)


def check_running_job_is_followed(page: Page, site: Site, client: BoincClient, alice: User, job: Result) -> None:
    """Its owner sees it run, and comes from there to its page."""

    def runs() -> dict[str, Any] | None:
        task = listed(client, job.name)
        return task if task is not None and task["state"] == TaskState.RUNNING else None

    told = wait_until(runs, "the long job to run", 60, 1.0)
    assert told is not None and told["project"] == Project.objects.get().pk
    assert 0 <= told["fraction_done"] <= 1 and told["elapsed_secs"] >= 0
    assert job.deadline_at is not None and abs(told["deadline"] - job.deadline_at.timestamp()) < 2

    def followed() -> bool:
        # Background tasks do it every five minutes. A list that is just being written is left for the next time.
        follow.take_lists()
        return FollowedTask.objects.filter(name=job.name).exists()

    wait_until(followed, "the long job to be followed", 30)
    sign_in(page.context, site, alice)
    page.goto("/home/")
    running = page.get_by_role("region", name="Running now")
    running.get_by_role("link", name=job.name).click()
    expect(page.get_by_role("heading", level=1)).to_contain_text(job.name)


def check_pages_say_why(page: Page, by_app: dict[str, Result]) -> None:
    for app, said in {
        "failing": "the program ended with exit code 3",
        "sleeper": "the task was aborted by the user",
        "forged": "was damaged: the signature of a program file was wrong",
    }.items():
        page.goto(f"/tasks/{by_app[app].pk}/")
        expect(page.get_by_role("main")).to_contain_text(said)
    page.goto(f"/tasks/{by_app['failing'].pk}/")
    expect(page.get_by_role("main")).to_contain_text("no such glacier")
    page.goto(f"/workunits/{by_app['failing'].workunit_id}/")
    # One more try, which is for another volunteer.
    expect(page.get_by_role("main")).to_contain_text("waiting to be sent")


def test_jobs_that_fail_say_why(
    page: Page,
    site: Site,
    manage: Manage,
    background: None,
    project: str,
    boinc_client: BoincClient,
    alice: User,
) -> None:
    release_apps_that_fail(manage)
    attach(boinc_client, site, "alice@example.org", project)
    only = [boinc_client]
    in_progress = Result.objects.filter(server_state=ServerState.IN_PROGRESS, app__name="sleeper")
    ask_until(in_progress.exists, "the long job to be sent", only, project, site)
    sleeper = in_progress.get()
    check_running_job_is_followed(page, site, boinc_client, alice, sleeper)

    boinc_client.command("--task", project, sleeper.name, "abort")
    over = Result.objects.filter(server_state=ServerState.OVER)
    ask_until(lambda: over.count() == 3, "all three to be reported", only, project, site)
    by_app = {result.app.name: result for result in over.select_related("app")}
    assert (by_app["failing"].exit_status, by_app["sleeper"].exit_status) == (3, 203)
    assert by_app["forged"].exit_status == -186

    # What became of it is known at once, as the project is this very site.
    wait_until(lambda: listed(boinc_client, sleeper.name) is None, "the long job to leave the list", 60, 1.0)
    page.goto(f"/computers/{sleeper.host_id}/")
    page.get_by_text("Earlier tasks").click()
    expect(page.get_by_role("row", name=sleeper.name)).to_contain_text("failed")
    check_pages_say_why(page, by_app)


def test_a_wrapper_and_its_program_have_the_files_in_a_folder(
    site: Site, manage: Manage, background: None, project: str, boinc_client: BoincClient
) -> None:
    """As wrappers for containers and virtual machines do, which share one folder with what they start."""
    manage("release_app_version", str(APPS / "wrapped"))
    job = {"command_line": "a b", "input_files": [{"open_name": "in", "content": "one two three\n"}]}
    manage.submit("wrapped", [job], min_quorum=1, target_nresults=1)
    attach(boinc_client, site, "alice@example.org", project)
    outputs = KeptOutput.objects.filter(workunit_name__startswith="wrapped")
    ask_until(outputs.exists, "the job to be validated", [boinc_client], project, site)
    # A wrapper and whatever it starts run at nice 10, other programs for processors at 19.
    assert (Path(site.environment["VAR_DIR"]) / "files" / outputs.get().path).read_text() == "3 a b 10\n"
    # It has kept what the version says of itself.
    state = (boinc_client.directory / "client_state.xml").read_text()
    for element in ("<file_prefix>shared</file_prefix>", "<is_wrapper/>", "<needs_network/>", "<dont_throttle/>"):
        assert element in state
