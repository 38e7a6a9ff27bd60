"""The first journey: look around, sign up, attach a real BOINC client, and see what it computed today."""

import re
import time
from datetime import UTC, date, datetime
from decimal import Decimal

from playwright.sync_api import Page, expect

from portal.models import User
from portal.templatetags.display import day
from portal.wire import signing
from tests.support.accounting_factories import make_project
from tests.support.boinc_client import BoincClient
from tests.support.mini_project import Job, MiniProject, Report
from tests.support.site_process import Site
from tests.support.wait import wait_until

EMAIL = "Volunteer@Example.org"
PASSWORD = "many small stones"
JOB_SECS = 8.0
SHARE = 40.0
MICRO = 1_000_000


def offer(site: Site, project: MiniProject, *, signed_url: str) -> None:
    """Let the site offer a project, with a signature over `signed_url` as an operator would paste it."""
    make_project(
        name=project.name,
        master_url=project.url,
        default_share=SHARE,
        account_key=project.account_key,
        url_signature=signing.sign(signed_url.encode(), site.signing_key),
    )


def sign_up(page: Page) -> None:
    """As a visitor who looks around in the demo first, and goes through the steps of the first run."""
    User.objects.create_user("demo@example.org", PASSWORD, name="Demo")
    page.goto("/")
    page.get_by_role("button", name="Look around").click()
    expect(page.get_by_text("You are looking around in a demo account.")).to_be_visible()
    page.get_by_role("button", name="Create an account").click()
    page.get_by_label("E-mail address").fill(EMAIL)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name=re.compile("sign up|create", re.IGNORECASE)).click()
    page.get_by_role("link", name="Choose subjects").click()
    page.get_by_role("button", name="Save").click()
    expect(page).to_have_url(re.compile("/connect/$"))


def attach(page: Page, client: BoincClient) -> None:
    """Attach the client as the page says, and see the page notice it."""
    waiting = page.locator("#contact")
    expect(waiting).to_contain_text("make contact for the first time")
    client.attach_manager(page.locator("#copy-url").inner_text(), EMAIL, PASSWORD)
    expect(waiting).to_contain_text("is connected")


def wait_for_report(job: Job, client: BoincClient) -> Report:
    """Wait until the client has reported the job to its project."""
    try:
        wait_until(lambda: job.report, "the job to be reported", 240)
    except AssertionError as error:
        error.add_note(client.log())
        raise
    assert job.report is not None
    return job.report


def reported_secs(client: BoincClient, project: MiniProject) -> Decimal:
    """The project's run time in the client's newest request to its account manager."""
    for section in re.findall(r"<project>.*?</project>", client.manager_request(), re.DOTALL):
        if f"<url>{project.url}</url>" in section:
            return Decimal(re.findall(r"<cpu_time>(.*?)</cpu_time>", section)[0])
    raise AssertionError(f"{project.url} is not in the request\n{client.manager_request()}")


def run_time_row(page: Page, of: date) -> dict[str, str | None]:
    """The exact amounts of one day in the history's table, by kind: microseconds, and numbers of jobs."""
    page.get_by_role("link", name="History", exact=True).first.click()
    page.wait_for_url("**/history/")  # loaded, so that its scripts listen to the controls
    page.get_by_label("Show", exact=True).select_option(label="Run time")
    expect(page).to_have_url(re.compile("show=time"))
    page.get_by_text("History as a table").click()
    row = page.get_by_role("row", name=day(of))
    expect(row).to_be_visible()
    attributes = {"cpu_time": "data-micro", "gpu_time": "data-micro"}
    attributes |= {"njobs_success": "data-count", "njobs_error": "data-count"}
    return {kind: row.locator(f"[data-kind={kind}]").get_attribute(attribute) for kind, attribute in attributes.items()}


def test_a_volunteer_sees_the_run_time_that_the_computer_reported(
    page: Page, site: Site, boinc_client: BoincClient
) -> None:
    with MiniProject(job_secs=(JOB_SECS,)) as project, MiniProject(name="Impostor") as impostor:
        offer(site, project, signed_url=project.url)
        offer(site, impostor, signed_url=project.url)
        sign_up(page)
        attach(page, boinc_client)
        attached_at = time.monotonic()

        # The client has checked both signatures and taken the project whose signature is right.
        wait_until(boinc_client.project_urls, "the project to be attached", 30)
        assert boinc_client.project_urls() == [project.url]
        assert f"Bad signature for URL {impostor.url}" in boinc_client.log()

        report = wait_for_report(project.jobs[0], boinc_client)
        assert project.jobs[0].succeeded()

        # A client counts the last interval of a job twice (BOINC protocol, estimated credit), here up to the
        # whole job: more than the computer can have done unless so much time has passed since the attach.
        enough_secs = 2 * report.elapsed_secs + 10
        wait_until(lambda: time.monotonic() - attached_at > enough_secs, "the allowance", enough_secs)
        boinc_client.sync_manager()
        today = datetime.now(UTC).date()
        # It was handed a key at the attach, and takes shares from the second reply on.
        assert "<password_hash>" not in boinc_client.manager_request()
        assert boinc_client.resource_shares() == {project.url: SHARE}
        secs = reported_secs(boinc_client, project)
        assert secs >= JOB_SECS

        assert run_time_row(page, today) == {
            "cpu_time": str(int(secs * MICRO)),
            "gpu_time": "0",
            "njobs_success": "1",
            "njobs_error": "0",
        }
        assert impostor.scheduler_requests == []


def test_a_client_with_a_wrong_password_is_told_so_and_attaches_to_nothing(
    page: Page, site: Site, boinc_client: BoincClient
) -> None:
    with MiniProject() as project:
        offer(site, project, signed_url=project.url)
        sign_up(page)
        boinc_client.attach_manager(site.url, EMAIL, "another password")
        assert "Message from account manager: The password is wrong." in boinc_client.log()
        assert "Attaching to" not in boinc_client.log()
        assert boinc_client.project_urls() == []
