"""Mistakes and attacks by clients and operators: nobody else's jobs are delayed, and nothing is lost."""

from __future__ import annotations

import datetime as dt
import random
import re
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import Permission
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from credit.models import (
    App,
    AssimilateState,
    HostAppVersion,
    Outcome,
    ProcessorType,
    Result,
    ServerState,
)
from portal.models import Host, User
from portal.wire.scanner import ProtocolError
from scheduler.engine.request import CPU, GPU_TYPES
from scheduler.lifecycle import assimilator
from scheduler.models import PlanClass, Trickle
from scheduler.submission.submit import submit
from scheduler.wire.job_fields import JobError
from scheduler.wire.requests import MAX_RESULTS
from tests.support.batches_api import API, SUBMISSION
from tests.support.credit_factories import NOON, make_app, make_result, make_version, make_workunit
from tests.support.rest_api import bearer, call
from tests.support.scheduler_clients import (
    ADDRESS,
    CAPTURES,
    Computer,
    computer_of,
    gpu,
    messages,
    names,
    post,
    result_xml,
)
from tests.support.upload_requests import make_task, upload_body
from tests.support.upload_requests import post as post_upload

pytestmark = pytest.mark.django_db

GPU_TAGS = ("coproc_cuda", "coproc_ati", "coproc_intel_gpu", "coproc_apple_gpu")
LONG_TYPE = "gpu_of_a_type_with_a_long_name"


@pytest.fixture
def app(db: None) -> App:
    app = make_app()
    make_version(app)
    return app


def fill(app: App, njobs: int) -> list[Result]:
    """This many jobs of an hour on a processor of 4 GFLOPS, of which half is expected."""
    return [make_result(make_workunit(app, fpops_est=7.2e12, fpops_bound=1e16)) for _ in range(njobs)]


# --- requests ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [b"-1e304", b"&#0;\\u0000\xff\"'{"])
def test_no_number_of_a_captured_request_makes_the_scheduler_fail(app: App, alice: User, value: bytes) -> None:
    fill(app, 5)
    computer = computer_of(alice)
    seen: set[bytes] = set()
    for path in sorted(CAPTURES.glob("sched_request_*.xml")):
        body = re.sub(rb"<authenticator>[^<]*<", f"<authenticator>{computer.key}<".encode(), path.read_bytes())
        for tag in sorted(set(re.findall(rb"<(\w+)>[-+0-9.eE]+</\1>", body)) - seen):
            seen.add(tag)
            start = b"<" + tag + b">"
            spoilt = re.sub(start + rb"[^<]*<", lambda _, start=start: start + value + b"<", body)  # type: ignore[misc]  # not inferred
            reply = Client().post(ADDRESS, spoilt, content_type="text/xml")
            assert reply.status_code == 200
            assert b"<project_name>" in reply.content, (tag, reply.content)
    assert len(seen) > 80


def test_a_type_of_processor_that_no_result_can_name_gets_no_jobs(app: App, alice: User) -> None:
    fill(app, 1)
    own = (
        f"<app_version><app_name>{app.name}</app_name><version_num>1</version_num><flops>1e10</flops>"
        f"<avg_ncpus>0.1</avg_ncpus><coproc><type>{LONG_TYPE}</type><count>1</count></coproc></app_version>"
    )
    coprocs = gpu("coproc", secs=1, type=LONG_TYPE)
    computer = computer_of(alice, platform="anonymous", coprocs=coprocs, extra=f"<app_versions>{own}</app_versions>")
    assert names(computer.ask(), "result") == []


