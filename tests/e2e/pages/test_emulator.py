"""The emulator in a browser: upload a client's file, run it, look at the timeline, compare two policies; and from
a computer's page to the answer."""

from __future__ import annotations

import re
import time
import zipfile
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from accounting.models import Project
from emulator.files.presets import FOLDER
from portal.models import ClientKey, User
from portal.people.accounts import issue_client_key
from tests.support.am_rpc import make_computer
from tests.support.browser_visitor import colours, sign_in
from tests.support.keyword_projects import report
from tests.support.site_process import Site
from tools.simulation.client import Task

AT_WORK = Path(__file__).parents[2] / "data" / "emulator" / "client_at_work"
RUN_MILLISECS = 60_000


@pytest.fixture
def emulator(page: Page, site: Site, worker: None, alice: User) -> Page:
    sign_in(page.context, site, alice)
    page.goto("/emulator/")
    return page


@pytest.fixture
def data_folder(tmp_path: Path) -> Path:
    """A ZIP of a client's data folder, with what else is there."""
    path = tmp_path / "BOINC.zip"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as made:
        for file in AT_WORK.iterdir():
            made.write(file, f"BOINC/{file.name}")
        made.writestr("BOINC/account_127.0.0.1_36765.xml", "<account><authenticator>secret</authenticator></account>")
        made.writestr("BOINC/projects/127.0.0.1_36765/app_config.xml", "<app_config></app_config>")
    return path


def test_a_data_folder_is_uploaded_and_goes_on(emulator: Page, data_folder: Path) -> None:
    page = emulator
    page.get_by_label("ZIP of the data folder").set_input_files(data_folder)
    page.get_by_role("button", name="Upload").click()
    expect(page.get_by_role("heading", name="What to try")).to_be_visible(timeout=RUN_MILLISECS)
    expect(page.locator("#content")).to_contain_text(
        "10 tasks at the start (2 running, 6 not started, 1 suspended, 1 finished but not reported)"
    )
    expect(page.locator("#content")).to_contain_text("The emulation begins at 2026-11-23 19:25 UTC")
    expect(page.locator("#content")).to_contain_text("Other files of the ZIP, which were not opened: 1")
    page.get_by_text("kinds of elements in your files are not used").click()
    expect(page.get_by_role("row", name="project/user_name")).to_contain_text("it says who the volunteer is")
    page.get_by_label("Days", exact=True).fill("1")
    page.get_by_role("button", name="Run", exact=True).click()
    drawn(page)
    page.get_by_text("Scheduling decisions").click()
    expect(page.locator("#decisions")).to_contain_text("it was running when the emulation began")


def drawn(page: Page) -> str:
    """The times between which the timeline is drawn; it waits until it is."""
    timeline = page.locator("[data-timeline][data-drawn]")
    expect(timeline).to_be_visible(timeout=RUN_MILLISECS)
    return timeline.get_attribute("data-drawn") or ""


