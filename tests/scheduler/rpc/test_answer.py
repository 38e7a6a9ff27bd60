"""The scheduler RPC as a client sees it: account and computer, jobs, messages, repeated and lost requests."""

from __future__ import annotations

import datetime as dt
import re
from typing import Any

import pytest
from django.test import Client
from pytest_django import Settings

from credit.models import App, HostAppVersion, Result, RuleSet, ServerState, Workunit
from portal.models import Host, User
from scheduler.models import BetaTest, HostRecord, PlanClass, StoredFile, VersionFile
from scheduler.programs import catalogue, code_signing
from tests.support.credit_factories import make_app, make_result, make_version, make_workunit
from tests.support.scheduler_clients import (
    ADDRESS,
    Computer,
    captured,
    computer_of,
    gpu,
    messages,
    names,
    post,
    result_xml,
    value,
)

pytestmark = pytest.mark.django_db

HOUR_FPOPS = 7.2e12
"""An hour on a processor of 4 GFLOPS, of which half is expected of a new program."""


@pytest.fixture
def app(db: None) -> App:
    app = make_app()
    make_version(app)
    return app


def fill(app: App, njobs: int, **fields: Any) -> list[Result]:
    """This many jobs of an hour, each of a workunit of its own."""
    given = {"fpops_est": HOUR_FPOPS, "fpops_bound": 1e16, **fields}
    return [make_result(make_workunit(app, **given), priority=given.get("priority", 0)) for _ in range(njobs)]


def test_a_job_comes_with_all_that_it_needs(app: App, alice: User) -> None:
    version = app.versions.get()
    file = StoredFile.objects.create(
        name="alpine_100", path="x", nbytes=423, md5="d" * 32, signature="ab\n.\n", is_executable=True
    )
    VersionFile.objects.create(app_version=version, file=file, is_main_program=True)
    inputs = [{"name": "in_1", "open_name": "in", "nbytes": 3, "md5": "e" * 32}]
    outputs = [{"open_name": "out", "max_nbytes": 1000}, {"open_name": "log", "max_nbytes": 10, "optional": True}]
    (job,) = fill(app, 1, input_files=inputs, output_files=outputs, command_line="in out", delay_bound_secs=86_400)
    reply = computer_of(alice).ask(1, now=dt.datetime(2026, 11, 20, tzinfo=dt.UTC))
    assert names(reply, "app") == ["alpine"]
    assert names(reply, "file_info") == ["alpine_100", "in_1", f"{job.name}_0", f"{job.name}_1"]
    assert "<url>http://127.0.0.1:8000/project/download/alpine_100</url>" in reply
    assert "<executable/>" in reply and "<main_program/>" in reply and "<file_signature>\nab\n.\n" in reply
    assert value(reply, "command_line") == "in out"
    # 2026-11-21, a day later
    assert value(reply, "report_deadline") == "1795219200"
    assert value(reply, "flops") == "2000000000.000000"
    assert reply.count("file_upload_handler") == 2
    # Everything is copied, but for the program's own file; the second output may be missing.
    assert reply.count("<copy_file/>") == 3
    assert reply.count("<optional/>") == 1
    job.refresh_from_db()
    assert (job.server_state, job.user, job.peak_flops, job.projected_flops) == (4, alice, 4e9, 2e9)
    assert job.deadline_at == dt.datetime(2026, 11, 21, tzinfo=dt.UTC)


def test_a_job_says_how_its_files_travel(app: App, alice: User) -> None:
    inputs = [
        {"name": "#map@home", "open_name": "data/map", "nbytes": 3, "md5": "e" * 32, "sticky": True},
        {
            "name": "jf_1",
            "open_name": "far",
            "nbytes": 4,
            "md5": "f" * 32,
            "urls": ["https://data.example.org/m1", "https://mirror.example.org/m1"],
        },
    ]
    outputs = [{"open_name": "out", "max_nbytes": 1000, "gzip_when_done": True, "no_validate": True}]
    fill(app, 1, input_files=inputs, output_files=outputs)
    reply = computer_of(alice).ask(1)
    assert "<name>#map@home</name>\n<url>http://127.0.0.1:8000/project/download/%23map%40home</url>" in reply
    assert "<open_name>data/map</open_name>" in reply
    assert "<name>jf_1</name>\n<url>https://data.example.org/m1</url>" in reply
    assert (reply.count("<sticky/>"), reply.count("<gzip_when_done/>")) == (1, 1)


