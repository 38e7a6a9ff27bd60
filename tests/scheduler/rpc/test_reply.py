"""The content of a scheduler reply besides jobs: the next contact, unused processor types, links, preferences."""

from __future__ import annotations

import hashlib
import re
from typing import Any

import pytest
from django.conf import settings as site_settings
from django.test import Client
from pytest_django import Settings

from credit.models import App
from portal.models import User
from portal.people.accounts import weak_key
from portal.wire.credentials import key_hash
from scheduler.models import PlanClass, StoredFile, UserPreferences, VersionFile
from scheduler.programs import catalogue
from tests.support.credit_factories import make_app, make_result, make_version, make_workunit
from tests.support.scheduler_clients import computer_of, gpu, messages, names, post, result_xml, value

pytestmark = pytest.mark.django_db


@pytest.fixture
def app(db: None) -> App:
    app = make_app()
    make_version(app)
    return app


def test_a_reply_names_what_there_is_no_program_for_and_the_volunteers_pages(
    app: App, alice: User, settings: Settings
) -> None:
    settings.SCHEDULER_NEXT_RPC_SECS = 7200
    computer = computer_of(alice)
    reply = computer.ask()
    assert re.findall("<no_rsc_apps>(.*)</no_rsc_apps>", reply) == ["NVIDIA", "ATI", "intel_gpu", "apple_gpu"]
    assert names(reply, "gui_url") == ["Your tasks", "Your preferences", "Your account", "Your computers"]
    for address in re.findall("<url>(.*)</url>", reply):
        assert Client().get(address.removeprefix(settings.SITE_URL.rstrip("/"))).status_code == 302
    assert value(reply, "next_rpc_delay") == "7200"
    settings.SCHEDULER_NEXT_RPC_SECS = 0
    make_version(app, plan_class="cuda", processor_type="NVIDIA", gpu_usage=1)
    catalogue.forget()
    reply = computer.ask()
    assert re.findall("<no_rsc_apps>(.*)</no_rsc_apps>", reply) == ["ATI", "intel_gpu", "apple_gpu"]
    assert "next_rpc_delay" not in reply
    # Who brings programs of his own may use what he likes.
    assert "no_rsc_apps" not in computer.ask(platform_name="anonymous")


def preferences(mod_time: float, user: User, ncpus_pct: int = 50) -> str:
    email_hash = hashlib.md5(user.email.encode()).hexdigest()
    return (
        f"<global_preferences>\n<mod_time>{mod_time:.6f}</mod_time>\n<max_ncpus_pct>{ncpus_pct}</max_ncpus_pct>\n"
        f"</global_preferences>\n<global_prefs_source_email_hash>{email_hash}</global_prefs_source_email_hash>\n"
    )


def test_newer_preferences_go_to_the_volunteers_other_computers(app: App, alice: User, bob: User) -> None:
    first, second, strangers = computer_of(alice), computer_of(alice), computer_of(bob)
    assert "global_preferences" not in first.ask(extra=preferences(1.6e9, alice))
    reply = second.ask()
    assert "<global_preferences>\n<mod_time>1600000000.000000</mod_time>\n<max_ncpus_pct>50<" in reply
    assert "global_preferences" not in second.ask(extra=preferences(1.6e9, alice))
    # The other way round, once they were changed there.
    assert "global_preferences" not in second.ask(extra=preferences(1.7e9, alice, 75))
    assert "<max_ncpus_pct>75<" in first.ask(extra=preferences(1.6e9, alice))
    assert "global_preferences" not in strangers.ask()


@pytest.mark.parametrize("case", ["weak key", "other account", "from the future", "not text", "too long"])
def test_preferences_that_need_not_be_the_persons_are_not_kept(app: App, alice: User, bob: User, case: str) -> None:
    computer = computer_of(alice)
    sent = preferences(4e9 if case == "from the future" else 1.6e9, bob if case == "other account" else alice)
    if case == "weak key":
        computer.key = weak_key(alice.pk, key_hash(computer.key))
    if case == "too long":
        sent = sent.replace("<max_ncpus_pct>", "<!-- -->" * 10_000 + "<max_ncpus_pct>")
    body = computer.request(extra=sent)
    if case == "not text":
        body = body.replace(b"<max_ncpus_pct>", b"\xff<max_ncpus_pct>")
    post(body)
    assert not UserPreferences.objects.exists()
    assert "global_preferences" not in computer_of(alice).ask()


