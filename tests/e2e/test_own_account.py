"""A real BOINC client works for a project with its volunteer's own account there, whose login they entered here, or
with which it was attached by hand.
"""

from __future__ import annotations

import re
import secrets

import pytest
from django.conf import global_settings
from playwright.sync_api import Page, expect
from pytest_django import Settings

from accounting.models import OwnAccount, Project, UserProject
from portal.models import User
from portal.wire import signing
from portal.wire.credentials import client_password_hash
from tests.support.accounting_factories import make_project
from tests.support.boinc_client import BoincClient
from tests.support.browser_visitor import sign_in
from tests.support.mini_project import MiniProject
from tests.support.site_process import Site
from tests.support.wait import wait_until

PASSWORD = "many small stones"
LOGIN, SECRET = "volunteer@project.example.org", "secret of the project"


@pytest.fixture
def site_settings() -> dict[str, str]:
    """It may ask servers on this machine."""
    return {"FETCH_ALLOWED_NETWORKS": "127.0.0.0/8"}


@pytest.fixture
def volunteer(alice: User, settings: Settings) -> User:
    """Alice; her password is hashed as the site hashes it, which the tests' quick hasher does not."""
    settings.PASSWORD_HASHERS = global_settings.PASSWORD_HASHERS
    alice.set_password(PASSWORD)
    alice.save()
    return alice


def test_its_weak_key_is_looked_up_and_the_client_computes_with_it(
    site: Site, worker: None, volunteer: User, boinc_client: BoincClient, page: Page
) -> None:
    weak_key = f"1_{secrets.token_hex(16)}"
    login = (LOGIN, client_password_hash(SECRET, LOGIN))
    with MiniProject(job_secs=(3.0,), login=login, weak_key=weak_key) as mini:
        project = make_project(
            mini.name,
            master_url=mini.url,
            url_signature=signing.sign(mini.url.encode(), site.signing_key),
            account_mode=Project.Account.PER_USER,
        )
        boinc_client.attach_manager(site.url, volunteer.email, PASSWORD)
        wait_until(lambda: "Account manager contact succeeded" in boinc_client.log(), "the first contact", 30)
        assert boinc_client.project_urls() == []

        sign_in(page.context, site, volunteer)
        page.goto(f"/projects/{project.pk}/account/")
        page.get_by_label("E-mail address of the account").first.fill(LOGIN)
        page.get_by_label("Password of the account").first.fill(SECRET)
        page.get_by_role("button", name="Look it up").click()
        expect(page.get_by_role("status").filter(has_text=re.compile("^works$"))).to_be_visible(timeout=30_000)
        expect(page.get_by_text("12.5")).to_be_visible()

        boinc_client.sync_manager()
        wait_until(lambda: bool(mini.jobs[0].report), "the task to be reported", 120)
        assert mini.jobs[0].succeeded()
        keys = {re.findall("<authenticator>(.*?)<", request)[0] for request in mini.scheduler_requests}
        assert keys == {weak_key}
        assert OwnAccount.objects.get().sealed_request is None
        assert mini.account_key.encode() not in bytes(UserProject.objects.get().account_key or b"")


def test_a_client_that_was_attached_by_hand_loses_nothing_when_its_account_is_taken_over(
    site: Site, worker: None, volunteer: User, boinc_client: BoincClient, page: Page
) -> None:
    weak_key = f"1_{secrets.token_hex(16)}"
    login = (LOGIN, client_password_hash(SECRET, LOGIN))
    with MiniProject(job_secs=(12.0, 12.0), login=login, weak_key=weak_key) as mini:
        boinc_client.command("--project_attach", mini.url, mini.account_key)
        names = {job.name for job in mini.jobs}
        wait_until(lambda: set(boinc_client.task_names()) == names, "the tasks", 60)
        project = make_project(
            mini.name,
            master_url=mini.url,
            url_signature=signing.sign(mini.url.encode(), site.signing_key),
            account_mode=Project.Account.PER_USER,
        )
        boinc_client.attach_manager(site.url, volunteer.email, PASSWORD)
        contacts = "Account manager contact succeeded"
        # The first reply names the project, the second request says the key.
        wait_until(lambda: contacts in boinc_client.log(), "the first contact", 30)
        boinc_client.sync_manager()
        wait_until(lambda: boinc_client.log().count(contacts) > 1, "the second contact", 30)

        sign_in(page.context, site, volunteer)
        page.goto(f"/projects/{project.pk}/account/")
        page.get_by_role("button", name="Take it over").click()
        expect(page.get_by_role("status").filter(has_text=re.compile("^works$"))).to_be_visible(timeout=30_000)

        for _ in range(2):
            boinc_client.sync_manager()
        wait_until(lambda: all(job.report for job in mini.jobs), "all tasks to be reported", 180)
        assert [job.succeeded() for job in mini.jobs] == [True] * 2
        # It is chosen now, and the client has its share and its owner's key.
        assert boinc_client.project_urls() == [mini.url] and boinc_client.resource_shares() == {mini.url: 100}
        keys = {re.findall("<authenticator>(.*?)<", request)[0] for request in mini.scheduler_requests}
        assert keys == {mini.account_key}
        for word in ("Detaching", "Resetting project", "Already attached to a different account", "already attached"):
            assert word not in boinc_client.log(), word