def test_two_jobs_of_one_version_name_it_once(app: App, alice: User) -> None:
    fill(app, 2)
    reply = computer_of(alice).ask(0, 2)
    assert reply.count("<app_version>") == 1
    assert len(names(reply, "result")) == 2


def test_urgent_jobs_go_first_then_the_oldest(app: App, alice: User) -> None:
    usual, urgent = fill(app, 2), fill(app, 1, priority=5)
    assert computer_of(alice).ask(0, 3) and Result.objects.filter(server_state=ServerState.IN_PROGRESS).count() == 3
    Result.objects.update(server_state=2, host=None, user=None, sent_at=None, deadline_at=None)
    assert names(computer_of(alice).ask(0, 2), "result") == [urgent[0].name, usual[0].name]


def test_no_second_copy_of_a_workunit_for_the_same_person(app: App, alice: User, bob: User) -> None:
    workunit = make_workunit(app, fpops_est=HOUR_FPOPS)
    make_result(workunit)
    make_result(workunit)
    assert len(names(computer_of(alice).ask(0, 4), "result")) == 1
    reply = computer_of(alice, cpid="d" * 32).ask(0, 4)
    assert messages(reply) == [
        "No tasks sent: the available tasks are copies of tasks that you already have, or are being sent to others"
    ]
    assert len(names(computer_of(bob).ask(0, 4), "result")) == 1


def test_a_head_of_the_queue_that_suits_nobody_does_not_hide_what_is_behind(app: App, alice: User) -> None:
    big = make_workunit(app, fpops_est=HOUR_FPOPS, memory_bound_bytes=10**15)
    Result.objects.bulk_create([Result(workunit=big, app=app, name=f"big_{n}") for n in range(250)])
    fill(app, 50)
    njobs = sum(len(names(computer_of(alice).ask(0, 1), "result")) for _ in range(3))
    assert njobs == 3


@pytest.mark.parametrize(
    ("fields", "request_fields", "words"),
    [
        # 984e9 / 2**30, 16e9 / 2**30
        (
            {"memory_bound_bytes": 10**12},
            {},
            "need 916.5 GB more memory than BOINC may use on this computer (14.9 GB)",
        ),
        # 5e7 / 2**20 = 47.7, 1e10 / 2**30
        (
            {"disk_bound_bytes": 10**10 + 5 * 10**7},
            {},
            "need 48 MB more disk space than BOINC may still use for this project (9.3 GB)",
        ),
        ({"delay_bound_secs": 3599}, {}, "would not finish the tasks before their deadline"),
        ({}, {"delay_secs": 7 * 86400}, "would not finish the tasks before their deadline"),
    ],
)
def test_why_nothing_is_sent_is_said_and_kept(
    app: App, alice: User, fields: dict[str, Any], request_fields: dict[str, Any], words: str
) -> None:
    fill(app, 1, **fields)
    computer = computer_of(alice)
    (message,) = messages(computer.ask(1, **request_fields))
    assert message.startswith("No tasks sent: ") and words in message
    (kept,) = HostRecord.objects.get(host_id=computer.hostid).last_messages
    assert words in kept


def test_an_empty_queue_says_so(app: App, alice: User) -> None:
    assert messages(computer_of(alice).ask(1)) == ["No tasks sent: no tasks are available at the moment"]


def test_a_platform_without_programs_says_so(app: App, alice: User) -> None:
    fill(app, 1)
    (message,) = messages(computer_of(alice, platform="sparc-sun-solaris").ask(1))
    assert message == "No tasks sent: this project has no application for this kind of computer"


def test_a_type_without_programs_says_so(app: App, alice: User) -> None:
    fill(app, 1)
    (message,) = messages(computer_of(alice, coprocs=gpu(secs=100, instances=1)).ask(0))
    assert message == "No tasks sent: this project has no application for the requested kind of processor"


def test_whoever_asks_for_nothing_gets_nothing_and_no_words(app: App, alice: User) -> None:
    fill(app, 1)
    computer = computer_of(alice)
    for reply in (computer.ask(0), computer.ask(100, dont_send_work=1)):
        assert names(reply, "result") == messages(reply) == []


