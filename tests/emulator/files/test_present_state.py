"""A scenario goes on from the state of the client whose files it is made of."""

from __future__ import annotations

from pathlib import Path

import pytest

from emulator.engine.policies.names import PolicyName
from emulator.engine.policies.registry import make_policy
from emulator.engine.run import run
from emulator.engine.scenario import Backoffs, Project, Scenario, StartJob, StartState
from emulator.files.scenario import read_folder, read_upload

AT_WORK = Path(__file__).parents[2] / "data" / "emulator" / "client_at_work"
NOW = 1_700_000_000
TIMES = (
    f"<time_stats><client_start_time>{NOW - 500}</client_start_time><previous_uptime>500</previous_uptime></time_stats>"
)


def scenario(*results: str, project: str = "", end: str = "", times: str = TIMES) -> Scenario:
    """A computer of 1 GFLOPS with tasks of 1000 s of project A."""
    return read_upload(
        {
            "client_state.xml": f"""<client_state>
<host_info><p_ncpus>1</p_ncpus><p_fpops>1e9</p_fpops></host_info>
{times}
<project><master_url>http://a.example/</master_url><project_name>A</project_name>{project}</project>
<app><name>a</name></app>
<app_version><app_name>a</app_name><version_num>1</version_num><flops>1e9</flops></app_version>
<workunit><name>w</name><app_name>a</app_name><rsc_fpops_est>1e12</rsc_fpops_est></workunit>
{"".join(results)}
{end}
</client_state>""".encode()
        }
    )


def result(
    name: str = "r", more: str = "<state>2</state>", received: int = NOW - 3600, deadline: int = NOW + 7200
) -> str:
    return (
        f"<result><name>{name}</name><wu_name>w</wu_name><version_num>1</version_num>{more}"
        f"<received_time>{received}</received_time><report_deadline>{deadline}</report_deadline></result>"
    )


def active(elapsed: float, fraction: float, state: int = 1, name: str = "r") -> str:
    return (
        f"<active_task_set><active_task><project_master_url>http://a.example/</project_master_url>"
        f"<result_name>{name}</result_name><active_task_state>{state}</active_task_state>"
        f"<checkpoint_elapsed_time>{elapsed}</checkpoint_elapsed_time>"
        f"<checkpoint_fraction_done>{fraction}</checkpoint_fraction_done>"
        f"<checkpoint_fraction_done_elapsed_time>{elapsed}</checkpoint_fraction_done_elapsed_time>"
        "</active_task></active_task_set>"
    )


def only(found: Scenario) -> StartJob:
    (job,) = found.jobs
    return job


def test_a_real_client_at_work_goes_on() -> None:
    found = read_folder(AT_WORK)
    fish, prime = found.projects
    now = 1795461745.559253 + 175.338521
    states = [job.state for job in found.jobs]
    assert states == ["finished", "running", "suspended", "running", *["new"] * 6]
    # primes_1 has run 143.589664 s and says 4.51 %: at that pace 3183.8 s, of which 4.51 % count, and 95.49 % of 900 s.
    ran = found.jobs[1]
    whole_secs = 0.0451 * 143.589664 / 0.0451 + (1 - 0.0451) * 900
    assert ran.size_flop == pytest.approx(1e9 * whole_secs)
    assert ran.done_fraction == pytest.approx(143.589664 / whole_secs)
    assert ran.deadline_secs == pytest.approx(1795634480 - now)
    # What "Prime count" estimates is multiplied by its correction factor; the other project does not use one.
    assert prime.apps[0].estimate.mean == pytest.approx(8e9 * 3.518341)
    assert fish.apps[0].estimate.mean == 4e10
    assert fish.request_delay_secs == pytest.approx(90)
    assert fish.backoffs.next_rpc_secs == pytest.approx(1795476147.238153 - now)
    ((kind, until_secs, interval_secs),) = prime.backoffs.kinds
    assert (kind, interval_secs) == ("CPU", 600)
    assert until_secs == pytest.approx(1795462253.975412 - now)
    assert prime.no_new_tasks
    assert "Fish & chips@home: suspended tasks stay suspended, so the project is not asked for new ones" in map(
        str, found.notes
    )


