"""The rules of sending, as tables: requested amounts, plan classes, choice of version, limits, weights of apps."""

from __future__ import annotations

import datetime as dt
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import msgspec
import pytest

from credit.engine.averages import Average, AverageWithVariance
from credit.engine.facts import HostVersionFacts
from credit.engine.flops import Ceilings
from credit.engine.rules import Rules
from scheduler.engine.choice.needs import Needs
from scheduler.engine.choice.selection import Limits, Selection, jobs_by_app_weight, jobs_wanted
from scheduler.engine.choice.versions import Requester, choose, choose_own, newest, usage_of
from scheduler.engine.facts import AppFacts, Choice, Computer, Job, PlanClassRules, RecordKey, Usage, Version
from scheduler.engine.reasons import Reason
from scheduler.engine.request import CPU, ClientVersion, Gpu, WorkRequest

TODAY = dt.date(2026, 11, 20)
LINUX = "x86_64-pc-linux-gnu"
ROOMY = Limits(20, 20, 20)
NVIDIA = Gpu("NVIDIA", 2, 1e13, 8 * 10**9, driver=53504, capability=806, has_opencl=True)
# Four processors of 4 GFLOPS
PC = Computer(ncpus=4, p_fpops=4e9, gpus={})
GPU_PC = replace(PC, gpus={"NVIDIA": NVIDIA})
APP = AppFacts(1, "alpine", 1.0, 100, Rules.published())
CPU_VERSION = Version(10, 1, LINUX, 100, "", CPU, 1.0, 0.0)
GPU_VERSION = Version(11, 1, LINUX, 100, "cuda", "NVIDIA", 0.5, 1.0)


def job(number: int = 1, *, fpops: float = 7.2e12, workunit: int | None = None, **fields: Any) -> Job:
    """An hour on a version of 2 GFLOPS (half of the peak), 100 MB of memory and disk, a week's time."""
    usual = Job(number, workunit or number, 1, f"job_{number}", fpops, 1e16, 10**8, 10**8, 7 * 86400, min_quorum=2)
    return msgspec.structs.replace(usual, **fields)


def cpu_choice() -> Choice:
    return Choice(RecordKey(1, 10, CPU), Usage(1.0, 0.0, 4e9), 2e9, CPU_VERSION)


def gpu_choice() -> Choice:
    return Choice(RecordKey(1, 11, "NVIDIA"), Usage(0.5, 1.0, 1e13), 1e12, GPU_VERSION)


def selection(
    work_requests: dict[str, WorkRequest],
    *choices: Choice,
    computer: Computer = GPU_PC,
    app: AppFacts = APP,
    records: dict[RecordKey, HostVersionFacts] | None = None,
    limits: Limits = ROOMY,
    in_progress: int = 0,
    disk_bytes: float | None = None,
) -> Selection:
    by_type = {choice.processor_type: choice for choice in choices}
    return Selection(
        Needs(work_requests, computer),
        computer,
        {1: by_type},
        {1: app},
        records or {},
        limits,
        TODAY,
        Counter({(1, False): in_progress}),
        disk_bytes,
    )


def sent_types(chosen: Selection, jobs: Sequence[Job]) -> list[str]:
    for each in jobs:
        chosen.offer(each)
    return [each.choice.processor_type for each in chosen.sent]


@pytest.mark.parametrize(
    ("wanted", "njobs"),
    [
        # Seconds: an hour each, so the third job passes 2 h + 1 s.
        (WorkRequest(7201, 0), 3),
        (WorkRequest(7200, 0), 2),
        # Instances: four idle processors want four jobs, however long those run.
        (WorkRequest(0, 4), 4),
        # Either of them: two hours are reached before four processors are filled, and the other way round.
        (WorkRequest(7200, 4), 4),
        (WorkRequest(5 * 3600, 1), 5),
        (WorkRequest(1, 0), 1),
        (WorkRequest(0, 0.25), 1),
        (WorkRequest(0, 0), 0),
    ],
)
def test_jobs_are_sent_while_seconds_or_instances_are_wanted(wanted: WorkRequest, njobs: int) -> None:
    chosen = selection({CPU: wanted}, cpu_choice())
    assert sent_types(chosen, [job(n) for n in range(1, 9)]) == [CPU] * njobs