def test_upload_run_zoom_compare_and_share(emulator: Page) -> None:
    page = emulator
    page.get_by_text("Upload single files instead").click()
    page.get_by_label("client_state.xml").set_input_files(FOLDER / "s4_shares_60_30_10" / "client_state.xml")
    page.get_by_role("button", name="Upload").click()
    expect(page.get_by_role("heading", name="What to try")).to_be_visible(timeout=RUN_MILLISECS)
    page.get_by_label("Days", exact=True).fill("5")
    page.get_by_role("button", name="Run", exact=True).click()
    # Five days, all of them at first.
    assert drawn(page) == f"0 {5 * 86_400}"
    assert colours(page, "[data-timeline] canvas") > 5
    page.get_by_role("button", name="Zoom in").click()
    expect(page.locator("[data-timeline]")).to_have_attribute("data-drawn", f"{5 * 21_600} {5 * 64_800}")
    page.locator("[data-timeline] canvas").focus()
    page.keyboard.press("ArrowRight")
    expect(page.locator("[data-timeline]")).to_have_attribute("data-drawn", f"{5 * 32_400} {5 * 75_600}")
    page.get_by_text("Scheduling decisions").click()
    expect(page.locator("#decisions")).to_contain_text("is asked")
    # A copy of it under two policies, side by side.
    page.get_by_role("button", name="Change and run again").click()
    page.get_by_label("Debt with preemption (2005)").check()
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.get_by_role("heading", name="Figures of merit")).to_be_visible(timeout=RUN_MILLISECS)
    # A chart of each figure, which the keyboard reads.
    expect(page.locator("#figure-wasted")).to_have_attribute("aria-valuetext", re.compile("Wasted"))
    assert colours(page, "#figure-wasted") > 2
    table = page.get_by_role("group", name="Numbers")
    expect(table.get_by_role("row")).to_have_count(3)
    # Both timelines show the same times, and a click on a task tells why it ran.
    page.get_by_role("link", name="Timelines side by side").click()
    timelines = page.locator("[data-timeline]")
    expect(timelines).to_have_count(2)
    for _ in range(3):
        page.get_by_role("button", name="Zoom in").click()
    for number in range(2):
        expect(timelines.nth(number)).to_have_attribute("data-drawn", f"{5 * 37_800} {5 * 48_600}")
    expect(timelines.first.locator("[data-timeline-text]")).to_contain_text("contact")
    timelines.first.locator("canvas").click(position={"x": 400, "y": 40})
    expect(timelines.first.locator("[data-job]")).to_contain_text("runs:")
    page.go_back()
    table.get_by_role("link", name="Open").last.click()
    drawn(page)
    # Anyone who has the link sees it without an account.
    page.get_by_role("button", name="Share with a link").click()
    link = page.locator("a", has_text="/emulator/shared/").get_attribute("href")
    assert link
    page.context.clear_cookies()
    page.goto(link)
    expect(page.get_by_role("heading", name="Figures of merit")).to_be_visible()
    expect(page.get_by_role("button", name="Delete")).to_have_count(0)


def change_example(page: Page, title: str) -> None:
    """From the list of examples to the form for a run of one's own."""
    page.get_by_role("link", name=title).click()
    page.get_by_role("button", name="Change it and run it").click()


def test_the_simulation_behind_a_decision(emulator: Page) -> None:
    page = emulator
    change_example(page, "A has only GPU tasks, B has both (6.6, example 1)")
    page.get_by_label("Days", exact=True).fill("2")
    page.get_by_role("button", name="Run", exact=True).click()
    drawn(page)
    page.get_by_text("Scheduling decisions").click()
    asked = page.locator("#decisions tr", has_text="is asked for work along with a report").first
    asked.get_by_role("link", name="Simulation").click()
    # The page asks for it by itself, and shows it once a worker has repeated the run.
    expect(page.get_by_role("heading", name="Whom to ask for work")).to_be_visible(timeout=RUN_MILLISECS)
    expect(page.locator(".moment__lane")).to_have_count(2)
    expect(page.get_by_role("group", name="Processors").get_by_role("row")).to_have_count(3)
    expect(page.get_by_role("group", name="Whom to ask for work")).to_contain_text("Asked.")
    page.get_by_role("group", name="Tasks").get_by_role("link").first.click()
    expect(page.get_by_role("heading", name="Decisions about a task")).to_be_visible()


def figures(page: Page) -> list[str]:
    """The figures of merit on the page of a run, once it is done."""
    drawn(page)
    return page.locator(".stats dd").all_inner_texts()


