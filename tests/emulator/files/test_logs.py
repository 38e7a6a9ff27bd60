"""A client's logs: when it was on, and how long its tasks ran."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from emulator.engine.scenario import Normal
from emulator.files.job_log import LoggedJob, by_app, read_job_log, run_times
from emulator.files.scenario import read_upload
from emulator.files.sections import ScenarioFileError
from emulator.files.time_log import LOG_BYTES_MAX, TimeLog, read_time_log

AT_WORK = Path(__file__).parents[2] / "data" / "emulator" / "client_at_work"
DAY = 86400
T = 1_700_000_000


def time_log(*events: tuple[float, str], now: float = 0) -> TimeLog:
    """The log of events at days."""
    return read_time_log("".join(f"{T + days * DAY:f} {event}\n" for days, event in events).encode(), now)


def days(intervals: tuple[tuple[float, float], ...]) -> list[tuple[float, float]]:
    return [(round(since / DAY, 6), round(until / DAY, 6)) for since, until in intervals]


def test_the_log_of_a_real_client_is_read() -> None:
    data = (AT_WORK / "time_stats_log").read_bytes()
    assert read_time_log(data, 0) == TimeLog()  # it covers less than a day
    # As if it had gone on for a day. It began at …654.12: on until …724, again from …746, stopped from …806 to …836.
    log = read_time_log(data, 1795461654.121149 + DAY)
    assert log.days == 1
    assert [(round(since), round(until)) for since, until in log.on] == [(0, 70), (92, DAY)]
    assert [(round(since), round(until)) for since, until in log.active] == [(0, 152), (182, DAY)]
    assert [(round(since), round(until)) for since, until in log.connected] == [(0, DAY)]


def test_the_last_whole_days_are_taken() -> None:
    # From 0.5 to 3.25: the last two days are from 1.25 on.
    log = time_log((0.5, "power_on"), (1.5, "power_off"), (2, "power_on"), (3.25, "power_off"))
    assert log.days == 2
    assert days(log.on) == [(0, 0.25), (0.75, 2)]


def test_two_weeks_and_more_are_whole_weeks() -> None:
    assert time_log((0, "power_on"), now=T + 13.5 * DAY).days == 13
    assert time_log((0, "power_on"), now=T + 20.9 * DAY).days == 14
    assert time_log((0, "power_on"), now=T + 800 * DAY).days == 364


def test_the_network_and_pauses_are_read() -> None:
    log = time_log(
        (0, "power_on"),
        (0.1, "net_connected"),
        (0.2, "net_not_connected"),
        (0.3, "proc_stop"),
        (0.4, "net_unknown"),
        (0.5, "proc_start"),
        (0.6, "platform x86_64-pc-linux-gnu"),
        (0.7, "version 8.0.2"),
        (0.8, "mode of a later client"),
        now=T + DAY,
    )
    assert days(log.connected) == [(0, 0.2), (0.4, 1)]
    assert days(log.active) == [(0, 0.3), (0.5, 1)]
    assert days(log.on) == [(0, 1)]


def test_a_client_that_starts_again_computes() -> None:
    log = time_log((0, "power_on"), (0.2, "proc_stop"), (0.3, "power_off"), (0.5, "power_on"), now=T + DAY)
    assert days(log.on) == [(0, 0.3), (0.5, 1)]
    assert days(log.active) == [(0, 0.2), (0.5, 1)]


def test_a_second_power_off_that_is_older_changes_nothing() -> None:
    log = time_log((0, "power_on"), (0.5, "power_off"), (0.4, "power_off"), (0.6, "power_on"), now=T + DAY)
    assert days(log.on) == [(0, 0.5), (0.6, 1)]


def test_lines_that_cannot_be_read_are_left_out_and_counted() -> None:
    log = read_time_log(b"\0\0\0\0\n%d power_on\n12 power_off\nnan power_off\n\n" % T, T + DAY)
    assert log.bad_lines == (1, 3, 4)
    assert log.on == ((0, DAY),)


@pytest.mark.parametrize("data", [b"hello", b"<client_state>\n</client_state>", b"1e300 power_on", b"-5 power_on"])
def test_another_file_is_refused_with_its_line(data: bytes) -> None:
    with pytest.raises(ScenarioFileError) as refused:
        read_time_log(data, 0)
    assert (refused.value.file, refused.value.line) == ("time_stats_log", 1)


def test_too_large_a_log_is_refused() -> None:
    for read in (lambda data: read_time_log(data, 0), lambda data: read_job_log(data, "x")):
        with pytest.raises(ScenarioFileError, match="larger than 16 MiB"):
            read(b" " * (LOG_BYTES_MAX + 1))


EVENTS = st.sampled_from(["power_on", "power_off", "proc_stop", "proc_start", "net_connected", "net_not_connected"])


@given(st.lists(st.tuples(st.floats(0, 40), EVENTS), max_size=60), st.floats(0, 50))
def test_any_log_gives_traces_that_a_scenario_accepts(events: list[tuple[float, str]], now_days: float) -> None:
    log = "".join(f"{T + at * DAY:f} {event}\n" for at, event in events).encode()
    files = scenario_files() | {"time_stats_log": log}
    host = read_upload(files).host
    for process in (host.on, host.active, host.connected):
        assert process.trace_secs % DAY == 0
        assert all(0 <= since < until <= process.trace_secs for since, until in process.trace)


def scenario_files(apps: str = "", results: str = "") -> dict[str, bytes]:
    text = f"""<client_state>
