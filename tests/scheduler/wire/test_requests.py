"""Scheduler requests, captured from a real client and generated: what is read, and that nothing breaks the parser."""

from __future__ import annotations

import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from portal.wire.scanner import ProtocolError
from scheduler.engine.request import CPU, WorkRequest
from scheduler.wire import reported, requests
from scheduler.wire.requests import parse_request
from tests.support.scheduler_clients import CAPTURES, captured, gpu

REQUESTS = sorted(path.stem.removeprefix("sched_request_") for path in CAPTURES.glob("sched_request_*.xml"))


def wrapped(inside: str) -> bytes:
    return f"<scheduler_request>\n{inside}\n</scheduler_request>\n".encode()


def test_all_captures_are_here() -> None:
    assert len(REQUESTS) == 12


@pytest.mark.parametrize("name", REQUESTS)
def test_a_captured_request_names_client_and_computer(name: str) -> None:
    request = parse_request(captured(name))
    assert request.client_version == "7.20.5"
    assert request.is_new_style
    assert request.host.host_cpid in ("00000000000000000000000000000a01", "00000000000000000000000000000b01")
    assert request.host.p_fpops == 1e9
    assert "avx2" in request.host.p_features
    assert request.other_results is not None
    assert request.disk_usage["d_project_share"] > 2e9
    assert request.net_stats.keys() == {"bwup", "bwdown"}


def test_work_is_wanted_by_processor_type() -> None:
    request = parse_request(captured("gpu_two_jobs_full_workload"))
    assert request.work_requests == {CPU: WorkRequest(359.711472, 1.75), "testgpu": WorkRequest(358.845887, 1.0)}
    assert [(gpu.type, gpu.count, gpu.peak_flops) for gpu in request.gpus] == [("testgpu", 2, 1e12)]


@pytest.mark.parametrize(
    ("name", "state", "exit_status", "elapsed_secs", "says"),
    [
        ("report_success", 5, 0, 25.033743, "args: in out"),
        ("report_exit3", 3, 3, 1.003264, "process exited with code 3 (0x3, -253)\n\nthis goes to stderr.txt"),
        ("report_aborted", 6, 202, 4.009197, "aborted by project - no longer usable"),
        ("report_bad_app_signature", 1, -186, 0.0, "app_version download error"),
        ("report_cpu_time", 5, 0, 14.023257, "files ['boinc_mmap_file'"),
    ],
)
def test_a_captured_report(name: str, state: int, exit_status: int, elapsed_secs: float, says: str) -> None:
    (result,) = parse_request(captured(name)).results
    assert (result.state, result.exit_status, result.elapsed_secs) == (state, exit_status, elapsed_secs)
    assert " ".join(says.split()) in " ".join(result.stderr_text.split())
    assert result.faults == []


def test_a_refused_upload_says_so_in_the_file_only() -> None:
    (result,) = parse_request(captured("report_upload_refused")).results
    assert (result.state, result.exit_status) == (5, 0)
    assert "upload" in result.files[0].error.lower()


def test_a_captured_trickle() -> None:
    (message,) = parse_request(captured("trickle_up")).trickles
    assert (message.result_name, message.variety) == ("lab_shm_wu_1_0", "progress")
    assert message.text == "<fraction>0.4</fraction>"
    assert message.written_at == 1795249760


def test_the_programs_of_the_anonymous_platform() -> None:
    request = parse_request(captured("anonymous_platform"))
    assert request.is_anonymous
    assert [(v.app_name, v.version_num, v.flops, v.processor_type) for v in request.client_versions] == [
        ("lab_anon", 101, 2.5e9, CPU),
        ("lab_anon", 101, 5e10, "testgpu"),
    ]