def test_an_old_client_is_given_processor_jobs(app: App, alice: User) -> None:
    fill(app, 3)
    reply = computer_of(alice).ask(7200, None, cpu_req_secs=None, cpu_req_instances=None, work_req_seconds=7200)
    assert len(names(reply, "result")) == 2


def test_preferences_against_gpus_are_kept(app: App, alice: User) -> None:
    make_version(app, processor_type="NVIDIA", plan_class="cuda", gpu_usage=1)
    PlanClass.objects.create(name="cuda", processor_type="NVIDIA", gpu_usage=1, min_driver_version=50000)
    fill(app, 2)
    refused = computer_of(alice, coprocs=gpu(secs=100, instances=1))
    reply = refused.ask(0, extra="<global_preferences><no_gpus>1</no_gpus></global_preferences>\n")
    assert names(reply, "result") == []
    assert "preferences" in messages(reply)[0]
    reply = refused.ask(0)
    assert names(reply, "result")
    assert "<type>NVIDIA</type>" in reply
    assert set(Result.objects.filter(server_state=4).values_list("processor_type", flat=True)) == {"NVIDIA"}


def test_own_programs_get_jobs_and_records_of_their_own(app: App, alice: User) -> None:
    fill(app, 1)
    own = (
        "<app_versions><app_version><app_name>alpine</app_name><version_num>7</version_num>"
        "<platform>x86_64-pc-linux-gnu</platform><avg_ncpus>1</avg_ncpus><flops>3e9</flops></app_version></app_versions>"
    )
    reply = computer_of(alice, platform="anonymous", extra=own).ask(1)
    assert len(names(reply, "result")) == 1
    assert "<app_version>" not in reply
    assert value(reply.split("<workunit>")[1], "version_num") == "7"
    (record,) = HostAppVersion.objects.all()
    assert (record.app, record.app_version, record.processor_type) == (app, None, "CPU")
    assert HostRecord.objects.get().jobs_of_day == [[app.pk, 0, "CPU", 1]]
    assert Result.objects.get().app_version is None


def test_own_programs_for_gpus_cannot_hide_processors(app: App, alice: User) -> None:
    fill(app, 1)
    own = (
        "<app_versions><app_version><app_name>alpine</app_name><version_num>7</version_num>"
        "<platform>x86_64-pc-linux-gnu</platform><avg_ncpus>3</avg_ncpus><flops>3e9</flops>"
        "<coproc><type>NVIDIA</type><count>0.01</count></coproc></app_version></app_versions>"
    )
    computer_of(alice, platform="anonymous", extra=own, coprocs=gpu(secs=100, instances=1)).ask()
    sent = Result.objects.get()
    assert (sent.processor_type, sent.ninstances) == ("NVIDIA", 3.0)


def test_own_programs_of_other_projects_get_words(app: App, alice: User) -> None:
    fill(app, 1)
    (message,) = messages(computer_of(alice, platform="anonymous").ask(1))
    assert (
        message == "No tasks sent: none of the programs in your app_info.xml belongs to an application of this project"
    )


def jobs_of_day() -> tuple[dt.date | None, list[int]]:
    """The only computer's: the day, and how many of each record."""
    record = HostRecord.objects.get()
    return record.jobs_day, [njobs for *_, njobs in record.jobs_of_day]


def test_sending_begins_a_probation_and_counts_the_day(app: App, alice: User) -> None:
    fill(app, 3, delay_bound_secs=86_400)
    computer = computer_of(alice)
    noon = dt.datetime(2026, 11, 20, 12, tzinfo=dt.UTC)
    computer.ask(1, now=noon)
    (record,) = HostAppVersion.objects.all()
    assert record.scale_probation
    assert jobs_of_day() == (noon.date(), [1])
    assert record.host_scale_at == noon + dt.timedelta(days=1)
    # Later jobs of the same spell do not move it; another day counts again.
    computer.ask(1, now=noon + dt.timedelta(hours=13))
    record.refresh_from_db()
    assert record.host_scale_at == noon + dt.timedelta(days=1)
    assert jobs_of_day() == (dt.date(2026, 11, 21), [1])


