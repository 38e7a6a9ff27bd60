"""An operator adds a project by its URL, in a browser; the project is a second Cobblestone."""

from __future__ import annotations

import re
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Page, expect

from accounting.models import Project
from accounting.rpc import account_keys
from portal.models import Host, User
from portal.wire import signing
from portal.wire.credentials import client_password_hash
from tests.support.browser_visitor import sign_in
from tests.support.site_process import Site

EMAIL, PASSWORD = "ops@example.org", "many small stones"


@pytest.fixture
def site_settings() -> dict[str, str]:
    """It may ask servers on this machine."""
    return {"FETCH_ALLOWED_NETWORKS": "127.0.0.0/8"}


@pytest.fixture
def second(site: Site, site_var_dir: Path, tmp_path: Path) -> Iterator[Site]:
    public = tmp_path / "code_signing_public"
    public.write_text(signing.public_key_text(signing.generate_key()))
    more = {"SITE_NAME": "Second", "CODE_SIGNING_KEY_PUBLIC": str(public)}
    with Site(site_var_dir, tmp_path / "second.log", **more) as running:
        yield running


def open_account(project_url: str) -> None:
    """As the BOINC Manager does. A user that the test makes itself has a hash that the site does not know."""
    query = {"email_addr": EMAIL, "passwd_hash": client_password_hash(PASSWORD, EMAIL), "user_name": "Ops"}
    with urllib.request.urlopen(f"{project_url}create_account.php?{urlencode(query)}", timeout=60) as reply:
        assert b"<authenticator>" in reply.read()


def test_an_operator_adds_a_project_by_its_url(page: Page, site: Site, second: Site, operator: User) -> None:
    open_account(f"{second.url}project/")
    sign_in(page.context, site, operator)
    page.goto("/admin/accounting/project/")
    page.get_by_role("link", name="Add by URL").click()

    # Its account manager is no project.
    page.get_by_label("Master URL").fill(second.url)
    page.get_by_role("button", name="Ask the project").click()
    expect(page.get_by_text("It is an account manager, not a project.")).to_be_visible()
    page.get_by_role("link", name="Enter another address").click()

    # Typed without the slash at the end
    page.get_by_label("Master URL").fill(f"{second.url}project")
    page.get_by_role("button", name="Ask the project").click()
    expect(page.get_by_label("Name")).to_have_value("Second")
    page.get_by_label("Default resource share").fill("50")
    page.get_by_role("button", name="Add the project").click()

    expect(page.get_by_text("Second was added. No computer is attached to it yet.")).to_be_visible()
    expect(page.get_by_text("The URL is signed with this site’s key")).to_be_visible()
    page.get_by_role("button", name="Attach computers").click()
    expect(page.get_by_text("There is no account key").first).to_be_visible()

    page.get_by_label("E-mail address").fill(EMAIL)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Look up").click()
    expect(page.get_by_text("The project returned the account key.")).to_be_visible()
    page.get_by_role("button", name="Test the account").click()
    # It gave a weak key, which is enough to work with.
    expect(page.get_by_text("this is a weak one. Test the scheduler instead").first).to_be_visible()
    page.get_by_role("button", name="Test the scheduler").click()
    expect(page.get_by_text("The scheduler knows the account “Ops”").first).to_be_visible()
    page.get_by_role("button", name="Attach computers").click()
    expect(page.get_by_text("Computers may be attached now.")).to_be_visible()

    project = Project.objects.get()
    assert (project.name, project.master_url) == ("Second", f"{second.url}project/")
    assert (project.default_share, project.is_active) == (50, True)
    assert signing.verify(project.master_url.encode(), project.url_signature, site.signing_key.public_key())
    assert re.fullmatch(r"\d+_[0-9a-f]{32}", account_keys.shared(project) or "")
    assert Host.objects.get().domain_name.startswith("trial by ")

    page.locator("#content").get_by_role("link", name="Project problems").click()
    expect(page.get_by_role("row", name="Second")).to_be_visible()