def test_a_real_client_at_work_runs_on() -> None:
    found = read_folder(AT_WORK)
    outcome = run(found, make_policy(PolicyName.REC, found, {}), 1, 1)
    assert outcome.timeline is not None
    blocks = outcome.timeline.blocks
    first = [
        (job, end) for job, start, end in zip(blocks.job, blocks.start_secs, blocks.end_secs, strict=True) if not start
    ]
    # The two that ran go on: one with 859.4 s left, which is less than a time slice.
    assert [job for job, _ in first] == [1, 2]
    assert first[0][1] == pytest.approx((1 - found.jobs[1].done_fraction) * found.jobs[1].size_flop / 1e9)
    # Its finished task is reported, and when the server asked for it, it is contacted.
    assert outcome.projects[0].late == 0
    assert sum(outcome.timeline.rpcs.reported) >= 2


@pytest.mark.parametrize(
    ("elapsed", "fraction", "whole_secs"),
    # Expected: 1000 s. By fraction f: f * (elapsed / f) + (1 - f) * expected = elapsed + (1 - f) * 1000.
    [
        (0, 0, 1000),
        (200, 0.5, 700),
        (900, 0.1, 1800),
        (600, 0.9, 700),
        (2000, 0.5, 4000),  # longer than expected: only the fraction counts
        (500, 1, 500),
        (100, 0, 100 / (1 - 2.718281828459045**-0.1)),  # it says nothing: 1 - e^(-100/1000) done
        (1e9, 0, 1e9),
        (100, 2, 100 / (1 - 2.718281828459045**-0.1)),  # nonsense counts as nothing
    ],
)
def test_the_time_left_is_what_the_client_estimates(elapsed: float, fraction: float, whole_secs: float) -> None:
    job = only(scenario(result(), end=active(elapsed, fraction)))
    assert job.size_flop == pytest.approx(1e9 * whole_secs)
    assert job.done_fraction == pytest.approx(elapsed / whole_secs)
    assert job.state is StartState.RUNNING


def test_a_task_that_does_not_run_now_is_preempted() -> None:
    assert only(scenario(result(), end=active(10, 0.1, state=0))).state is StartState.BEGUN
    assert only(scenario(result(), end=active(10, 0.1, state=9))).state is StartState.BEGUN
    assert only(scenario(result(), end=active(10, 0.1, name="other"))).state is StartState.NEW


@pytest.mark.parametrize(
    ("more", "state", "note"),
    [
        ("<state>2</state>", StartState.NEW, ""),
        ("<state>1</state>", StartState.NEW, "A: tasks whose files are not downloaded yet can run at once"),
        ("<state>4</state>", StartState.FINISHED, "A: tasks whose files are not uploaded yet can be reported"),
        ("<state>5</state><ready_to_report/>", StartState.FINISHED, ""),
        ("<state>3</state>", StartState.FINISHED, ""),
        (
            "<state>2</state><suspended_via_gui/>",
            StartState.SUSPENDED,
            "A: suspended tasks stay suspended, so the project is not asked for new ones",
        ),
    ],
)
def test_what_a_task_is_doing(more: str, state: StartState, note: str) -> None:
    found = scenario(result(more=more))
    assert only(found).state is state
    assert (note in map(str, found.notes)) == bool(note)


def test_a_task_that_the_server_knows_to_be_finished_is_gone() -> None:
    assert scenario(result(more="<state>5</state><got_server_ack/>")).jobs == ()


def test_a_finished_task_waits_since_it_was_completed() -> None:
    job = only(scenario(result(more=f"<state>5</state><completed_time>{NOW - 1800}</completed_time>")))
    assert (job.finished_secs, job.received_secs, job.deadline_secs) == (-1800, -3600, 7200)


@pytest.mark.parametrize(
    ("times", "deadline_secs"),
    [
        (f"<time_stats><now>{NOW}</now></time_stats>", 7200),  # what a client tells its manager
        (TIMES, 7200),
        (f"<time_stats><last_update>{NOW - 100}</last_update></time_stats>", 7300),
        ("", 7200 + 3600),  # the newest time of all is the task's arrival
    ],
)
def test_deadlines_count_from_the_moment_of_the_file(times: str, deadline_secs: float) -> None:
    assert only(scenario(result(), times=times)).deadline_secs == deadline_secs


def test_a_deadline_may_be_past() -> None:
    assert only(scenario(result(deadline=NOW - 60))).deadline_secs == -60


def test_a_task_without_a_deadline_has_ten_days_from_its_arrival() -> None:
    assert only(scenario(result(deadline=0))).deadline_secs == 864_000 - 3600