@pytest.mark.parametrize(
    ("tags", "wishes"),
    [
        # An old client names no type.
        ("<work_req_seconds>100</work_req_seconds>", {CPU: WorkRequest(100.0)}),
        # New-style although nothing is wanted of CPUs: the old tag is not looked at.
        ("<work_req_seconds>100</work_req_seconds><cpu_req_secs>0</cpu_req_secs>", {CPU: WorkRequest()}),
        ("<work_req_seconds>100</work_req_seconds><cpu_req_instances>0</cpu_req_instances>", {CPU: WorkRequest()}),
        # A coprocessor's own tag is enough.
        (
            f"<work_req_seconds>100</work_req_seconds><coprocs>{gpu(secs=50, instances=1)}</coprocs>",
            {CPU: WorkRequest(), "NVIDIA": WorkRequest(50.0, 1.0)},
        ),
        ("<cpu_req_secs>5</cpu_req_secs><estimated_delay>7</estimated_delay>", {CPU: WorkRequest(5.0, 0.0, 7.0)}),
        # Nothing that is a number: nothing wanted.
        ("<cpu_req_secs>nan</cpu_req_secs><cpu_req_instances>1e400</cpu_req_instances>", {CPU: WorkRequest()}),
        ("<cpu_req_secs>-5</cpu_req_secs>", {CPU: WorkRequest()}),
    ],
)
def test_what_is_wanted(tags: str, wishes: dict[str, WorkRequest]) -> None:
    assert parse_request(wrapped(tags)).work_requests == wishes


def test_a_gpu_as_an_nvidia_client_describes_it() -> None:
    (device,) = parse_request(wrapped(f"<coprocs>{gpu(count=2)}</coprocs>")).gpus
    assert (device.type, device.count, device.ram_bytes) == ("NVIDIA", 2, 8_000_000_000)
    assert (device.driver, device.capability) == (53504, 806)


def test_preferences_against_gpus_refuse_each_type_there_is() -> None:
    text = f"<global_preferences><no_gpus>1</no_gpus></global_preferences><coprocs>{gpu()}</coprocs>"
    assert parse_request(wrapped(text)).refused_types == {"NVIDIA"}
    assert parse_request(wrapped(text.replace(">1<", ">0<"))).refused_types == set()


def test_strange_numbers_of_a_result_are_faults_of_its_own() -> None:
    text = "<result><name>a</name><final_elapsed_time>nan</final_elapsed_time><state>5</state></result>"
    (result,) = parse_request(wrapped(text)).results
    assert result.elapsed_secs is None
    assert [*map(str, result.faults)] == ["final_elapsed_time is not a decimal number from 0 to 1e+11"]


def test_exit_codes_of_windows_are_unsigned_there() -> None:
    (result,) = parse_request(wrapped("<result><name>a</name><exit_status>3221225477</exit_status></result>")).results
    assert result.exit_status == 3221225477 - 2**32


def test_what_a_program_writes_to_stderr_ends_no_result() -> None:
    stderr = "<stderr_out><![CDATA[<stderr_txt>\n</result><name>b</name>\x01\xff\n</stderr_txt>]]></stderr_out>"
    (result,) = parse_request(wrapped(f"<result><name>a</name>{stderr}<exit_status>7</exit_status></result>")).results
    assert (result.name, result.exit_status) == ("a", 7)


def test_only_the_end_of_a_long_stderr_is_kept() -> None:
    long = "x" * 70_000 + "the reason"
    (result,) = parse_request(wrapped(f"<result><name>a</name><stderr_out>{long}</stderr_out></result>")).results
    assert len(result.stderr_text) == reported.MAX_STDERR
    assert result.stderr_text.endswith("the reason")


def test_results_beyond_the_limit_are_left_for_the_next_request() -> None:
    request = parse_request(wrapped("".join(f"<result><name>r{n}</name></result>" for n in range(600))))
    assert [result.name for result in request.results] == [f"r{n}" for n in range(requests.MAX_RESULTS)]


STDERR = "boom </result><result><name>evil</name></result><other_results><name>evil</name></other_results>"


def test_what_a_program_wrote_is_no_part_of_the_message_beyond_the_limit_either() -> None:
    results = "".join(
        f"<result><name>r{n}</name><stderr_out>{STDERR}</stderr_out><state>5</state></result>" for n in range(502)
    )
    request = parse_request(wrapped(f"{results}<other_results><name>mine</name></other_results>"))
    assert request.other_results == frozenset({"mine"})
    assert request.unread_results == {"r500", "r501"}


@pytest.mark.parametrize("before", [1, 501])
@pytest.mark.parametrize(
    "cut", ["", "<name>c</name>", f"<name>c</name><stderr_out>{STDERR}", "<stderr_out>a</stderr_out><state>5</state>"]
)
def test_a_cut_message_is_read_up_to_its_last_whole_result(before: int, cut: str) -> None:
    whole = "".join(f"<result><name>r{n}</name><stderr_out>{STDERR}</stderr_out></result>" for n in range(before))
    body = f"<scheduler_request><hostid>7</hostid>{whole}<result>{cut}".encode()
    request = parse_request(body, is_cut=True)
    assert [result.name for result in request.results] == [f"r{n}" for n in range(min(before, requests.MAX_RESULTS))]
    assert (request.hostid, request.is_cut, request.sends_no_work, request.other_results) == (7, True, True, None)
    assert "evil" not in request.unread_results