def test_time_that_a_computer_does_not_compute_makes_jobs_longer() -> None:
    # Half of the time, an hour's job takes two: one is enough for 7,200 s.
    chosen = selection({CPU: WorkRequest(7200)}, cpu_choice(), computer=replace(PC, cpu_availability=0.5))
    assert sent_types(chosen, [job(1), job(2)]) == [CPU]


def test_a_version_of_many_processors_uses_up_as_many_seconds_and_instances() -> None:
    wide = Choice(RecordKey(1, 10, CPU), Usage(4.0, 0.0, 16e9), 8e9, CPU_VERSION)
    # 7.2e12 / 8e9 = 900 s on 4 processors are 3,600 processor-seconds.
    chosen = selection({CPU: WorkRequest(3601, 4)}, wide)
    assert sent_types(chosen, [job(1), job(2), job(3)]) == [CPU] * 2


def test_the_gpu_version_is_dropped_for_another_when_no_more_gpu_work_is_wanted() -> None:
    chosen = selection({CPU: WorkRequest(0, 2), "NVIDIA": WorkRequest(0, 1)}, cpu_choice(), gpu_choice())
    assert sent_types(chosen, [job(n) for n in range(1, 6)]) == ["NVIDIA", CPU, CPU]


def test_types_that_are_not_wanted_get_nothing() -> None:
    chosen = selection({CPU: WorkRequest(0, 0), "NVIDIA": WorkRequest(100, 0)}, cpu_choice())
    assert sent_types(chosen, [job(1)]) == []


@pytest.mark.parametrize(
    ("wanted", "bound_secs", "fits"),
    [
        (WorkRequest(1, 0, 0), 3600, True),
        (WorkRequest(1, 0, 0), 3599, False),
        # It cannot start before half an hour from now.
        (WorkRequest(1, 0, 1800), 5400, True),
        (WorkRequest(1, 0, 1800), 5399, False),
    ],
)
def test_a_job_must_be_done_before_its_deadline(wanted: WorkRequest, bound_secs: int, fits: bool) -> None:
    chosen = selection({CPU: wanted}, cpu_choice())
    assert chosen.offer(job(delay_bound_secs=bound_secs)) is fits
    assert (Reason.DEADLINE in chosen.reasons) is not fits


def test_each_job_makes_the_next_begin_later() -> None:
    # Four processors, an hour each: after four jobs the next begins in an hour and ends in two.
    chosen = selection({CPU: WorkRequest(1e6)}, cpu_choice())
    assert sent_types(chosen, [job(n, delay_bound_secs=2 * 3600 - 1) for n in range(1, 9)]) == [CPU] * 4


def test_on_idle_processors_jobs_begin_at_once() -> None:
    # Four processors, all idle, an hour each, due in 1.2 hours: the first four begin now, a fifth in an hour.
    chosen = selection({CPU: WorkRequest(1e6, 4)}, cpu_choice())
    assert sent_types(chosen, [job(n, delay_bound_secs=4320) for n in range(1, 9)]) == [CPU] * 4


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"memory_bytes": 2 * 10**9}, Reason.MEMORY),
        ({"disk_bytes": 2 * 10**9}, Reason.DISK),
    ],
)
def test_what_does_not_fit_says_why(fields: dict[str, int], reason: Reason) -> None:
    chosen = selection({CPU: WorkRequest(1)}, cpu_choice(), computer=replace(PC, ram_bytes=1e9), disk_bytes=1e9)
    assert not chosen.offer(job(**fields))
    assert (chosen.reasons, chosen.missing) == ({reason}, {reason: 1e9})