def test_the_projects_address_is_named_only_to_a_computer_that_has_no_task_to_lose(app: App, alice: User) -> None:
    """A client from 8.0 on that has the project at another address takes this one, and drops the project's tasks."""
    for _ in range(2):
        make_result(make_workunit(app, fpops_est=7.2e12, fpops_bound=1e16))
    computer = computer_of(alice)
    # Tasks of the same reply come after the change.
    first = computer.ask(instances=2)
    assert (value(first, "master_url"), len(computer.jobs)) == (site_settings.PROJECT_URL, 2)
    assert "<master_url>" not in computer.ask()
    one, other = computer.jobs
    assert "<master_url>" not in computer.ask(results=result_xml(one, state=3, exit_status=1))
    reply = computer.ask(results=result_xml(other, state=3, exit_status=1))
    assert (value(reply, "master_url"), names(reply, "result_ack")) == (site_settings.PROJECT_URL, [other])
    silent = computer.request().replace(b"<other_results>\n</other_results>", b"")
    assert b"other_results" not in silent and "<master_url>" not in post(silent)


def test_a_computer_has_one_job_at_a_time_of_an_app_that_hardly_computes(app: App, alice: User) -> None:
    App.objects.update(is_non_cpu_intensive=True)
    for _ in range(3):
        make_result(make_workunit(app, fpops_est=7.2e12, fpops_bound=1e16))
    computer = computer_of(alice)
    reply = computer.ask(instances=4)
    assert (len(names(reply, "result")), value(reply, "non_cpu_intensive")) == (1, "1")
    assert messages(computer.ask(instances=4)) == [
        "No tasks sent: this computer has reached its limit of tasks in progress"
    ]
    reply = computer.ask(instances=4, results=result_xml(computer.jobs[0], state=3, exit_status=1))
    assert len(names(reply, "result")) == 1


@pytest.mark.parametrize(
    ("said", "head", "tail"),
    [
        ({}, "", ""),
        (
            {"api_version": "7.20.0", "cmdline": '--of "a b" > c & d'},
            "<api_version>7.20.0</api_version>\n",
            '<cmdline>--of "a b" &gt; c &amp; d</cmdline>\n',
        ),
        (
            {"is_wrapper": True, "needs_network": True, "dont_throttle": True, "file_prefix": "shared"},
            "<file_prefix>shared</file_prefix>\n<is_wrapper/>\n<needs_network/>\n<dont_throttle/>\n",
            "",
        ),
    ],
)
def test_a_version_says_how_it_is_started(db: None, alice: User, said: dict[str, Any], head: str, tail: str) -> None:
    app = make_app()
    version = make_version(app, plan_class="cuda", processor_type="NVIDIA", gpu_usage=0.5, **said)
    PlanClass.objects.create(name="cuda", processor_type="NVIDIA", gpu_usage=0.5)
    main = StoredFile.objects.create(name="main", path="files/main", nbytes=1, md5="0" * 32)
    VersionFile.objects.create(app_version=version, file=main, is_main_program=True)
    make_result(make_workunit(app, fpops_est=7.2e12, fpops_bound=1e16))
    reply = computer_of(alice, coprocs=gpu(secs=100, instances=1)).ask(0)
    (element,) = re.findall("<app_version>.*?</app_version>\n", reply, re.DOTALL)
    # As BOINC's own servers have them: the one before the files, the other before the coprocessor.
    assert element == (
        f"<app_version>\n<app_name>{app.name}</app_name>\n<version_num>100</version_num>\n{head}"
        "<file_ref>\n<file_name>main</file_name>\n<main_program/>\n</file_ref>\n"
        "<platform>x86_64-pc-linux-gnu</platform>\n<plan_class>cuda</plan_class>\n<avg_ncpus>1</avg_ncpus>\n"
        f"<flops>{float(value(element, 'flops')):.6f}</flops>\n{tail}"
        "<coproc>\n<type>NVIDIA</type>\n<count>0.5</count>\n</coproc>\n</app_version>\n"
    )
