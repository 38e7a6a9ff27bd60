"""An operator runs the project from the browser: a release with offline signatures, a batch, its outputs."""

from __future__ import annotations

import json
import re
import shutil
import zipfile
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from accounting.models import Project
from credit.models import App, AppVersion, Batch
from portal.models import User
from scheduler.models import BetaTest
from tests.support.boinc_client import BoincClient
from tests.support.browser_visitor import sign_in
from tests.support.credit_factories import make_app
from tests.support.own_project import Manage, ask_until, attach
from tests.support.site_process import CHECKOUT, Site

EXAMPLE = CHECKOUT / "scheduler" / "examples" / "collatz"
TABLE = "name,command_line\nlow,1000000000000 20000\nhigh,2000000000000 20000\n"


@pytest.fixture
def own_project(manage: Manage) -> str:
    """The master URL of the site's own project, which has no app yet."""
    manage("prepare")
    Project.objects.update(is_active=True)
    return Project.objects.get().master_url


@pytest.fixture
def key_elsewhere(site: Site, own_project: str, tmp_path: Path) -> Path:
    """The private key, which is no longer where the site looks for it."""
    private = Path(site.environment["CODE_SIGNING_KEY"])
    kept = tmp_path / "offline_key"
    shutil.move(private, kept)
    return kept


def prepare_version(page: Page) -> None:
    """A version with its file, step by step; not signed."""
    page.goto("/admin/scheduler/releasedraft/")
    page.get_by_role("link", name="Prepare a version").click()
    page.locator("[name=app]").fill("collatz")
    page.locator("[name=app_name]").fill("Collatz")
    page.locator("[name=version_num]").fill("101")
    page.locator("[name=platform]").fill("x86_64-pc-linux-gnu")
    page.get_by_role("button", name="Next: files").click()
    page.locator("form[data-upload] [name=file]").set_input_files(EXAMPLE / "collatz.py")
    page.locator("[name=is_main_program]").check()
    page.get_by_role("button", name="Upload", exact=True).click()
    expect(page.get_by_text("collatz.py is uploaded.")).to_be_visible()
    expect(page.get_by_role("row", name="collatz.py").get_by_role("cell").first).to_have_text("main program")


def submit_two_jobs(page: Page) -> None:
    """A batch, looked at before it is submitted. One result is enough."""
    page.goto("/project/batches/new/")
    page.get_by_label("Jobs, as comma-separated values").fill(TABLE)
    page.get_by_label("FLOPs per job").fill("2e9")
    page.get_by_label("Output files").fill("out:100000")
    page.get_by_text("Limits, replication and priority").click()
    page.get_by_label("Results that must agree").fill("1")
    page.get_by_role("button", name="Preview jobs").click()
    expect(page.get_by_role("row", name="line 3")).to_contain_text("2000000000000 20000")
    page.get_by_role("button", name="Submit 2 jobs").click()


def test_a_form_with_faults_comes_back_with_its_fields_and_the_file_that_is_right(
    page: Page, site: Site, operator: User, tmp_path: Path
) -> None:
    make_app("collatz")
    jobs = tmp_path / "jobs.csv"
    jobs.write_text("name,min_quorum\nlow,none\n")
    sign_in(page.context, site, operator)
    page.goto("/project/batches/new/")
    page.get_by_label("FLOPs per job").fill("many")
    page.get_by_label("Output files").fill("out:100000")
    file, flops = page.locator("[name=file]"), page.locator("[name=fpops_est]")
    file.set_input_files(jobs)
    page.get_by_role("button", name="Preview jobs").click()
    # The file is read once the values for all jobs are right, so it is still chosen.
    expect(flops).to_be_focused()
    expect(flops).to_have_value("many")
    expect(flops).to_have_accessible_description(re.compile("not a number from 1"))
    assert file.evaluate("input => input.files[0].name") == "jobs.csv"
    flops.fill("2e9")
    page.get_by_role("button", name="Preview jobs").click()
    expect(file).to_have_accessible_description(re.compile("line 2: min_quorum: not a whole number"))
    assert file.evaluate("input => input.files.length") == 0
    jobs.write_text("name,min_quorum\nlow,1\n")
    file.set_input_files(jobs)
    page.get_by_role("button", name="Preview jobs").click()
    expect(page.get_by_role("button", name="Submit 1 job")).to_be_visible()


def test_an_operator_releases_an_app_and_fetches_what_a_client_computed(
    page: Page,
    site: Site,
    background: None,
    own_project: str,
    key_elsewhere: Path,
    boinc_client: BoincClient,
    alice: User,
    tmp_path: Path,
) -> None:
    User.objects.filter(pk=alice.pk).update(is_staff=True, is_superuser=True)
    sign_in(page.context, site, User.objects.get(pk=alice.pk))

    prepare_version(page)

    # Signed where the key is, by who has the file as well.
    with page.expect_download() as download:
        page.get_by_role("link", name="Download the manifest").click()
    download.value.save_as(tmp_path / "manifest.json")
    assert json.loads((tmp_path / "manifest.json").read_text())["files"][0]["file"] == "collatz.py"
    machine_with_key = Manage(site, CODE_SIGNING_KEY=str(key_elsewhere))
    signatures = machine_with_key("sign_manifest", str(tmp_path / "manifest.json"), str(EXAMPLE))
    page.locator("[name=text]").fill(signatures)
    page.get_by_role("button", name="Check and save").click()
    expect(page.get_by_text("All files are signed with the project")).to_be_visible()
    page.get_by_role("button", name="Test", exact=True).click()
    expect(page.get_by_role("row", name="Collatz 1.01")).to_contain_text("in test, for Alice")
    assert BetaTest.objects.get().begun_by == alice

    submit_two_jobs(page)
    batch = Batch.objects.get()

    # The operator's own computer tries the version that is tested.
    App.objects.update(one_result_per_user=False)
    attach(boinc_client, site, "alice@example.org", own_project)
    ask_until(lambda: batch.outputs.count() == 2, "two outputs to be kept", [boinc_client], own_project, site)

    page.goto(f"/project/batches/{batch.pk}/")
    expect(page.locator("#progress")).to_contain_text("finished")
    with page.expect_download() as download:
        page.get_by_role("link", name="Download all (ZIP)").click()
    download.value.save_as(tmp_path / "outputs.zip")
    with zipfile.ZipFile(tmp_path / "outputs.zip") as outputs:
        names = sorted(outputs.namelist())
        assert names == [f"collatz_{batch.pk}_high/out", f"collatz_{batch.pk}_low/out"]
        assert all(outputs.read(name) for name in names)

    # Tried, and now for all.
    page.goto("/admin/scheduler/releasedraft/")
    page.get_by_role("row", name="Collatz 1.01").get_by_role("button", name="Release to all").click()
    expect(page.get_by_role("row", name="Collatz 1.01")).to_contain_text("released")
    assert not BetaTest.objects.exists() and not AppVersion.objects.get().is_deprecated