def test_disk_is_used_up_by_the_jobs_of_the_reply() -> None:
    chosen = selection({CPU: WorkRequest(1e6)}, cpu_choice(), disk_bytes=2.5e8)
    assert sent_types(chosen, [job(n) for n in range(1, 5)]) == [CPU] * 2


def test_one_copy_of_a_workunit_per_reply_unless_the_app_allows_more() -> None:
    twins = [job(1, workunit=7), job(2, workunit=7)]
    assert len(sent_types(selection({CPU: WorkRequest(1e6)}, cpu_choice()), twins)) == 1
    alone = selection({CPU: WorkRequest(1e6)}, cpu_choice(), app=replace(APP, one_result_per_user=False))
    assert len(sent_types(alone, twins)) == 2


@pytest.mark.parametrize(
    ("in_progress", "own", "njobs"),
    [
        # 2 for each of 4 processors
        (5, {"max_jobs_in_progress": 2}, 3),
        (8, {"max_jobs_in_progress": 2}, 0),
        # The site's own 20 for each hold for what the app would allow.
        (78, {"max_jobs_in_progress": 10_000}, 2),
        (0, {"max_jobs_per_rpc": 3}, 3),
        (7, {"max_jobs_in_progress": 2, "max_jobs_per_rpc": 3}, 1),
        # It says nothing of processors.
        (0, {"max_gpu_jobs_in_progress": 0}, 20),
    ],
)
def test_an_apps_own_limits_hold_beside_the_sites(in_progress: int, own: dict[str, Any], njobs: int) -> None:
    chosen = selection({CPU: WorkRequest(1e6)}, cpu_choice(), app=replace(APP, **own), in_progress=in_progress)
    assert sum(chosen.offer(job(number)) for number in range(1, 30)) == njobs


def test_an_apps_own_limit_for_gpus_is_for_each_of_them() -> None:
    # One for each of two GPUs; the jobs on processors do not count.
    app = replace(APP, max_gpu_jobs_in_progress=1)
    chosen = selection({"NVIDIA": WorkRequest(1e6)}, gpu_choice(), app=app, in_progress=4)
    assert sum(chosen.offer(job(number)) for number in range(1, 30)) == 2
    assert Reason.IN_PROGRESS in chosen.reasons


@pytest.mark.parametrize(
    ("in_progress", "limits", "njobs"),
    [
        # 2 for each of 4 processors, 5 of them there
        (5, Limits(2, 2, 20), 3),
        (8, Limits(2, 2, 20), 0),
        (0, Limits(20, 20, 2), 2),
    ],
)
def test_limits_of_jobs_at_once_and_in_a_reply(in_progress: int, limits: Limits, njobs: int) -> None:
    chosen = selection({CPU: WorkRequest(1e6)}, cpu_choice(), limits=limits, in_progress=in_progress)
    assert len(sent_types(chosen, [job(n) for n in range(1, 9)])) == njobs
    assert Reason.IN_PROGRESS in chosen.reasons


def test_gpu_jobs_have_a_limit_of_their_own() -> None:
    # Two GPUs, one job each
    chosen = selection({"NVIDIA": WorkRequest(1e6)}, gpu_choice(), limits=Limits(1, 1, 20), in_progress=4)
    assert len(sent_types(chosen, [job(n) for n in range(1, 9)])) == 2