<host_info><p_ncpus>1</p_ncpus><p_fpops>1e9</p_fpops></host_info>
<time_stats><on_frac>0.75</on_frac><now>{T + DAY}</now></time_stats>
<project><master_url>https://a.example/b/</master_url><project_name>A</project_name></project>
<app><name>a</name></app>
<app_version><app_name>a</app_name><version_num>1</version_num><flops>2e9</flops></app_version>
{apps}
<workunit><name>sky_17</name><app_name>a</app_name><rsc_fpops_est>1e12</rsc_fpops_est></workunit>
{results}
</client_state>"""
    return {"client_state.xml": text.encode()}


OTHER_APP = (
    "<app><name>b</name></app>\n"
    "<app_version><app_name>b</app_name><version_num>1</version_num><flops>1e9</flops></app_version>\n"
    "<workunit><name>sea_3</name><app_name>b</app_name><rsc_fpops_est>1e12</rsc_fpops_est></workunit>\n"
)


def test_a_scenario_repeats_the_log_and_the_client_believes_its_own_figure() -> None:
    log = f"{T} power_on\n{T + DAY / 4} power_off\n".encode()
    scenario = read_upload(scenario_files() | {"time_stats_log": log})
    assert days(scenario.host.on.trace) == [(0, 0.25)]
    assert (scenario.host.on.trace_secs, scenario.host.on.fraction) == (DAY, 0.75)
    assert (
        "The computer is on, active and connected as time_stats_log says. Its last whole days are repeated: 1"
        in map(str, scenario.notes)
    )


def line(name: str, et: float, ue: float = 500, fe: float = 1e12, es: str = " es 0") -> str:
    return f"{T} ue {ue:f} ct {et:f} fe {fe:.0f} nm {name} et {et:f}{es}\n"


def test_the_job_log_of_a_real_client_is_read() -> None:
    log = read_job_log((AT_WORK / "job_log_127.0.0.1_36765.txt").read_bytes(), "x")
    assert log.jobs == [LoggedJob("primes_0", 19.092957, 6e9, 1e9), LoggedJob("primes_1", 21.110043, 6e9, 1e9)]
    assert log.bad_lines == ()


def test_only_tasks_that_succeeded_count() -> None:
    text = (
        line("a", 10) + line("b", 20, es=" es 1") + line("c", 30, es="") + line("d", 0) + line("e", 40, es=" es -185")
    )
    assert [job.name for job in read_job_log(text.encode(), "x").jobs] == ["a", "c"]


def test_lines_of_a_job_log_that_cannot_be_read_are_left_out_and_counted() -> None:
    text = "\0\0\n" + line("a", 10) + "17 ue x\n" + line("b", 1e300) + line("c", 5).replace("et 5", "et 5e5e5")
    log = read_job_log(text.encode(), "x")
    assert ([job.name for job in log.jobs], log.bad_lines) == (["a"], (1, 3, 4, 5))
    with pytest.raises(ScenarioFileError, match="x, line 1: this is the wrong kind of file"):
        read_job_log(b"hello\n", "x")


def test_run_times_are_kept_whatever_the_speed_was() -> None:
    # Estimated when the client took the version for 1 GFLOPS; it now takes it for 2: sizes of 200, 400 and 600 s × 2e9.
    jobs = [LoggedJob(name, secs, 1e12, 1e9) for name, secs in (("x", 200), ("y", 400), ("z", 600))]
    times = run_times(jobs, [2e9])
    assert times is not None
    assert (times.njobs, times.mean_flop) == (3, 8e11)
    assert times.std_dev_flop == pytest.approx(4e11)  # sqrt((4e11² + 0 + 4e11²) / 2)
    assert times.per_estimate == pytest.approx(0.8)


def test_a_task_is_of_the_version_whose_speed_is_nearest() -> None:
    jobs = [LoggedJob("x", 100, 1e12, 9e10)] * 2 + [LoggedJob("y", 1000, 1e12, 1.2e9)] * 2
    times = run_times(jobs, [1e9, 1e11])
    assert times is not None
    assert times.mean_flop == pytest.approx((2 * 100 * 1e11 + 2 * 1000 * 1e9) / 4)


def test_too_few_tasks_say_nothing() -> None:
    assert run_times([LoggedJob("x", 100, 1e12, 1e9)] * 2, [1e9]) is None


def test_only_the_newest_thousand_count() -> None:
    jobs = [LoggedJob("x", 1, 1e12, 1e9)] * 500 + [LoggedJob("x", 7, 1e12, 1e9)] * 1000
    times = run_times(jobs, [1e9])
    assert times is not None
    assert (times.njobs, times.mean_flop, times.std_dev_flop) == (1000, 7e9, 0)


def test_tasks_are_told_apart_by_how_their_names_begin() -> None:
    jobs = [LoggedJob(name, 1, 1, 1) for name in ("sky_1", "sky_2", "sea_3", "moon_4", "known")]
    found = by_app(jobs, {"sky_9": "a", "sea_9": "b", "known": "b"}, ["a", "b"])
    assert {app: [job.name for job in jobs] for app, jobs in found.items()} == {
        "a": ["sky_1", "sky_2"],
        "b": ["sea_3", "known"],
        "": ["moon_4"],
    }
    # A beginning that two applications share says nothing; of a single application all are.
    assert set(by_app(jobs[:1], {"sky_8": "a", "sky_9": "b"}, ["a", "b"])) == {""}
    assert set(by_app(jobs, {}, ["a"])) == {"a"}


def test_sizes_are_as_the_job_log_says_and_the_notes_count_the_tasks() -> None:
    log = "".join(line(f"sky_{n}", 600 + 100 * n) for n in range(3)) + "".join(line(f"sea_{n}", 50) for n in range(4))
    result = "<result><name>r</name><wu_name>sky_17</wu_name><version_num>1</version_num><state>2</state></result>"
    scenario = read_upload(scenario_files(OTHER_APP, result) | {"job_log_a.example_b.txt": log.encode()})
    a, b = scenario.projects[0].apps
    assert [a.size.mean, a.size.std_dev] == pytest.approx([700 * 2e9, 100 * 2e9])
    assert a.estimate == Normal(1e12)  # what the server believes stays
    assert b.size == Normal(50e9)  # its speed is 1e9
    # The task of a that is there has the log's mean size too: 700 s.
    assert scenario.jobs[0].size_flop == pytest.approx(700 * 2e9)
    assert scenario.jobs[0].estimate_flop == 1e12
    assert "A: sizes of a are those of 3 tasks in its job log" in map(str, scenario.notes)
    assert "A: sizes of b are those of 4 tasks in its job log" in map(str, scenario.notes)


def test_tasks_of_an_unknown_application_count_for_those_without_any() -> None:
    log = "".join(line(f"moon_{n}", 800) for n in range(3))
    scenario = read_upload(scenario_files(OTHER_APP) | {"job_log_a.example_b.txt": log.encode()})
    assert [app.size.mean for app in scenario.projects[0].apps] == [pytest.approx(800 * 2e9), pytest.approx(800 * 1e9)]
    assert any(
        str(note).startswith("A: sizes of a are those of 3 tasks in the project's job log")
        for note in map(str, scenario.notes)
    )


def test_a_job_log_of_no_project_is_said() -> None:
    scenario = read_upload(scenario_files() | {"job_log_other.txt": line("x", 1).encode()})
    assert "job_log_other.txt has no effect: no project has the folder other" in map(str, scenario.notes)
