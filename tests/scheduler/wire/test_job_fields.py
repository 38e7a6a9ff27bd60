"""Faults of a submission that can be found without the database, at little cost."""

from __future__ import annotations

from typing import Any

from scheduler.wire import job_fields
from scheduler.wire.job_fields import read_jobs

BASE: dict[str, Any] = {
    "disk_bound_bytes": 1e9,
    "min_quorum": 1,
    "max_total_results": 1,
    "max_success_results": 1,
    "command_line": "",
}


def test_the_names_of_many_variants_are_compared_once_for_all_jobs() -> None:
    files = [{"open_name": "in", "name": "x", "plan_class": f"class_{number}"} for number in range(100)]
    defaults = {"fpops_est": 1e9, "input_files": files, "output_files": [{"open_name": "out", "max_nbytes": 1}]}
    before = job_fields._fault_of_names.cache_info().misses
    jobs, faults = read_jobs(defaults, [{} for _ in range(1000)], BASE)
    assert (len(jobs), faults) == (1000, [])
    assert job_fields._fault_of_names.cache_info().misses - before <= 1


def test_names_that_meet_are_told_by_their_place_among_all_files() -> None:
    files = [{"open_name": f"in_{cpu}", "name": "x", "cpu": cpu} for cpu in ("intel", "arm")]
    files += [{"open_name": "IN_arm", "name": "y"}]
    defaults = {"fpops_est": 1e9, "input_files": files, "output_files": []}
    _, (fault,) = read_jobs(defaults, [{}], BASE)
    assert fault.field == "jobs[0].input_files[2].open_name"