@pytest.mark.parametrize(
    ("record", "njobs"),
    [
        # 100 a day for each of 4 processors, unless the record says less
        (HostVersionFacts(max_jobs_per_day=3, n_jobs_today=1, jobs_day=TODAY), 2),
        (HostVersionFacts(max_jobs_per_day=3, n_jobs_today=3, jobs_day=TODAY), 0),
        # Yesterday's do not count.
        (HostVersionFacts(max_jobs_per_day=3, n_jobs_today=3, jobs_day=TODAY - dt.timedelta(days=1)), 3),
        # Another request of this computer was sent jobs just after midnight.
        (HostVersionFacts(max_jobs_per_day=3, n_jobs_today=3, jobs_day=TODAY + dt.timedelta(days=1)), 0),
        # Counted while the server's clock was a year ahead
        (HostVersionFacts(max_jobs_per_day=3, n_jobs_today=3, jobs_day=TODAY + dt.timedelta(days=365)), 3),
        (HostVersionFacts(max_jobs_per_day=0, n_jobs_today=398, jobs_day=TODAY), 2),
    ],
)
def test_the_quota_of_the_day_is_of_a_version_on_a_computer(record: HostVersionFacts, njobs: int) -> None:
    chosen = selection({CPU: WorkRequest(1e6)}, cpu_choice(), records={RecordKey(1, 10, CPU): record})
    assert len(sent_types(chosen, [job(n) for n in range(1, 9)])) == njobs
    assert Reason.QUOTA in chosen.reasons


@pytest.mark.parametrize(
    ("error_rate", "min_quorum", "is_adaptive", "replicates"),
    [
        (0.05, 1, True, True),
        (0.049, 1, True, False),
        (0.05, 2, True, False),
        (0.05, 1, False, False),
    ],
)
def test_a_single_result_is_replicated_for_computers_with_errors(
    error_rate: float, min_quorum: int, is_adaptive: bool, replicates: bool
) -> None:
    records = {RecordKey(1, 10, CPU): HostVersionFacts(error_rate=error_rate)}
    app = replace(APP, is_adaptive=is_adaptive, rules=Rules.letter())
    chosen = selection({CPU: WorkRequest(1)}, cpu_choice(), app=app, records=records)
    assert chosen.offer(job(min_quorum=min_quorum))
    assert chosen.sent[0].must_replicate is replicates


def test_a_trusted_computers_single_results_are_spot_checked_by_the_requests_own_draw() -> None:
    records = {RecordKey(1, 10, CPU): HostVersionFacts(error_rate=0.0, consecutive_valid=40, max_jobs_per_day=1000)}
    app = replace(APP, is_adaptive=True, max_jobs_per_day_init=1000)
    many = replace(ROOMY, max_jobs_in_progress=1000, max_jobs_per_rpc=1000)
    chosen = selection({CPU: WorkRequest(1e9)}, cpu_choice(), app=app, records=records, limits=many)
    chosen.draw = random.Random(3)
    assert all(chosen.offer(job(n, min_quorum=1)) for n in range(1, 401))
    drawn = random.Random(3)
    # 40 valid results in a row: a chance of 10 / 40
    expected = [drawn.random() < 0.25 for _ in range(400)]
    assert [each.must_replicate for each in chosen.sent] == expected
    assert 60 < sum(expected) < 140


def test_a_computer_that_never_ran_the_version_is_not_trusted() -> None:
    chosen = selection({CPU: WorkRequest(1)}, cpu_choice(), app=replace(APP, is_adaptive=True))
    assert chosen.offer(job(min_quorum=1))
    assert chosen.sent[0].must_replicate


@pytest.mark.parametrize(
    ("plan_class", "computer", "usage"),
    [
        # peak: 1 × 4e9
        (None, PC, Usage(1.0, 0.0, 4e9)),
        (PlanClassRules("mt", CPU, max_ncpus=8), PC, Usage(4.0, 0.0, 16e9)),
        (PlanClassRules("mt", CPU, max_ncpus=2), PC, Usage(2.0, 0.0, 8e9)),
        (PlanClassRules("mt", CPU, min_ncpus=8), PC, None),
        (PlanClassRules("avx", CPU, cpu_features=frozenset({"avx2"})), PC, None),
        (
            PlanClassRules("avx", CPU, cpu_features=frozenset({"avx2"})),
            replace(PC, features=frozenset({"sse", "avx2"})),
            Usage(1.0, 0.0, 4e9),
        ),
    ],
)
def test_plan_classes_of_processors(plan_class: PlanClassRules | None, computer: Computer, usage: Usage | None) -> None:
    assert usage_of(CPU_VERSION, plan_class, computer, Ceilings()) == usage