def project_of(elements: str) -> Project:
    (project,) = scenario(project=elements).projects
    return project


def test_back_offs_go_on() -> None:
    project = project_of(
        f"<min_rpc_time>{NOW + 60}</min_rpc_time><last_rpc_time>{NOW - 30}</last_rpc_time>"
        f"<next_rpc_time>{NOW + 900}</next_rpc_time>"
        f"<rsc_backoff_time><name>CPU</name><value>{NOW + 300}</value></rsc_backoff_time>"
        "<rsc_backoff_interval><name>CPU</name><value>1200</value></rsc_backoff_interval>"
    )
    assert project.backoffs == Backoffs(60, 900, 0, (("CPU", 300, 1200),))
    assert project.request_delay_secs == 90


def test_back_offs_that_are_over_are_over() -> None:
    project = project_of(f"<min_rpc_time>{NOW - 60}</min_rpc_time><next_rpc_time>{NOW - 60}</next_rpc_time>")
    assert project.backoffs == Backoffs(0, 1, 0, ())  # the contact that is overdue is made at once


def test_after_failures_the_wait_is_no_rule_of_the_server() -> None:
    project = project_of(
        f"<nrpc_failures>3</nrpc_failures><min_rpc_time>{NOW + 60}</min_rpc_time><last_rpc_time>{NOW}</last_rpc_time>"
    )
    assert (project.backoffs.failures, project.backoffs.allowed_secs, project.request_delay_secs) == (3, 60, 0)


def test_kinds_that_the_volunteer_forbids_are_not_asked_for() -> None:
    assert project_of("<no_rsc_pref>CPU</no_rsc_pref><no_rsc_ams>CUDA</no_rsc_ams>").not_asked == ("CPU", "NVIDIA")
    assert project_of("<no_rsc_pref>CPU</no_rsc_pref><no_rsc_pref>ATI</no_rsc_pref>").not_asked == ("CPU", "ATI")


def test_estimates_are_corrected_where_the_project_does_that() -> None:
    factor = "<duration_correction_factor>2.5</duration_correction_factor>"
    corrected = scenario(result(), project=factor)
    assert only(corrected).estimate_flop == only(corrected).size_flop == 2.5e12
    assert only(scenario(result(), project=factor + "<dont_use_dcf/>")).estimate_flop == 1e12


def test_what_is_not_used_is_listed_with_the_reason() -> None:
    found = read_folder(AT_WORK)
    rows = {(row.file, row.element): (row.count, row.why) for row in found.unused}
    assert rows["client_state.xml", "project/user_name"] == (2, "unused_person")
    assert rows["client_state.xml", "workunit/rsc_disk_bound"] == (10, "unused_space")
    assert rows["client_state.xml", "client_state/file"][0] == 22
    assert ("cc_config.xml", "cc_config/log_flags") in rows
    used = {"project/resource_share", "result/report_deadline", "active_task_set/active_task/result_name", "app/name"}
    assert not used & {element for _, element in rows}
    # The client writes nothing that nobody could name.
    assert [element for (_, element), (_, why) in rows.items() if why == "unused_unknown"] == []


def test_a_preference_of_another_place_is_listed_as_such() -> None:
    tag = "max_ncpus_pct"
    preferences = (
        f"<global_preferences><{tag}>50</{tag}><venue name='home'><{tag}>25</{tag}></venue></global_preferences>"
    )
    files = {path.name: path.read_bytes() for path in AT_WORK.glob("*.xml")} | {
        "global_prefs.xml": preferences.encode()
    }
    found = [(row.element, row.why) for row in read_upload(files).unused if row.file == "global_prefs.xml"]
    assert found == [("venue/max_ncpus_pct", "unused_other_venue")]


def test_an_element_that_nobody_knows_is_listed_by_name() -> None:
    unknown = scenario(project="<frobnicate>1</frobnicate><box><deep>1</deep></box>").unused
    assert [(row.element, row.why) for row in unknown] == [
        ("project/frobnicate", "unused_unknown"),
        ("project/box", "unused_unknown"),
    ]


def test_the_list_of_what_is_not_used_is_limited() -> None:
    many = "".join(f"<x{number}>1</x{number}>" for number in range(1000)) + f"<{'y' * 500}>1</{'y' * 500}>"
    assert len(scenario(project=many).unused) == 400