def test_a_request_that_waited_over_midnight_does_not_bring_yesterday_back(app: App, alice: User) -> None:
    fill(app, 4)
    computer = computer_of(alice)
    midnight = dt.datetime(2026, 11, 21, tzinfo=dt.UTC)
    computer.ask(1, now=midnight + dt.timedelta(seconds=1))
    HostAppVersion.objects.update(max_jobs_per_day=2)
    computer.ask(1, now=midnight - dt.timedelta(seconds=1))
    assert jobs_of_day() == (midnight.date(), [2])
    assert names(computer.ask(1, now=midnight - dt.timedelta(seconds=1)), "result") == []


def test_a_new_version_begins_with_what_is_known_of_the_older_one(app: App, alice: User) -> None:
    fill(app, 2)
    computer = computer_of(alice)
    computer.ask(1)
    HostAppVersion.objects.update(et_n=10, et_avg=1e-9, pfc_n=12, pfc_avg=4.0, error_rate=0.03, max_jobs_per_day=7)
    make_version(app, 101)
    catalogue.forget()
    reply = computer.ask(1)
    # 1 / 1e-9, as measured with version 100
    assert (value(reply, "version_num"), value(reply, "flops")) == ("101", "1000000000.000000")
    record = HostAppVersion.objects.get(app_version__version_num=101)
    assert (record.et_n, record.et_avg, record.pfc_n, record.pfc_avg) == (10, 1e-9, 12, 4.0)
    assert (record.error_rate, record.max_jobs_per_day) == (0.03, 7)
    # One of the older version, and what the newer one took over of that with its own.
    assert jobs_of_day()[1] == [1, 2]


def test_the_limit_of_jobs_in_progress_holds_over_requests(app: App, alice: User, settings: Settings) -> None:
    settings.MAX_JOBS_IN_PROGRESS = 1
    fill(app, 10)
    computer = computer_of(alice, ncpus=2)
    computer.ask(1e6)
    assert len(computer.jobs) == 2
    assert "its limit of tasks in progress" in messages(computer.ask(1e6))[0]


def test_an_app_has_limits_of_its_own_and_others_get_their_jobs_all_the_same(app: App, alice: User) -> None:
    app.max_jobs_in_progress, app.max_jobs_per_rpc = 1, 1
    app.save()
    fill(app, 10)
    other = make_app("basalt")
    make_version(other)
    fill(other, 10)
    computer = computer_of(alice, ncpus=2)
    had = []
    for _ in range(4):
        computer.ask(1e6)
        had.append(Result.objects.filter(name__in=computer.jobs, app=app).count())
    # One in each reply, and one for each of two processors.
    assert had[-1] == 2
    assert all(later - earlier <= 1 for earlier, later in zip([0, *had], had, strict=False))
    assert Result.objects.filter(name__in=computer.jobs, app=other).count() == 10


def test_a_computer_is_told_that_it_has_enough_jobs_of_the_only_app(app: App, alice: User) -> None:
    app.max_jobs_in_progress = 1
    app.save()
    fill(app, 10)
    computer = computer_of(alice, ncpus=2)
    computer.ask(1e6)
    assert len(computer.jobs) == 2
    assert "its limit of tasks in progress" in messages(computer.ask(1e6))[0]


def test_an_app_has_a_limit_of_its_own_for_gpus(alice: User) -> None:
    app = make_app(max_gpu_jobs_in_progress=1)
    make_version(app, processor_type="NVIDIA", plan_class="cuda", gpu_usage=1)
    PlanClass.objects.create(name="cuda", processor_type="NVIDIA", gpu_usage=1)
    fill(app, 5)
    computer = computer_of(alice, coprocs=gpu(secs=1e6, instances=1))
    computer.ask()
    assert len(computer.jobs) == 1


def test_adaptive_replication_makes_a_quorum_for_those_not_trusted(app: App, alice: User) -> None:
    App.objects.update(adaptive_replication=True, rule_set=RuleSet.LETTER)
    first, second = fill(app, 2, min_quorum=1, target_nresults=1, max_total_results=1, max_success_results=1)
    computer = computer_of(alice)
    computer.ask(1)
    workunit = Workunit.objects.get(pk=first.workunit_id)
    assert (workunit.min_quorum, workunit.target_nresults, workunit.max_total_results) == (2, 2, 2)
    assert workunit.transition_at is not None
    HostAppVersion.objects.update(error_rate=0.01)
    computer.ask(1)
    workunit = Workunit.objects.get(pk=second.workunit_id)
    assert (workunit.min_quorum, workunit.target_nresults, workunit.transition_at) == (1, 1, None)