def test_edit_everything_download_it_and_upload_it_elsewhere(
    emulator: Page, site: Site, django_user_model: type[User], tmp_path: Path
) -> None:
    page = emulator
    change_example(page, "Two processors, shares of 75 and 25 (2005)")
    page.get_by_role("link", name="Edit everything").click()
    page.get_by_role("button", name="Add a project").click()
    added = page.locator("#projects-2")
    added.get_by_label("Name", exact=True).fill("Third")
    # Left with the Tab key, what was typed is kept: the page can be loaded again.
    with page.expect_response(lambda answer: "/edit/" in answer.url):
        page.keyboard.press("Tab")
    page.reload()
    expect(added.get_by_label("Name", exact=True)).to_have_value("Third")
    added.get_by_role("button", name="Add an app").click()
    second = page.locator("#projects-2-apps-1")
    second.get_by_label("Task (hours)", exact=True).fill("0.5")
    second.get_by_label("Tasks that fail (%)").fill("20")
    page.get_by_label("New event").select_option("ChangeProcessor")
    page.get_by_role("button", name="Add the event").click()
    event = page.locator("#events-0")
    event.get_by_label("How many").fill("4")
    # What is wrong is said while one types, with a link to its field.
    event.get_by_label("Day").fill("")
    event.get_by_label("Day").press("Tab")
    page.locator("#saved").get_by_role("link", name="Hardware changes: Day").click()
    expect(event.get_by_label("Day")).to_be_focused()
    event.get_by_label("Day").fill("2")
    event.get_by_label("How many").press("Tab")
    expect(page.locator("#axis svg circle")).to_have_count(1)
    page.get_by_label("Memory (GiB; 0: no limit)").fill("8")
    page.get_by_text("How it is used").click()
    page.get_by_label("In use (% of these hours)").fill("30")
    page.get_by_role("button", name="Save", exact=True).click()
    page.get_by_label("Days", exact=True).fill("4")
    page.get_by_role("button", name="Run", exact=True).click()
    mine = figures(page)
    with page.expect_download() as download:
        page.get_by_role("link", name="figures (JSON)").click()
    download.value.save_as(tmp_path / "result.json")
    page.context.clear_cookies()
    sign_in(
        page.context, site, django_user_model.objects.create_user(email="bob@example.org", password="cobblestone-7")
    )
    page.goto("/emulator/")
    page.get_by_label("Scenario or result as JSON").set_input_files(tmp_path / "result.json")
    page.get_by_role("button", name="Open the file").click()
    page.get_by_role("button", name="Run", exact=True).click()
    assert figures(page) == mine


def test_from_a_computers_page_to_the_answer(
    emulator: Page, site: Site, alice: User, four_projects: dict[str, Project]
) -> None:
    """Its client reported a task with 60 hours left that is due in a day, so the answer names it."""
    page = emulator
    computer = make_computer(alice, authenticator=issue_client_key(alice, ClientKey.Origin.ATTACH))
    report(site, computer)
    due = time.time() + 86_400
    computer.tasks = [
        Task(four_projects["Sky"].master_url, "sky_survey_7_0", due, process=(1, 2), remaining_secs=60 * 3600.0)
    ]
    report(site, computer)
    page.goto("/computers/")
    page.get_by_role("link", name="studio").first.click()
    page.get_by_role("button", name="Emulate this computer").click()
    expect(page.get_by_text("tasks that the client listed (1)")).to_be_visible()
    page.get_by_label("Days", exact=True).fill("5")
    page.get_by_role("button", name="Run", exact=True).click()
    answer = page.get_by_role("region", name="The answer")
    expect(answer).to_contain_text("sky_survey_7_0 of Sky is finished", timeout=RUN_MILLISECS)
    expect(answer).to_contain_text("after its deadline")
    expect(answer.get_by_role("heading", name="What would help")).to_be_visible()
    answer.get_by_text("What was tried").click()
    expect(answer.get_by_role("row", name="As it is")).to_be_visible()


def test_a_visitor_without_an_account_looks_at_a_reported_case(page: Page, site: Site) -> None:
    page.goto("/emulator/")
    page.get_by_role("link", name="Two backup projects").click()
    expect(page.get_by_role("link", name="BOINC #5589")).to_be_visible()
    expect(page.get_by_role("heading", name="The answer: As implemented in BOINC")).to_be_visible()
    page.get_by_role("link", name="Timelines side by side").click()
    expect(page.locator("[data-timeline][data-drawn]")).to_have_count(2, timeout=RUN_MILLISECS)
    page.get_by_role("link", name="Two backup projects").click()
    expect(page.get_by_role("link", name="Create an account")).to_be_visible()
