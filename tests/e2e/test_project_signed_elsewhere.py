"""An operator sets a project up in a browser while the signing key is elsewhere; and sees when the project fails."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from accounting.models import Project, ProjectKeyword, ProjectVersion
from accounting.rpc import account_keys
from portal.models import User
from portal.wire import signing
from tests.support.browser_visitor import sign_in
from tests.support.fake_project import WEAK_KEY, FakeProject
from tests.support.site_process import Site


@pytest.fixture
def site_settings(tmp_path: Path) -> dict[str, str]:
    """It has only the public key, and may ask servers on this machine."""
    return {"FETCH_ALLOWED_NETWORKS": "127.0.0.0/8", "AM_SIGNING_KEY": str(tmp_path / "elsewhere")}


@pytest.fixture
def fake() -> Iterator[FakeProject]:
    with FakeProject() as project:
        yield project


def test_an_operator_pastes_a_signature_and_sets_share_platforms_keywords_and_key(
    page: Page, site: Site, fake: FakeProject, operator: User
) -> None:
    sign_in(page.context, site, operator)
    page.goto("/admin/accounting/project/")
    page.get_by_role("link", name="Add by URL").click()
    page.get_by_label("Master URL").fill(fake.url)
    page.get_by_role("button", name="Ask the project").click()
    page.get_by_label("windows_x86_64 (NVIDIA GPU)").uncheck()
    page.get_by_role("button", name="Add the project").click()

    # Signed on another machine, whose key this is.
    text = page.locator("#text-to-sign").inner_text()
    assert text == fake.url
    wrong = signing.sign(text.encode(), signing.generate_key())
    for signature, answer in (
        (wrong, "signature"),
        (signing.sign(text.encode(), site.signing_key), "The signature is valid and has been stored."),
    ):
        page.locator("[name=signature]").fill(signature)
        page.get_by_role("button", name="Verify and save").click()
        expect(page.get_by_text(answer).first).to_be_visible()
        assert bool(Project.objects.get().url_signature) is (signature is not wrong)

    page.locator("[name=account_key]").fill(WEAK_KEY)
    page.get_by_role("button", name="Save key").click()
    page.get_by_role("button", name="Test the account").click()
    expect(page.get_by_text("The project knows the account: number 7").first).to_be_visible()
    project = Project.objects.get()
    assert account_keys.shared(project) == WEAK_KEY

    page.get_by_role("link", name="Name, share, keywords, platforms").click()
    page.locator("[name=default_share]").fill("70")
    page.locator("[name=keywords-0-weight]").fill("0.25")
    # The project says its platforms itself, so nobody types them.
    expect(page.locator("[name=versions-0-platform]")).to_have_count(0)
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.get_by_text("was changed successfully")).to_be_visible()
    project.refresh_from_db()
    assert project.default_share == 70
    assert 0.25 in ProjectKeyword.objects.values_list("weight", flat=True)
    assert [version.platform for version in ProjectVersion.objects.all()] == ["windows_x86_64"]

    fake.is_down = True
    page.goto(f"/admin/accounting/project/{project.pk}/set-up/")
    page.get_by_role("button", name="Attach computers").click()
    expect(page.get_by_text("Computers may be attached now.")).to_be_visible()
    page.get_by_role("button", name="Ask now").click()
    expect(page.get_by_text("The project could not be asked.")).to_be_visible()
    page.locator("#content").get_by_role("link", name="Project problems").click()
    expect(page.get_by_role("row", name="Fake@Home")).to_contain_text("127.0.0.1")