def test_the_benchmark_of_when_a_job_was_sent_is_kept_with_it(app: App, alice: User) -> None:
    fill(app, 2)
    computer = computer_of(alice, p_fpops=4e9)
    computer.ask(1)
    computer.p_fpops = 1e15
    computer.ask(1)
    ceiling = 200e9
    assert set(Result.objects.exclude(host=None).values_list("p_fpops", flat=True)) == {4e9, ceiling}


def test_the_jobs_of_a_trusted_computer_are_spot_checked(app: App, alice: User) -> None:
    App.objects.update(adaptive_replication=True)
    fill(app, 2, min_quorum=1, target_nresults=1, max_total_results=1, max_success_results=1)
    computer = computer_of(alice)
    computer.ask(1)
    HostAppVersion.objects.update(error_rate=0.0, consecutive_valid=10_000)
    App.objects.update(min_replication_chance=1)
    catalogue.forget()
    computer.ask(1)
    assert set(Workunit.objects.values_list("min_quorum", "target_nresults")) == {(2, 2)}


def test_a_lost_reply_is_sent_again(app: App, alice: User) -> None:
    fill(app, 2)
    computer = computer_of(alice)
    computer.ask()
    first = computer.ask(0, 1)
    deadline = value(first, "report_deadline")
    # The reply never arrived: the client does not name the job.
    computer.jobs.clear()
    again = computer.ask(0, 0)
    assert names(again, "result") == names(first, "result")
    assert value(again, "report_deadline") == deadline
    assert Result.objects.filter(server_state=ServerState.IN_PROGRESS).count() == 1


def test_a_job_sent_again_counts_in_what_is_wanted(app: App, alice: User) -> None:
    fill(app, 5)
    computer = computer_of(alice)
    computer.ask()
    computer.ask(0, 1)
    computer.jobs.clear()
    computer.ask(0, 2)
    assert len(computer.jobs) == 2
    assert Result.objects.filter(server_state=ServerState.IN_PROGRESS).count() == 2


def test_jobs_of_a_computer_that_was_set_up_anew_are_given_up(app: App, alice: User) -> None:
    fill(app, 1)
    computer = computer_of(alice)
    computer.ask(1)
    again = Computer(computer.key, cpid=computer.cpid)
    assert names(again.ask(0), "result") == []
    assert again.hostid == computer.hostid
    result = Result.objects.get()
    assert (result.server_state, result.get_outcome_display()) == (ServerState.OVER, "abandoned")
    assert Workunit.objects.get().transition_at is not None


def test_a_client_that_does_not_list_its_jobs_loses_none(app: App, alice: User) -> None:
    fill(app, 1)
    computer = computer_of(alice)
    computer.ask(1)
    body = computer.request(others=[]).replace(b"<other_results>\n</other_results>\n", b"")
    assert names(post(body), "result") == []
    assert Result.objects.get().server_state == ServerState.IN_PROGRESS


def test_what_nobody_needs_any_more_is_aborted(app: App, alice: User, bob: User) -> None:
    cancelled, decided, kept = fill(app, 3)
    computer = computer_of(alice)
    computer.ask(0, 3)
    Workunit.objects.filter(pk=cancelled.workunit_id).update(error_mask=16, assimilate_state=1)
    Workunit.objects.filter(pk=decided.workunit_id).update(canonical_result=kept.pk)
    reply = computer.ask(others=[*computer.jobs, "unheard_of"])
    assert sorted(names(reply, "result_abort")) == sorted([cancelled.name, "unheard_of"])
    assert names(reply, "result_abort_if_not_started") == [decided.name]


def test_the_computers_description_is_kept_and_renewed(app: App, alice: User) -> None:
    computer = computer_of(alice, coprocs=gpu())
    computer.ask()
    host = Host.objects.get()
    assert [(c["type"], c["count"]) for c in host.coprocs] == [("NVIDIA", 1)]
    computer.ncpus = 8
    computer.ask(extra="<time_stats><on_frac>0.5</on_frac><connected_frac>-1</connected_frac></time_stats>")
    host.refresh_from_db()
    assert host.ncpus == 8
    record = HostRecord.objects.get()
    assert (record.on_frac, record.connected_frac, record.rpc_seqno) == (0.5, None, 0)


