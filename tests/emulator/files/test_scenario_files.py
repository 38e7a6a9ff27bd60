"""A client's files make a scenario; what cannot be used is refused with the file, the line and the tag."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from emulator.engine.scenario import (
    GPU_EFFICIENCY,
    Availability,
    DayHours,
    ExcludedGpu,
    Hours,
    Normal,
    Processor,
    Scenario,
    ScenarioError,
    StartJob,
    Use,
    Version,
)
from emulator.files.presets import FOLDER
from emulator.files.scenario import read_folder, read_upload, url_folder
from emulator.files.sections import STATE_BYTES_MAX, ScenarioFileError

REAL_CLIENT = Path(__file__).parents[2] / "data" / "emulator" / "real_client"

HOST = b"<host_info><p_ncpus>4</p_ncpus><p_fpops>1e9</p_fpops></host_info>\n"
PROJECT = b"<project><master_url>http://a.example/</master_url><project_name>A</project_name></project>\n"
APP = b"<app><name>a</name></app>\n"
VERSION = b"<app_version><app_name>a</app_name><version_num>1</version_num><flops>2e9</flops></app_version>\n"
NVIDIA = b"<coprocs><coproc_cuda><count>2</count><peak_flops>1e13</peak_flops></coproc_cuda></coprocs>"
GPU_HOST = HOST.replace(b"</host_info>", NVIDIA + b"</host_info>")
GPU_VERSION = VERSION.replace(b"</app_version>", b"<coproc><type>CUDA</type><count>0.5</count></coproc></app_version>")
NOISE = (b"<app>", b"</project>", b"-", b"&#0;", b"1e400")


def state(*parts: bytes) -> dict[str, bytes]:
    """The files of a state file made of those parts."""
    return {"client_state.xml": b"<client_state>\n" + b"".join(parts) + b"</client_state>\n"}


def apps(number: int) -> list[bytes]:
    return [APP.replace(b">a<", f">a{each}<".encode()) for each in range(number)]


def error_of(files: dict[str, bytes]) -> ScenarioFileError:
    """The error that those files are refused with."""
    with pytest.raises(ScenarioFileError) as caught:
        read_upload(files)
    return caught.value


def test_the_state_of_a_real_client_is_read_with_its_jobs_and_settings() -> None:
    scenario = read_folder(REAL_CLIENT)
    # A coprocessor that the client was told of in cc_config.xml; it counts with a fifth of its peak.
    assert scenario.host.processors == (
        Processor("CPU", 1, 1e9),
        Processor("miner_asic", 1, 5e12, GPU_EFFICIENCY),
    )
    assert scenario.host.connected == Availability(1.0)  # the client wrote -1, "unknown"
    prime, fish = scenario.projects
    assert (prime.name, fish.name) == ("Prime count", "Fish & chips@home")  # not escaped in the file
    assert prime.standing.rec == 0.008819
    assert (prime.no_new_tasks, fish.no_new_tasks) == (False, True)
    assert not prime.uses_dcf
    assert [job.project for job in scenario.jobs] == ["Prime count"] * 3 + ["Fish & chips@home"]
    # The first runs, and has no checkpoint yet.
    first = scenario.jobs[0]
    assert (first.size_flop, first.estimate_flop, first.state, first.done_fraction) == (3e11, 3e11, "running", 0)
    assert [job.state for job in scenario.jobs[1:]] == ["new"] * 3
    # The client wrote the file when it had been up for 80.387402 s since 1795267121.035618.
    now = 1795267121.035618 + 80.387402
    assert first.deadline_secs == pytest.approx(4000000000 - now)
    assert first.received_secs == pytest.approx(1795267142.447394 - now)
    (app,) = prime.apps
    latency_secs = 4000000000 - 1795267142.447394
    assert (app.size, app.latency_bound_secs) == (Normal(3e11), latency_secs)  # as of its first job
    # It asked for the coprocessor in vain, and will again at 1795267632.774966; 2 s between RPCs.
    cpu, (kind, until_secs, interval_secs) = prime.backoffs.kinds
    assert (cpu, kind, interval_secs) == (("CPU", 0, 0), "miner_asic", 600)
    assert until_secs == pytest.approx(1795267632.774966 - now)
    assert prime.request_delay_secs == pytest.approx(2)
    assert scenario.preferences.work_buf_min_days == 0.001
    assert scenario.preferences.report_at_once
    assert tuple(map(str, scenario.notes)) == (
        "The emulation begins at 2026-11-21 13:20 UTC, when the client wrote client_state.xml",
    )


def test_tags_that_only_an_emulator_knows_are_read() -> None:
    scenario = read_folder(FOLDER / "s5_sporadic_project")
    a, b = scenario.projects
    assert b.available == Availability(0.3, 43200)
    assert a.apps[0].size == Normal(7.2e12, 7.2e11)
    assert a.apps[0].estimate == Normal(7.2e12)  # what a server estimates does not vary
    assert a.apps[0].latency_bound_secs == 604800


def test_a_folder_or_its_state_file_are_the_same() -> None:
    assert read_folder(FOLDER / "s2_gpu_example1") == read_folder(FOLDER / "s2_gpu_example1" / "client_state.xml")


def test_a_version_without_a_speed_has_that_of_what_it_occupies() -> None:
    version = GPU_VERSION.replace(b"<flops>2e9</flops>", b"<avg_ncpus>0.5</avg_ncpus>")
    (project,) = read_upload(state(GPU_HOST, PROJECT, APP, version)).projects
    # 0.5 CPU of 1e9 and 0.5 GPU of 1e13 * 0.2; "CUDA" is an early client's word for NVIDIA.
    assert project.apps[0].versions == (Version(0.5e9 + 1e12, 0.5, "NVIDIA", 0.5),)


def test_what_this_computer_cannot_run_is_left_out_and_said() -> None:
    other = PROJECT.replace(b">A<", b">B<") + APP + VERSION
    scenario = read_upload(state(HOST, PROJECT, APP, GPU_VERSION, other))
    assert [project.name for project in scenario.projects] == ["B"]
    assert tuple(map(str, scenario.notes)) == (
        "A: a is left out because it has no version for this computer",
        "A is left out: it has no app that this computer can run",
    )


def test_projects_of_one_name_are_told_apart_by_their_address() -> None:
    second = PROJECT.replace(b"a.example", b"b.example")
    scenario = read_upload(state(HOST, PROJECT, APP, VERSION, second, APP, VERSION))
    assert [project.name for project in scenario.projects] == ["A (http://a.example/)", "A (http://b.example/)"]


def test_jobs_of_a_file_without_a_time_have_their_whole_time_limit() -> None:
    workunit = b"<workunit><name>w</name><app_name>a</app_name><rsc_fpops_est>1e12</rsc_fpops_est></workunit>\n"
    result = b"<result><wu_name>w</wu_name><version_num>1</version_num><state>%d</state>"
    result += b"<received_time>0</received_time><report_deadline>300</report_deadline></result>\n"
    scenario = read_upload(state(HOST, PROJECT, APP, VERSION, workunit, result % 2))
    assert scenario.jobs == (StartJob("A", "a", 1e12, 1e12, 300.0),)
    assert scenario.notes == ()


def test_the_override_wins_over_the_preferences_tag_by_tag() -> None:
    files = state(HOST, PROJECT, APP, VERSION) | {
        "global_prefs.xml": b"<global_preferences><work_buf_min_days>1</work_buf_min_days>"
        b"<cpu_scheduling_period_minutes>30</cpu_scheduling_period_minutes></global_preferences>",
        "global_prefs_override.xml": b"<global_preferences><work_buf_min_days>2</work_buf_min_days>"
        b"</global_preferences>",
    }
    preferences = read_upload(files).preferences
    assert (preferences.work_buf_min_days, preferences.period_secs) == (2, 1800)


def test_the_preferences_of_the_computers_venue_are_taken() -> None:
    files = state(HOST, PROJECT, APP, VERSION, b"<host_venue>work</host_venue>\n") | {
        "global_prefs.xml": b"<global_preferences><work_buf_min_days>1</work_buf_min_days>"
        b'<venue name="work"><work_buf_min_days>3</work_buf_min_days></venue></global_preferences>'
    }
    assert read_upload(files).preferences.work_buf_min_days == 3


def test_cc_config_limits_cpus_and_excludes_gpus() -> None:
    config = b"<cc_config><options><ncpus>2</ncpus><exclude_gpu><url>http://a.example</url></exclude_gpu></options></cc_config>"
    files = state(GPU_HOST, PROJECT, APP, VERSION, GPU_VERSION) | {"cc_config.xml": config}
    scenario = read_upload(files)
    assert scenario.host.processors[0].instances == 2
    assert [version.kind for version in scenario.projects[0].apps[0].versions] == ["CPU"]


@pytest.mark.parametrize(
    ("inside", "expected"),
    [
        ("<device_num>1</device_num>", (ExcludedGpu("NVIDIA", 1),)),
        ("<device_num>1</device_num><app>b</app><type>NVIDIA</type>", (ExcludedGpu("NVIDIA", 1, "b"),)),
        ("<device_num>1</device_num><type>ATI</type>", ()),  # the computer has none
    ],
)
def test_cc_config_excludes_one_gpu(inside: str, expected: tuple[ExcludedGpu, ...]) -> None:
    excluded = f"<exclude_gpu><url>http://a.example/</url>{inside}</exclude_gpu>"
    files = state(GPU_HOST, PROJECT, APP, VERSION, GPU_VERSION)
    config = f"<cc_config><options>{excluded}</options></cc_config>".encode()
    (project,) = read_upload(files | {"cc_config.xml": config}).projects
    assert project.excluded_gpus == expected
    assert [version.kind for version in project.apps[0].versions] == ["CPU", "NVIDIA"]


def test_an_app_config_changes_usage_and_limits_of_the_project_in_whose_folder_it_is() -> None:
    config = (
        b"<app_config><app><name>a</name><max_concurrent>3</max_concurrent><gpu_versions><gpu_usage>0.25</gpu_usage>"
        b"<cpu_usage>0.1</cpu_usage></gpu_versions></app><project_max_concurrent>5</project_max_concurrent></app_config>"
    )
    second = PROJECT.replace(b"a.example", b"b.example/c").replace(b">A<", b">B<")
    files = state(GPU_HOST, PROJECT, APP, GPU_VERSION, second, APP, GPU_VERSION)
    a, b = read_upload({**files, "projects/b.example_c/app_config.xml": config}).projects
    assert (a.max_concurrent, a.apps[0].max_concurrent) == (0, 0)
    assert (b.max_concurrent, b.apps[0].max_concurrent) == (5, 3)
    assert (b.apps[0].versions[0].gpus, b.apps[0].versions[0].cpus) == (0.25, 0.1)
    # Without a folder it is for all that have its applications.
    a, b = read_upload({**files, "app_config.xml": config}).projects
    assert a.max_concurrent == b.max_concurrent == 5


def test_an_app_config_for_nobody_is_said() -> None:
    config = b"<app_config><app><name>other</name><max_concurrent>3</max_concurrent></app></app_config>"
    files = state(HOST, PROJECT, APP, VERSION) | {"app_config.xml": config}
    assert tuple(map(str, read_upload(files).notes)) == ("app_config.xml has no effect: no project has all its apps",)


def test_a_projects_folder_is_named_as_the_client_names_it() -> None:
    assert url_folder("https://example.org/some project/") == "example.org_some_project"


def test_an_error_names_the_file_the_line_and_the_tag() -> None:
    error = error_of(
        state(HOST, b"<project>\n<master_url>u</master_url>\n<resource_share>much</resource_share>\n</project>\n")
    )
    assert (error.file, error.line, error.tag) == ("client_state.xml", 5, "resource_share")
    assert str(error) == "client_state.xml, line 5, <resource_share>: not a decimal number from 0 to 1e+09"


@pytest.mark.parametrize("number", [b"nan", b"inf", b"-1", b"1e304", b"1_000", b"0x10", b"", b"1 2"])
@pytest.mark.parametrize(
    ("before", "after", "tag"),
    [
        (b"<host_info><p_ncpus>4</p_ncpus><p_fpops>", b"</p_fpops></host_info>", "p_fpops"),
        (HOST + b"<time_stats><on_frac>", b"</on_frac></time_stats>", "on_frac"),
        (HOST + PROJECT + b"<app><name>a</name><latency_bound>", b"</latency_bound></app>", "latency_bound"),
        (HOST + PROJECT + b"<app><name>a</name><fpops><mean>", b"</mean></fpops></app>", "mean"),
        (HOST + PROJECT + APP + b"<app_version><app_name>a</app_name><flops>", b"</flops></app_version>", "flops"),
        (HOST + PROJECT + b"<workunit><name>w</name><rsc_fpops_est>", b"</rsc_fpops_est></workunit>", "rsc_fpops_est"),
    ],
)
def test_what_is_no_number_in_range_is_refused(before: bytes, after: bytes, tag: str, number: bytes) -> None:
    assert error_of(state(before, number, after)).tag == tag


@pytest.mark.parametrize(
    ("files", "tag", "line", "words"),
    [
        ({}, "", 0, "missing"),
        ({"client_state.xml": b""}, "client_state", 1, "does not begin"),
        ({"client_state.xml": b"<global_preferences/>"}, "client_state", 1, "does not begin"),
        ({"client_state.xml": b"<client_state>\n" + HOST + PROJECT}, "client_state", 1, "incomplete"),
        (state(HOST), "project", 0, "no project"),
        (state(PROJECT), "host_info", 0, "missing"),
        (state(HOST, APP), "app", 3, "before the first <project>"),
        (state(HOST, PROJECT), "project", 3, "no project has an app"),
        (state(HOST, PROJECT, VERSION), "app_name", 4, "no app of this name"),
        (state(HOST, PROJECT, *apps(201)), "name", 204, "has more than 200"),
        (state(HOST, PROJECT, b"<result><wu_name>w</wu_name></result>"), "wu_name", 4, "no workunit"),
        (state(HOST, b"<project>\n", PROJECT), "project", 4, "begins before the first is closed"),
        (state(HOST, PROJECT) | {"notes.txt": b""}, "", 0, "unknown file"),
        (state(HOST, PROJECT, APP, VERSION) | {"cc_config.xml": b"no"}, "cc_config", 1, "does not begin"),
        (state(HOST, PROJECT, APP, VERSION.replace(b"2e9", b"1e18")), "flops", 5, "less than a millisecond"),
    ],
)
def test_files_that_make_no_scenario_are_refused(files: dict[str, bytes], tag: str, line: int, words: str) -> None:
    error = error_of(files)
    assert (error.tag, error.line) == (tag, line)
    assert words in str(error.why)


def test_entities_are_refused_and_never_expanded() -> None:
    bomb = b'<!DOCTYPE x [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;&a;">]>\n<client_state></client_state>'
    error = error_of({"client_state.xml": bomb})
    assert (error.tag, error.line) == ("!DOCTYPE", 1)


def test_deep_nesting_is_refused() -> None:
    deep = b"<x>" * 5000 + b"</x>" * 5000
    assert "deeper than 32 levels" in str(error_of(state(HOST, deep)).why)


def test_too_large_a_file_is_refused_without_being_read() -> None:
    error = error_of({"client_state.xml": b"<client_state>" + b" " * STATE_BYTES_MAX})
    assert str(error.why) == "the file is larger than 16 MiB"


@pytest.mark.parametrize("part", [PROJECT, APP, b"<result><wu_name>w</wu_name></result>\n"])
def test_huge_lists_are_refused(part: bytes) -> None:
    workunit = b"<workunit><name>w</name><app_name>a</app_name></workunit>\n"
    different = b"".join(part.replace(b">a<", b">a%d<" % number) for number in range(20_100))
    assert "more than" in str(error_of(state(HOST, PROJECT, workunit, different)).why)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_no_damage_to_a_file_crashes_the_reader(data: st.DataObject) -> None:
    whole = (FOLDER / "s2_gpu_example1" / "client_state.xml").read_bytes()
    start = data.draw(st.integers(0, len(whole)))
    length = data.draw(st.integers(0, 200))
    noise = data.draw(
        st.one_of(st.binary(max_size=40), st.sampled_from([b"<app>", b"</project>", b"-", b"&#0;", b"1e400"]))
    )
    damaged = whole[:start] + noise + whole[start + length :]
    try:
        scenario = read_upload({"client_state.xml": damaged})
    except ScenarioError as error:
        assert isinstance(error, ScenarioFileError)
        assert error.file == "client_state.xml"
    else:
        assert scenario.projects


PREFS = b"<global_preferences>%b</global_preferences>"
STATS = b"<time_stats><active_frac>0.25</active_frac><last_update>1795267142</last_update></time_stats>\n"


def preferences_of(prefs: bytes, *parts: bytes, override: bytes = b"", cc: bytes = b"") -> Scenario:
    """The scenario of a computer with these preferences."""
    files = state(*(parts or (HOST,)), PROJECT, APP, VERSION) | {"global_prefs.xml": PREFS % prefs}
    if override:
        files["global_prefs_override.xml"] = PREFS % override
    if cc:
        files["cc_config.xml"] = b"<cc_config><options>%b</options></cc_config>" % cc
    return read_upload(files)


DAYS = (
    b"<day_prefs><day_of_week>0</day_of_week><start_hour>0</start_hour><end_hour>24</end_hour></day_prefs>"
    b"<day_prefs><day_of_week>6</day_of_week><net_start_hour>9</net_start_hour><net_end_hour>10</net_end_hour></day_prefs>"
)


def test_the_limits_in_preferences_are_read() -> None:
    found = preferences_of(
        b"<start_hour>22</start_hour><end_hour>6.5</end_hour><net_start_hour>1</net_start_hour>"
        b"<net_end_hour>2</net_end_hour>" + DAYS + b"<cpu_usage_limit>60</cpu_usage_limit><max_cpus>2</max_cpus>"
        b"<run_if_user_active>0</run_if_user_active><run_gpu_if_user_active/><run_on_batteries>1</run_on_batteries>"
        b"<ram_max_used_busy_pct>40</ram_max_used_busy_pct><ram_max_used_idle_pct>80</ram_max_used_idle_pct>"
    ).preferences
    assert found.compute_hours == Hours(22, 6.5, (DayHours(0, 0, 24),))
    assert found.network_hours == Hours(1, 2, (DayHours(6, 9, 10),))
    assert (found.cpu_usage_percent, found.max_ncpus) == (60, 2)
    assert (found.run_if_user_active, found.run_gpu_if_user_active, found.run_on_batteries) == (False, True, True)
    assert (found.ram_busy_fraction, found.ram_idle_fraction) == (0.4, 0.8)


def test_the_owners_override_replaces_only_what_it_names() -> None:
    prefs = b"<start_hour>22</start_hour><end_hour>6</end_hour>" + DAYS + b"<cpu_usage_limit>60</cpu_usage_limit>"
    found = preferences_of(prefs, override=b"<end_hour>7</end_hour><cpu_usage_limit>0</cpu_usage_limit>").preferences
    assert found.compute_hours == Hours(22, 7, (DayHours(0, 0, 24),))
    assert found.cpu_usage_percent == 100  # 0 means no limit


def test_a_places_own_preferences_have_their_own_days() -> None:
    place = b'<venue name="home"><start_hour>1</start_hour><end_hour>2</end_hour></venue>' + DAYS
    venue = b"<host_venue>home</host_venue>\n"
    assert preferences_of(place, HOST, venue).preferences.compute_hours == Hours(1, 2)


@pytest.mark.parametrize(
    ("prefs", "line_and_tag"),
    [
        (b"<start_hour>25</start_hour>", "<start_hour>"),
        (b"<day_prefs><start_hour>1</start_hour></day_prefs>", "<day_of_week>"),
        (b"<day_prefs><day_of_week>7</day_of_week></day_prefs>", "<day_of_week>"),
        (b"<cpu_usage_limit>nan</cpu_usage_limit>", "<cpu_usage_limit>"),
        (b"<ram_max_used_busy_pct>1e304</ram_max_used_busy_pct>", "<ram_max_used_busy_pct>"),
    ],
)
def test_an_impossible_limit_is_named(prefs: bytes, line_and_tag: str) -> None:
    with pytest.raises(ScenarioFileError) as caught:
        preferences_of(prefs)
    assert f"line 1, {line_and_tag}" in str(caught.value)


def test_hours_are_taken_out_of_what_the_client_measured() -> None:
    """It could compute in a quarter of the time, and preferences allow 8 of 24 hours: 0.25 / (8/24) of these."""
    night = b"<start_hour>22</start_hour><end_hour>6</end_hour><run_if_user_active>0</run_if_user_active>"
    host = HOST.replace(b"<p_ncpus>", b"<timezone>3600</timezone><p_ncpus>")
    found = preferences_of(night, host, STATS)
    assert found.host.active.fraction == pytest.approx(0.75)
    assert found.host.in_use == Use()  # what was measured holds the use of the computer
    assert any("6 h a day" in str(note) for note in found.notes)
    # 1795267142 is Saturday, 21 November 2026, 13:19:02 UTC, and an hour later in its time zone
    assert found.week_secs == ((6 * 24 + 14) * 60 + 19) * 60 + 2


def test_where_nothing_was_measured_use_is_assumed_and_said() -> None:
    prefs = b"<run_if_user_active>0</run_if_user_active><run_on_batteries>0</run_on_batteries>"
    found = preferences_of(prefs, cc=b"<exclusive_app>game.exe</exclusive_app><exclusive_app>b</exclusive_app>")
    assert (found.host.in_use.fraction, found.host.on_batteries.fraction) == (0.25, 0.2)
    assert (found.host.exclusive_app.fraction, found.host.exclusive_gpu_app.fraction) == (0.1, 0)
    assert len(found.notes) == 3
    assert str(found.notes[0]).endswith("The scenario assumes 6 h a day, 1 h at a time on average.")


def test_memory_is_that_of_the_computer_and_of_the_projects_bounds() -> None:
    host = HOST.replace(b"<p_ncpus>", b"<m_nbytes>8e9</m_nbytes><p_ncpus>")
    work = b"<workunit><name>w%d</name><app_name>a</app_name><rsc_memory_bound>%de9</rsc_memory_bound></workunit>\n"
    found = read_upload(state(host, PROJECT, APP, VERSION, work % (1, 2), work % (2, 1)))
    assert (found.host.ram_bytes, found.projects[0].apps[0].working_set_bytes) == (8e9, 2e9)
    measured = APP.replace(b"</app>", b"<working_set>5e8</working_set></app>")
    found = read_upload(state(host, PROJECT, measured, VERSION, work % (1, 2)))
    assert found.projects[0].apps[0].working_set_bytes == 5e8


def test_what_tasks_were_seen_to_need_counts_more_than_the_projects_bound() -> None:
    work = b"<workunit><name>w</name><app_name>a</app_name><rsc_memory_bound>4e9</rsc_memory_bound></workunit>\n"
    result = b"<result><name>w_0</name><wu_name>w</wu_name><version_num>1</version_num><state>2</state></result>\n"
    task = (
        b"<active_task_set><active_task><project_master_url>http://a.example/</project_master_url>"
        b"<result_name>w_0</result_name><working_set_size_smoothed>3e8</working_set_size_smoothed></active_task>"
        b"</active_task_set>\n"
    )
    found = read_upload(state(HOST, PROJECT, APP, VERSION, work, result, task))
    assert found.projects[0].apps[0].working_set_bytes == 3e8
    assert [job.name for job in found.jobs] == ["w_0"]