def test_a_type_of_processor_that_credit_does_not_know_gets_no_jobs_and_is_told_so(app: App, alice: User) -> None:
    fill(app, 1)
    own = (
        f"<app_version><app_name>{app.name}</app_name><version_num>1</version_num><flops>1e10</flops>"
        "<avg_ncpus>0.1</avg_ncpus><coproc><type>testgpu</type><count>1</count></coproc></app_version>"
    )
    description = gpu("coproc", type="testgpu", secs=100)
    reply = computer_of(alice, coprocs=description, platform="anonymous").ask(extra=own)
    assert names(reply, "result") == []
    assert "need other processors" in messages(reply)[0]
    reply = computer_of(alice, coprocs=description).ask()
    assert "no application for the requested kind of processor" in messages(reply)[0]
    assert (CPU, *GPU_TYPES) == tuple(ProcessorType)


@pytest.mark.parametrize("kind", GPU_TAGS)
def test_own_programs_of_each_type_have_a_record_of_their_own(app: App, alice: User, kind: str) -> None:
    jobs = fill(app, 2)
    type_ = dict(zip(GPU_TAGS, GPU_TYPES, strict=True))[kind]
    own = "".join(
        f"<app_version><app_name>{app.name}</app_name><version_num>1</version_num><flops>1e10</flops>"
        f"<avg_ncpus>{ncpus}</avg_ncpus>{coproc}</app_version>"
        for ncpus, coproc in ((1, ""), (0.1, f"<coproc><type>{type_}</type><count>1</count></coproc>"))
    )
    computer = computer_of(alice, coprocs=gpu(kind, secs=1), platform="anonymous")
    assert len(names(computer.ask(secs=1, extra=own), "result")) == 2
    sent = Result.objects.filter(pk__in=[job.pk for job in jobs])
    assert set(sent.filter(app_version=None).values_list("processor_type", flat=True)) == {CPU, type_}
    records = HostAppVersion.objects.filter(app_version=None)
    assert set(records.values_list("processor_type", flat=True)) == {CPU, type_}


def test_what_is_refused_in_another_venue_is_not_refused_here(app: App, alice: User) -> None:
    fill(app, 2)
    elsewhere = '<venue name="school">\n<no_cpu>1</no_cpu>\n</venue>\n<venue name="work">\n<no_cpu/></venue>\n'
    computer = computer_of(alice)
    reply = computer.ask(1, extra=f"<global_preferences>\n{elsewhere}</global_preferences>\n")
    assert len(names(reply, "result")) == 1
    everywhere = f"<global_preferences>\n{elsewhere}<no_cpu>1</no_cpu></global_preferences>\n"
    assert "preferences do not allow" in messages(computer.ask(1, extra=everywhere))[0]


def test_a_coprocessor_that_calls_itself_a_processor_changes_nothing(app: App, alice: User) -> None:
    fill(app, 1)
    computer = computer_of(alice, coprocs=gpu("coproc", type="CPU"))
    assert len(names(computer.ask(1), "result")) == 1


@pytest.mark.parametrize("tag", ["<no_gpus/>", "<no_gpus>1</no_gpus>"])
def test_a_preference_may_be_an_empty_element(app: App, alice: User, tag: str) -> None:
    make_version(app, plan_class="cuda", processor_type="NVIDIA", gpu_usage=1, avg_ncpus=0.1)
    fill(app, 1)
    computer = computer_of(alice, coprocs=gpu(secs=1), extra=f"<global_preferences>{tag}</global_preferences>")
    (message,) = messages(computer.ask())
    assert "your preferences do not allow this project to use the requested processors" in message


def test_results_beyond_the_limit_of_a_request_are_not_taken_for_lost(app: App, alice: User) -> None:
    computer = computer_of(alice)
    computer.ask()
    sent: dict[str, Any] = {"server_state": ServerState.IN_PROGRESS, "host_id": computer.hostid, "user": alice}
    now = timezone.now()
    mine = [
        make_result(make_workunit(app), sent_at=now, deadline_at=now + dt.timedelta(days=9), **sent) for _ in range(3)
    ]
    strange = "".join(result_xml(f"strange_{n}") for n in range(MAX_RESULTS - 1))
    reply = computer.ask(results=strange + "".join(result_xml(result.name) for result in mine))
    assert len(names(reply, "result_ack")) == MAX_RESULTS
    # The first was read and is over; the other two are neither sent again nor given up.
    assert names(reply, "result") == []
    assert Result.objects.filter(server_state=ServerState.IN_PROGRESS).count() == 2