@pytest.mark.parametrize(
    ("plan_class", "usage"),
    [
        # 0.5 × 4e9 + 1 × 1e13
        (None, Usage(0.5, 1.0, 1.0002e13)),
        # 0.2 × 4e9 + 0.5 × 1e13
        (PlanClassRules("cuda", "NVIDIA", avg_ncpus=0.2, gpu_usage=0.5), Usage(0.2, 0.5, 5.0008e12)),
        (PlanClassRules("cuda", "NVIDIA", gpu_usage=3), None),
        (PlanClassRules("cuda", "NVIDIA", gpu_usage=1, min_gpu_ram_bytes=9 * 10**9), None),
        (PlanClassRules("cuda", "NVIDIA", gpu_usage=1, min_driver=53505), None),
        (PlanClassRules("cuda", "NVIDIA", gpu_usage=1, min_capability=900), None),
    ],
)
def test_plan_classes_of_gpus(plan_class: PlanClassRules | None, usage: Usage | None) -> None:
    assert usage_of(GPU_VERSION, plan_class, GPU_PC, Ceilings()) == usage


def test_opencl_may_be_needed() -> None:
    plan_class = PlanClassRules("opencl", "NVIDIA", gpu_usage=1, needs_opencl=True)
    without = replace(PC, gpus={"NVIDIA": replace(NVIDIA, has_opencl=False)})
    assert usage_of(GPU_VERSION, plan_class, GPU_PC, Ceilings()) is not None
    assert usage_of(GPU_VERSION, plan_class, without, Ceilings()) is None
    assert usage_of(GPU_VERSION, plan_class, PC, Ceilings()) is None


def test_claims_are_cut_to_the_ceilings_before_the_peak_is_computed() -> None:
    cheat = replace(PC, ncpus=4, p_fpops=1e18)
    usage = usage_of(CPU_VERSION, None, cheat, Ceilings(max_cpu_flops=200e9))
    assert usage is not None
    assert usage.peak_flops == 200e9


def test_the_newest_version_of_a_platform_and_plan_class_counts() -> None:
    versions = [
        CPU_VERSION,
        replace(CPU_VERSION, id=20, version_num=101),
        replace(CPU_VERSION, id=21, version_num=102, is_deprecated=True),
        replace(CPU_VERSION, id=22, version_num=103, platform="windows_x86_64"),
        GPU_VERSION,
    ]
    assert {version.id for version in newest(versions, Requester((LINUX,), 0, 1))} == {20, 11}


def et(n: int, secs_per_flop: float) -> HostVersionFacts:
    return HostVersionFacts(et=AverageWithVariance(n, secs_per_flop))


@pytest.mark.parametrize(
    ("record", "pfc", "flops"),
    [
        # Half of the peak at first
        (None, Average(), 2e9),
        (et(9, 1e-9), Average(), 2e9),
        # Ten run times are known: 1 / 1e-9
        (et(10, 1e-9), Average(), 1e9),
        # The version's: 4e9 / 4
        (None, Average(100, 4.0), 1e9),
        (None, Average(99, 4.0), 2e9),
        # Never above the peak
        (et(10, 1e-12), Average(), 4e9),
    ],
)
def test_speed_is_that_of_the_host_else_of_the_version_else_a_part_of_the_peak(
    record: HostVersionFacts | None, pfc: Average, flops: float
) -> None:
    records = {RecordKey(1, 10, CPU): record} if record else {}
    choices, _ = choose(APP, [replace(CPU_VERSION, pfc=pfc)], {}, PC, [CPU], records, TODAY, Ceilings(), "request 1")
    assert choices[CPU].flops == pytest.approx(flops, rel=1e-12)