@pytest.mark.parametrize(
    "name",
    [
        "initial", "work_with_other_result", "report_success", "report_exit3", "report_aborted", "report_bad_md5",
        "report_bad_app_signature", "report_upload_refused", "report_cpu_time", "trickle_up", "anonymous_platform",
        "gpu_two_jobs_full_workload",
    ],
)  # fmt: skip
def test_captured_requests_are_answered(app: App, alice: User, name: str) -> None:
    fill(app, 5)
    key = computer_of(alice).key
    body = captured(name)
    old = body.split(b"<authenticator>")[1].split(b"</authenticator>")[0]
    body = re.sub(rb"(?<=<code_sign_key>\n)[^<]*", code_signing.code_signing_key_text().encode() + b"\n", body)
    # The number that it had there may be this computer's here, and would not be sent.
    body = re.sub(rb"(?<=<hostid>)[1-9]\d*", b"987654321", body)
    reply = post(body.replace(old, key.encode(), 1))
    assert reply.endswith("</scheduler_reply>\n")
    assert int(value(reply, "hostid")) == Host.objects.get().pk
    # Whatever is reported is acknowledged, though nobody here knows it.
    reported = [result.decode() for result in body.split(b"<result>\n    <name>")[1:]]
    assert names(reply, "result_ack") == [text.split("<")[0] for text in reported]
    assert ("<message_ack/>" in reply) == (b"<msg_from_host>" in body)
    assert bool(names(reply, "result")) == (name != "anonymous_platform")


def test_the_code_signing_key_is_sent_to_those_without_one(app: App, alice: User) -> None:
    computer = computer_of(alice)
    assert "<code_sign_key>" in computer.ask()
    assert "<code_sign_key>" not in computer.ask(code_sign_key=f"\n{code_signing.code_signing_key_text()}\n")


def test_what_is_no_request_is_refused_with_the_reason(app: App) -> None:
    reply = post(b"<scheduler_request><hostid>1")
    assert messages(reply) == ["scheduler_request: not closed: the message was cut off"]
    assert reply.endswith("</scheduler_reply>\n")


def test_a_request_of_many_failed_jobs_may_be_larger_than_others(app: App, alice: User) -> None:
    computer = computer_of(alice)
    computer.ask()
    results = "".join(result_xml(f"r{n}", stderr_out="x" * 60_000) for n in range(40))
    assert len(results) > 2_000_000
    assert len(names(post(computer.request(results=results)), "result_ack")) == 40


def test_a_failure_of_ours_makes_clients_wait(app: App, alice: User, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*args: Any, **kwargs: Any) -> bytes:
        raise RuntimeError("as if")

    monkeypatch.setattr("scheduler.rpc.answer.answer", broken)
    client = Client(raise_request_exception=False)
    reply = client.post(ADDRESS, Computer("k").request(), content_type="text/xml").content.decode()
    assert "<project_is_down/>" in reply
    assert messages(reply) == ["The server failed to answer this request. Please try again in a few minutes."]


def test_the_project_page_names_the_scheduler_as_clients_look_for_it(app: App) -> None:
    page = Client().get("/project/").content
    lines = page.split(b"\n")
    (line,) = [line for line in lines if b"<scheduler>" in line]
    assert line == b"<!-- <scheduler>http://127.0.0.1:8000/project/scheduler</scheduler> -->"


def test_the_project_names_only_platforms_whose_programs_all_computers_get(app: App) -> None:
    tested = make_version(app, platform="windows_x86_64")
    BetaTest.objects.create(app_version=tested)
    make_version(app, plan_class="mt", is_deprecated=True)
    make_version(make_app("finished", is_deprecated=True), platform="riscv64-linux-gnu")
    catalogue.forget()
    config = Client().get("/project/get_project_config.php").content.decode()
    assert config.count("<platform>") == 1
    assert value(config, "platform_name") == "x86_64-pc-linux-gnu"
    assert "plan_class" not in config


def test_the_project_says_what_it_is(app: App) -> None:
    config = Client().get("/project/get_project_config.php").content.decode()
    assert value(config, "master_url") == "http://127.0.0.1:8000/project/"
    assert value(config, "platform_name") == "x86_64-pc-linux-gnu"
    assert "account_manager" not in config
    assert "<account_manager/>" in Client().get("/get_project_config.php").content.decode()