def test_no_message_is_acknowledged_and_dropped(app: App, alice: User) -> None:
    (result,) = fill(app, 1)
    computer = computer_of(alice)
    computer.ask(1)
    sent = "".join(
        f"<msg_from_host><result_name>{result.name}</result_name><time>{n}</time><variety>v</variety><text>x</text>"
        "</msg_from_host>\n"
        for n in range(300)
    )
    assert "<message_ack/>" in computer.ask(extra=sent)
    assert Trickle.objects.count() == 300


@pytest.mark.parametrize(("state", "exit_status"), [(5, 3), (2, 0), (1, 0), (7, 0)])
def test_an_error_counts_by_whatever_state_it_is_reported(app: App, alice: User, state: int, exit_status: int) -> None:
    # Initial error rate 0.1; an error adds 0.1, and so does a failed transfer.
    (result,) = fill(app, 1)
    computer = computer_of(alice)
    computer.ask(1)
    computer.ask(results=result_xml(result.name, state=state, exit_status=exit_status))
    assert HostAppVersion.objects.get().error_rate == pytest.approx(0.2)


def test_urgent_jobs_that_suit_nobody_do_not_hide_others(app: App, alice: User) -> None:
    fill(app, 5)
    big = make_workunit(app, memory_bound_bytes=10**15)
    Result.objects.bulk_create([Result(workunit=big, app=app, name=f"big_{n}", priority=1) for n in range(1200)])
    computer = computer_of(alice)
    # Half of the requests look behind the urgent ones, and half of these at the first job there.
    jobs_by_reply = [names(computer.ask(0, 1, draw=random.Random(n)), "result") for n in range(40)]
    assert sum(map(len, jobs_by_reply)) == 5


def test_what_is_cut_of_a_computers_claims_is_noted(app: App, alice: User, settings: Settings) -> None:
    settings.AM_MAX_NCPUS, settings.AM_MAX_CPU_FLOPS, settings.AM_MAX_GPUS = 8, 1e11, 2
    computer_of(alice, ncpus=9, p_fpops=2e11, coprocs=gpu(count=3)).ask()
    assert [*map(str, Host.objects.get().hardware_faults)] == [
        "p_ncpus is 9 and counts as 8, the accepted maximum",
        "p_fpops is 2e+11 and counts as 1e+11, the accepted maximum",
        "NVIDIA count is 3 and counts as 2, the accepted maximum",
    ]


def test_gpus_beyond_what_is_believed_bring_no_more_jobs(app: App, alice: User, settings: Settings) -> None:
    settings.AM_MAX_GPUS, settings.MAX_GPU_JOBS_IN_PROGRESS = 2, 1
    make_version(app, plan_class="cuda", processor_type="NVIDIA", gpu_usage=1, avg_ncpus=0.1)
    fill(app, 4)
    assert len(names(computer_of(alice, coprocs=gpu(count=1000, instances=1000)).ask(), "result")) == 2


def test_copies_of_a_client_do_not_make_computers_without_end(app: App, alice: User, settings: Settings) -> None:
    settings.HOSTS_PER_ACCOUNT = 2
    original = computer_of(alice)
    for _ in range(3):
        original.ask()
    Computer(original.key, original.hostid, seqno=0).ask()
    with pytest.raises(ProtocolError, match="This account has 2 computers, which is the limit"):
        Computer(original.key, original.hostid, seqno=0).ask()
    assert Host.objects.count() == 2