def test_the_fastest_version_is_chosen_and_the_next_best_when_its_quota_is_used_up() -> None:
    fast = replace(CPU_VERSION, id=20, plan_class="fast")
    records = {RecordKey(1, 20, CPU): et(10, 1e-9 / 3)}
    choices, reasons = choose(APP, [CPU_VERSION, fast], {}, PC, [CPU], records, TODAY, Ceilings(), "request 1")
    assert choices[CPU].key.version_id == 20
    assert reasons == set()
    records[RecordKey(1, 20, CPU)].max_jobs_per_day = 1
    records[RecordKey(1, 20, CPU)].n_jobs_today = 1
    records[RecordKey(1, 20, CPU)].jobs_day = TODAY
    choices, reasons = choose(APP, [CPU_VERSION, fast], {}, PC, [CPU], records, TODAY, Ceilings(), "request 1")
    assert choices[CPU].key.version_id == 10
    assert reasons == {Reason.QUOTA}


OTHER_BUILD = replace(CPU_VERSION, id=20, plan_class="other")
BUILDS = [CPU_VERSION, OTHER_BUILD]


def share_of(id_: int, records: dict[RecordKey, HostVersionFacts], builds: Sequence[Version] = BUILDS) -> float:
    """The part of 4,000 requests in which this build is chosen; its standard deviation is 0.008 at most."""
    requests = [f"request {number}" for number in range(4000)]
    made = [choose(APP, builds, {}, PC, [CPU], records, TODAY, Ceilings(), request)[0][CPU] for request in requests]
    return sum(choice.key.version_id == id_ for choice in made) / 4000


@pytest.mark.parametrize(
    ("nsamples", "pfc", "share"),
    [
        # Measured nowhere: 1 / 4, 1 / (4 + 4)
        (0, Average(), 0.25),
        (4, Average(), 0.125),
        # Measured elsewhere, at 1 GFLOPS where the other has 3: 1 / 4 / 3
        (0, Average(100, 4.0), 0.083),
        # Measured here, at 2 GFLOPS: 2 / 3 / (4 + 16)
        (16, Average(), 0.033),
    ],
)
def test_a_slower_build_is_tried_the_less_the_more_is_known_of_it(nsamples: int, pfc: Average, share: float) -> None:
    records = {RecordKey(1, 10, CPU): et(100, 1e-9 / 3), RecordKey(1, 20, CPU): et(nsamples, 1e-9 / 2)}
    assert share_of(20, records, [CPU_VERSION, replace(OTHER_BUILD, pfc=pfc)]) == pytest.approx(share, abs=0.02)


def test_of_equally_fast_builds_the_less_known_one_goes_first_and_then_the_newest() -> None:
    assert share_of(20, {}) == pytest.approx(0.75, abs=0.03)
    assert share_of(10, {RecordKey(1, 20, CPU): et(1, 5e-10)}) == pytest.approx(0.8, abs=0.03)


def test_the_same_request_gets_the_same_build_again() -> None:
    first, again = (
        [choose(APP, BUILDS, {}, PC, [CPU], {}, TODAY, Ceilings(), f"{number}")[0] for number in range(50)]
        for _ in range(2)
    )
    assert first == again


@pytest.mark.parametrize("faster", [10, 20])
def test_whichever_build_is_faster_gets_nearly_all_jobs_of_a_computer_in_the_end(faster: int) -> None:
    records: dict[RecordKey, HostVersionFacts] = {}
    chosen = Counter[int]()
    for number in range(600):
        choices, _ = choose(APP, BUILDS, {}, PC, [CPU], records, TODAY, Ceilings(), f"request {number}")
        key = choices[CPU].key
        record = records.setdefault(key, HostVersionFacts())
        record.et.add(1e-9 if key.version_id == faster else 1.5e-9, APP.rules.host_average)
        chosen[key.version_id] += number >= 300
    # In these 300 one of 4 + 30 or so requests, times 2 / 3.
    assert chosen[faster] > 285