SAID = "<result_name>r{0}</result_name><text>boom </msg_from_host><result><name>evil</name></result></text>"


@pytest.mark.parametrize("before", [1, 5001])
@pytest.mark.parametrize("cut", ["", "<result_name>c</result_name><text>a <result><name>evil</name></result>"])
def test_a_message_cut_in_its_trickles_is_read_up_to_the_last_whole_one(before: int, cut: str) -> None:
    whole = "".join(f"<msg_from_host>{SAID.format(n)}</msg_from_host>" for n in range(before))
    body = f"<scheduler_request><hostid>7</hostid>{whole}<msg_from_host>{cut}".encode()
    request = parse_request(body, is_cut=True)
    assert [message.result_name for message in request.trickles] == [f"r{n}" for n in range(min(before, 5000))]
    assert (request.results, request.unread_results, request.other_results) == ([], set(), None)
    assert (request.has_unread_trickles, request.sends_no_work) == (True, True)


def test_a_client_with_too_many_jobs_has_none_taken_for_lost() -> None:
    other = "".join(f"<other_result><name>r{n}</name></other_result>" for n in range(requests.MAX_OTHER_RESULTS + 1))
    assert parse_request(wrapped(f"<other_results>{other}</other_results>")).other_results is None


@pytest.mark.parametrize(
    ("body", "field"),
    [
        (b"", "scheduler_request"),
        (b"<acct_mgr_request></acct_mgr_request>", "scheduler_request"),
        (captured("initial")[:3000], "scheduler_request"),
        (wrapped(f"<authenticator>{'a' * 300}</authenticator>"), "authenticator"),
        (b"<scheduler_request>" + b"<a>" * 300_000, "a"),
    ],
)
def test_what_cannot_be_taken_is_refused_with_the_field(body: bytes, field: str) -> None:
    with pytest.raises(ProtocolError) as refused:
        parse_request(body)
    assert refused.value.field == field


PIECES = st.one_of(
    st.binary(max_size=40),
    st.sampled_from(
        [
            b"<result>", b"</result>", b"<stderr_out>", b"</stderr_out>", b"<name>x</name>", b"<state>5</state>",
            b"<coprocs>", b"<coproc_cuda>", b"<count>-1</count>", b"</coproc_cuda>", b"</coprocs>", b"<msg_from_host>",
            b"<text>", b"</text>", b"</msg_from_host>", b"<app_versions>", b"<app_version>", b"</app_version>",
            b"<host_info>", b"<p_ncpus>1e304</p_ncpus>", b"</host_info>", b"<other_results>", b"</other_results>",
            b"<cpu_req_secs>inf</cpu_req_secs>", b"<hostid>-7</hostid>", b"<file_info>", b"</file_info>",
            b"<time_stats><on_frac>nan</on_frac></time_stats>", b"<exit_status>1e9</exit_status>", b"<![CDATA[", b"]]>",
        ]
    ),
)  # fmt: skip


@given(st.lists(PIECES, max_size=30))
def test_no_bytes_crash_the_reading(pieces: list[bytes]) -> None:
    try:
        request = parse_request(b"<scheduler_request>" + b"".join(pieces) + b"</scheduler_request>")
    except ProtocolError:
        return
    assert all(wish.secs >= 0 and wish.instances >= 0 for wish in request.work_requests.values())
    assert all(0.01 <= fraction <= 1 for fraction in request.available_fractions)
    assert all(gpu.count >= 1 and gpu.peak_flops >= 0 for gpu in request.gpus)


def test_a_request_full_of_keywords_takes_little_memory() -> None:
    body = b"<scheduler_request><user_keywords>%b</user_keywords></scheduler_request>"
    body %= b"<yes>7</yes>" * 300_000 + b"<no>8</no>"
    tracemalloc.start()
    request = parse_request(body)
    # The section is copied once; a pair for each keyword would take 40 MB.
    assert tracemalloc.get_traced_memory()[1] < 20_000_000
    tracemalloc.stop()
    assert request.keywords_yes == {7} and not request.keywords_no