def test_invented_computers_get_no_jobs_and_the_client_shows_why(app: App, alice: User, settings: Settings) -> None:
    settings.NEW_HOSTS_PER_DAY = 3
    fill(app, 9)
    key = computer_of(alice).key
    replies = [post(Computer(key).request(1, 1)) for _ in range(5)]
    assert [len(names(reply, "result")) for reply in replies] == [1, 1, 1, 0, 0]
    assert Host.objects.count() == 3
    assert '<message priority="notice">This account has added 3 of the 3 computers that it may add' in replies[3]
    assert "<request_delay>3600</request_delay>" in replies[3]


def test_a_copy_that_may_not_be_added_keeps_what_it_reports(app: App, alice: User, settings: Settings) -> None:
    fill(app, 1)
    original = computer_of(alice)
    original.ask(1, 1)
    original.ask()
    copy = Computer(original.key, original.hostid, seqno=0)
    settings.NEW_HOSTS_PER_DAY = 1
    reply = post(copy.request(results=result_xml(original.jobs[0])))
    assert "This account has added 1 of the 1 computers" in reply and "<result_ack>" not in reply
    assert Result.objects.get().server_state == ServerState.IN_PROGRESS
    # As soon as it may be added, it reports it again, and it counts.
    settings.NEW_HOSTS_PER_DAY = 2
    reply = post(copy.request(results=result_xml(original.jobs[0])))
    assert names(reply, "result_ack") == original.jobs
    assert Result.objects.get().server_state == ServerState.OVER


def test_a_plan_class_that_names_no_gpus_uses_those_of_the_version(app: App, alice: User) -> None:
    PlanClass.objects.create(name="cuda", processor_type="NVIDIA")
    make_version(app, plan_class="cuda", processor_type="NVIDIA", gpu_usage=1, avg_ncpus=0.1)
    fill(app, 3)
    reply = computer_of(alice, coprocs=gpu(instances=1)).ask()
    assert "<type>NVIDIA</type>\n<count>1</count>" in reply
    assert len(names(reply, "result")) == 1


# --- files ------------------------------------------------------------------------------------------------------------


def test_a_task_that_was_taken_for_lost_may_still_deliver(studio: Host) -> None:
    task = make_task("lost_0", studio)
    Result.objects.filter(pk=task.pk).update(server_state=ServerState.OVER, outcome=Outcome.CLIENT_DETACHED)
    assert post_upload(upload_body("lost_0_0", b"x")) == "0"


# --- jobs -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("job", "field"),
    [
        ({"fpops_est": 0.5}, r"jobs\[0\].fpops_est"),
        ({"input_files": [{"open_name": "in", "content": "\ud800"}]}, r"jobs\[0\].input_files\[0\].content"),
        ({"\ud800": 1}, r"jobs\[0\]..ud800"),
    ],
)
def test_a_job_that_the_tables_or_files_cannot_hold_is_refused(app: App, job: dict[str, Any], field: str) -> None:
    with pytest.raises(JobError, match=field):
        submit(app, {"fpops_est": 1e12, "output_files": []}, [job], owner=None, now=NOON)


def test_the_rest_api_refuses_json_that_is_nested_without_end(app: App, alice: User) -> None:
    alice.user_permissions.add(Permission.objects.get(codename="add_batch"))
    headers = bearer(User.objects.get(pk=alice.pk))
    deep = '{"app": "alpine", "jobs": ' + "[" * 100_000
    reply = Client().generic("POST", API, deep, "application/json", headers=headers)
    assert reply.status_code == 400
    call("POST", API, headers, {**SUBMISSION, "jobs": [{"\ud800": 1}]}, 400)


def test_a_module_that_cannot_be_read_holds_up_no_other_app(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, settings: Settings
) -> None:
    settings.APP_FUNCTIONS = ["broken_assimilation.take"]
    (tmp_path / "broken_assimilation.py").write_text("this is no python\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    for app in (make_app(name="aaa", assimilation_function="broken_assimilation.take"), make_app(name="bbb")):
        make_workunit(app, error_mask=2, assimilate_state=AssimilateState.READY)
    assert assimilator.run(NOON) == 1
