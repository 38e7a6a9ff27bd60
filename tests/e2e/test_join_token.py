"""A laboratory makes a join token on the page, and attaches real BOINC clients with it: by command, and by an image."""

from __future__ import annotations

import re
from pathlib import Path

from allauth.mfa.models import Authenticator
from playwright.sync_api import Page, expect

from portal.models import ClientKey, Host, JoinToken, LoginToken, User
from portal.wire import signing
from tests.support.accounting_factories import make_project
from tests.support.boinc_client import BoincClient
from tests.support.browser_visitor import sign_in
from tests.support.mini_project import MiniProject
from tests.support.site_process import Site
from tests.support.wait import wait_until


def test_clients_join_by_command_and_by_files_in_an_image(
    page: Page, site: Site, alice: User, boinc_client: BoincClient, tmp_path: Path
) -> None:
    with MiniProject() as project:
        make_project(
            project.name,
            project.account_key,
            master_url=project.url,
            url_signature=signing.sign(project.url.encode(), site.signing_key),
        )
        sign_in(page.context, site, alice)
        page.goto("/connect/")
        page.get_by_role("link", name="make a join token or ask for more").click()
        page.get_by_label("Group").fill("room 12")
        page.get_by_label("Number of computers").fill("2")
        page.get_by_role("button", name="Create a join token").click()
        expect(page.get_by_text("This is your new join token.")).to_be_visible()
        command = page.locator("#join-command").inner_text()
        image = {name: page.locator(f"#file-{number}").inner_text() for number, name in
                 enumerate(("acct_mgr_url.xml", "acct_mgr_login.xml"), start=1)}  # fmt: skip

        url, login, token = command.split()[-3:]
        boinc_client.attach_manager(url, login, token)
        wait_until(boinc_client.project_urls, "the project to be attached", 30)
        first = Host.objects.get()
        assert (first.groups, first.join_token, first.owner) == (["room 12"], JoinToken.objects.get(), alice)
        # The token is forgotten: the client syncs with the key that it was given.
        boinc_client.sync_manager()
        wait_until(lambda: ClientKey.objects.exclude(last_used_at=None).exists(), "the key to be used", 30)
        assert "<authenticator>" in boinc_client.manager_request()
        login_file = (boinc_client.directory / "acct_mgr_login.xml").read_text()
        assert "<password_hash>" not in login_file and login not in login_file

        # Another computer, which is installed from an image with the two files.
        folder = tmp_path / "image"
        folder.mkdir()
        for name, text in image.items():
            (folder / name).write_text(text)
        # Both run on this machine, with its name and processor, but each has made a cross-project id of its own.
        with BoincClient(folder) as second:
            wait_until(second.project_urls, "the image's client to attach the project", 60)
            assert second.project_urls() == [project.url]
        assert Host.objects.filter(groups=["room 12"]).count() == JoinToken.objects.get().joined_hosts == 2

        page.goto("/computers/joining/")
        expect(page.get_by_text(re.compile("2 of 2 computers joined"))).to_be_visible()


def test_a_client_attaches_by_a_login_token_where_a_second_factor_is_on(
    page: Page, site: Site, alice: User, boinc_client: BoincClient
) -> None:
    Authenticator.objects.create(user=alice, type=Authenticator.Type.TOTP, data={})
    with MiniProject() as project:
        make_project(
            project.name,
            project.account_key,
            master_url=project.url,
            url_signature=signing.sign(project.url.encode(), site.signing_key),
        )
        sign_in(page.context, site, alice)
        page.goto("/connect/")
        page.get_by_role("link", name="login token").click()
        page.get_by_role("button", name="Create a token").click()
        token = page.locator("#copy-token").inner_text()
        boinc_client.attach_manager(str(page.evaluate("location.origin")) + "/", alice.email, token)
        wait_until(boinc_client.project_urls, "the project to be attached", 30)
        # From now on it goes by the key that it was given.
        boinc_client.sync_manager()
        wait_until(lambda: ClientKey.objects.exclude(last_used_at=None).exists(), "the key to be used", 30)
        assert ClientKey.objects.get().user == alice and not LoginToken.objects.exists()
