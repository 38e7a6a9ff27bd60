"""A real BOINC client whose project changes its address, or was attached by hand: it finishes all of its tasks."""

from __future__ import annotations

import re
import time

import pytest
from django.conf import global_settings
from pytest_django import Settings

from accounting.computers.wishes import save_wishes
from accounting.engine.host_wishes import HostWishes
from accounting.models import HostProject, Project
from accounting.projects.addresses import move
from accounting.rpc import account_keys
from accounting.rpc.catalogue import KEPT_SECS
from portal.models import Host, User
from portal.wire import signing
from tests.support.boinc_client import BoincClient
from tests.support.mini_project import MiniProject
from tests.support.site_process import Site
from tests.support.wait import wait_until

PASSWORD = "many small stones"
TASKS = 4
TASK_SECS = 12.0


@pytest.fixture
def volunteer(alice: User, settings: Settings) -> User:
    """Alice; her password is hashed as the site hashes it, which the tests' quick hasher does not."""
    settings.PASSWORD_HASHERS = global_settings.PASSWORD_HASHERS
    alice.set_password(PASSWORD)
    alice.save()
    return alice


def offer(site: Site, project: MiniProject, url: str, account_key: str) -> Project:
    """Let the site offer the project at this address, with this account."""
    return Project.objects.create(
        name=project.name,
        master_url=url,
        shared_account_key=account_keys.encrypt(account_key),
        url_signature=signing.sign(url.encode(), site.signing_key),
    )


def site_reads_again() -> None:
    """Wait until the list of projects that the site's process keeps is too old to be used."""
    time.sleep(2 * KEPT_SECS)


def names(project: MiniProject) -> set[str]:
    return {job.name for job in project.jobs}


def synced(client: BoincClient) -> str:
    """The request that the client sends when it is told to sync, once it has read the reply."""
    before = client.log().count("Account manager contact succeeded")
    client.sync_manager()
    wait_until(lambda: client.log().count("Account manager contact succeeded") > before, "the sync", 30)
    return client.manager_request()


def contacted(client: BoincClient, project: MiniProject) -> None:
    """The client contacts its project, and reads the reply."""
    before = len(project.scheduler_requests)
    client.update_project(client.project_urls()[0])
    wait_until(lambda: len(project.scheduler_requests) > before, "the contact with the project", 60)
    done = client.log().count("Scheduler request completed")
    wait_until(lambda: client.log().count("Scheduler request completed") >= done, "the reply", 30)


def all_finish(client: BoincClient, project: MiniProject) -> None:
    wait_until(lambda: all(job.report for job in project.jobs), "all tasks to be reported", 240)
    assert [job.succeeded() for job in project.jobs] == [True] * TASKS
    assert "Detaching" not in client.log() and "Resetting project" not in client.log()


def test_no_task_is_lost_when_the_project_changes_scheme_host_and_master_url(
    site: Site, volunteer: User, boinc_client: BoincClient
) -> None:
    with MiniProject(job_secs=(TASK_SECS,) * TASKS) as mini:
        project = offer(site, mini, mini.url, mini.account_key)
        boinc_client.attach_manager(site.url, volunteer.email, PASSWORD)
        wait_until(lambda: set(boinc_client.task_names()) == names(mini), "the tasks", 60)

        # The scheduler names the https form, and the client follows.
        https = mini.url.replace("http://", "https://")
        mini.stated_url = https
        contacted(boinc_client, mini)
        wait_until(lambda: boinc_client.project_urls() == [https], "the client to follow", 30)
        for _ in range(2):
            assert f"<url>{https}</url>" in synced(boinc_client)
        assert boinc_client.project_urls() == [https]
        assert boinc_client.resource_shares() == {https: 100}

        # It names another host, which this client only tells its owner; and the site's operator follows.
        mini.stated_url = mini.url.replace("127.0.0.1", "127.0.0.2")
        contacted(boinc_client, mini)
        synced(boinc_client)
        move(project, mini.stated_url)
        site_reads_again()
        for _ in range(2):
            synced(boinc_client)
        assert boinc_client.project_urls() == [https]

        all_finish(boinc_client, mini)
        synced(boinc_client)
        row = HostProject.objects.get()
        assert (row.project, row.listed) == (project, True)
        # Time and number of all tasks are the project's, as far as the computer can have done them.
        sent = boinc_client.manager_request()
        reported = float(re.findall(r"<cpu_time>(.*?)</cpu_time>", sent)[0])
        assert reported >= TASKS * TASK_SECS
        assert int(row.credited[2] + row.pending[2]) == pytest.approx(reported * 1e6, abs=1)


def test_what_its_owner_attached_by_hand_is_never_detached_unless_they_ask(
    site: Site, volunteer: User, boinc_client: BoincClient
) -> None:
    with MiniProject(job_secs=(TASK_SECS,) * TASKS) as mini:
        boinc_client.command("--project_attach", mini.url, mini.account_key)
        wait_until(lambda: set(boinc_client.task_names()) == names(mini), "the tasks", 60)
        # The site has it at another scheme, with another account.
        project = offer(site, mini, mini.url.replace("http://", "https://"), "7_of_the_site")
        boinc_client.attach_manager(site.url, volunteer.email, PASSWORD)
        wait_until(lambda: "Account manager contact succeeded" in boinc_client.log(), "the first contact", 30)
        for _ in range(2):
            assert f"<account_key>{mini.account_key}</account_key>" in synced(boinc_client)
        assert "Already attached to a different account" not in boinc_client.log()
        assert boinc_client.resource_shares() == {mini.url: 100}

        # It leaves the list.
        project.is_active = False
        project.save()
        site_reads_again()
        for _ in range(2):
            synced(boinc_client)
        assert boinc_client.project_urls() == [mini.url]
        all_finish(boinc_client, mini)
        wait_until(lambda: boinc_client.task_names() == [], "the reports to be acknowledged", 60)
        synced(boinc_client)
        assert boinc_client.project_urls() == [mini.url]

        save_wishes(Host.objects.get(), {project.pk: HostWishes(excluded=True)})
        for _ in range(2):
            synced(boinc_client)
        assert boinc_client.project_urls() == []