def test_a_plan_class_scales_the_speed_that_is_assumed_and_no_measured_one() -> None:
    classes = {"other": PlanClassRules("other", CPU, projected_flops_scale=1.5)}

    def flops(records: dict[RecordKey, HostVersionFacts]) -> float:
        return choose(APP, [OTHER_BUILD], classes, PC, [CPU], records, TODAY, Ceilings(), "")[0][CPU].flops

    # 1.5 × half of 4 GFLOPS
    assert flops({}) == 3e9
    assert flops({RecordKey(1, 20, CPU): et(10, 1e-9)}) == pytest.approx(1e9)


def test_versions_of_types_that_are_not_wanted_are_skipped() -> None:
    choices, reasons = choose(
        APP, [CPU_VERSION, GPU_VERSION], {}, GPU_PC, ["NVIDIA"], {}, TODAY, Ceilings(), "request 1"
    )
    assert choices.keys() == {"NVIDIA"}
    assert reasons == {Reason.NO_TYPE}


def test_the_programs_of_the_client_itself() -> None:
    own = [
        ClientVersion("alpine", 101, LINUX, "", 1.0, 2.5e9),
        ClientVersion("alpine", 101, LINUX, "cuda", 0.5, 5e12, "NVIDIA", 1.0),
        ClientVersion("other", 101, LINUX, "", 1.0, 9e9),
    ]
    choices, _ = choose_own(APP, own, GPU_PC, [CPU, "NVIDIA"], {}, TODAY, Ceilings())
    assert {type_: choice.flops for type_, choice in choices.items()} == {CPU: 2.5e9, "NVIDIA": 5e12}
    assert {choice.key for choice in choices.values()} == {RecordKey(1, 0, CPU), RecordKey(1, 0, "NVIDIA")}
    # Once enough is known of them, what they say does not count: 1 / 5e-10
    records = {RecordKey(1, 0, CPU): et(10, 5e-10)}
    choices, _ = choose_own(APP, own, GPU_PC, [CPU], records, TODAY, Ceilings())
    assert choices[CPU].flops == pytest.approx(2e9, rel=1e-12)


def test_apps_get_jobs_by_their_weights() -> None:
    apps = [replace(APP, id=1, weight=3, typical_fpops=1e12), replace(APP, id=2, weight=1, typical_fpops=1e12)]
    draw = random.Random(5)
    got = {1: 0, 2: 0}
    for _ in range(2000):
        for app_id, count in jobs_by_app_weight(apps, 2, draw).items():
            got[app_id] += count
    assert sum(got.values()) == 4000
    # 3,000 expected; the standard deviation is 27.
    assert 2900 < got[1] < 3100


def test_apps_without_weight_or_without_jobs_get_none() -> None:
    empty, idle = replace(APP, id=1), replace(APP, id=2, weight=0, typical_fpops=1e12)
    busy = replace(APP, id=3, typical_fpops=1e12)
    assert jobs_by_app_weight([empty, idle, busy], 5, random.Random(1)) == {3: 5}
    assert jobs_by_app_weight([empty, idle], 5, random.Random(1)) == {1: 5}
    assert jobs_by_app_weight([idle], 5, random.Random(1)) == {}


@pytest.mark.parametrize(
    ("wanted", "njobs"),
    [
        (WorkRequest(7200, 0), 2),
        (WorkRequest(0, 4), 4),
        (WorkRequest(1, 0), 1),
        (WorkRequest(1e9, 0), 20),
        (WorkRequest(0, 0), 0),
    ],
)
def test_as_many_jobs_are_picked_as_the_usual_ones_fill(wanted: WorkRequest, njobs: int) -> None:
    app = replace(APP, typical_fpops=7.2e12)
    assert jobs_wanted(selection({CPU: wanted}, cpu_choice(), app=app), [app]).get(CPU, 0) == njobs
