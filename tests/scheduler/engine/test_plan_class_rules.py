"""The requirements of plan classes on GPUs, and the patterns they may use."""

from __future__ import annotations

from typing import Any

import pytest

from credit.engine.flops import Ceilings
from scheduler.engine.choice.plan_classes import fits_gpu, gpu_ncpus, is_pattern, missing, virtualbox_number
from scheduler.engine.choice.system_versions import libc_number, os_number
from scheduler.engine.choice.versions import usage_of
from scheduler.engine.facts import Computer, PlanClassRules, Version
from scheduler.engine.request import Gpu

CUDA = Gpu(
    type="NVIDIA",
    count=1,
    peak_flops=1e13,
    ram_bytes=8 * 2**30,
    driver=53_504,
    capability=806,
    has_opencl=True,
    opencl=300,
    cuda=12_020,
    model="NVIDIA GeForce RTX 4070",
)
AMD = Gpu("ATI", 1, 1e13, 8 * 2**30, has_opencl=True, opencl=200, has_doubles=True)
CEILINGS = Ceilings(1024, 1e12, 64, 1e16)


@pytest.mark.parametrize(
    ("rules", "gpu", "fits"),
    [
        ({}, CUDA, True),
        ({"max_driver": 53_503}, CUDA, False),
        ({"min_driver": 53_504, "max_driver": 53_504}, CUDA, True),
        # AMD's drivers tell no number since CAL
        ({"min_driver": 10_041_848}, AMD, True),
        ({"max_capability": 805}, CUDA, False),
        ({"min_cuda": 12_030}, CUDA, False),
        ({"max_cuda": 12_010}, CUDA, False),
        ({"min_cuda": 11_000, "max_cuda": 12_020}, CUDA, True),
        ({"min_opencl": 201}, AMD, False),
        ({"max_opencl": 200}, AMD, True),
        ({"needs_doubles": True}, AMD, True),
        ({"needs_doubles": True}, CUDA, False),
        ({"min_gpu_flops": 2e13}, CUDA, False),
        ({"max_gpu_flops": 5e12}, CUDA, False),
        ({"gpu_pattern": "RTX [45]0|H100"}, CUDA, True),
        ({"gpu_pattern": "^GTX"}, CUDA, False),
        ({"gpu_pattern": "RTX"}, AMD, False),
    ],
)
def test_a_gpu_fits_within_all_ranges(rules: dict[str, Any], gpu: Gpu, fits: bool) -> None:
    assert fits_gpu(PlanClassRules("c", gpu.type, **rules), gpu) is fits


def test_the_cpu_is_busy_for_its_share_of_the_flops() -> None:
    # 10 % of the FLOPs at 4 GFLOPS, 90 % at 36: equally long.
    assert gpu_ncpus(0.1, 4e9, 36e9) == pytest.approx(0.5)
    # A GPU whose speed is not known
    assert gpu_ncpus(0.1, 4e9, 0) == 0.1
    rules = PlanClassRules("c", "NVIDIA", avg_ncpus=1, gpu_usage=0.5, cpu_share=0.1)
    version = Version(1, 1, "linux", 1, "c", "NVIDIA", 1, 1)
    computer = Computer(4, 4e9, {"NVIDIA": Gpu("NVIDIA", 1, 72e9, 2**30)})
    usage = usage_of(version, rules, computer, CEILINGS)
    assert usage is not None and usage.ncpus == pytest.approx(0.5) and usage.gpus == 0.5


UBUNTU = "Ubuntu 18.04.1 LTS [4.15.0-36-generic|libc 2.27 (Ubuntu GLIBC 2.27-3ubuntu1)]"


@pytest.mark.parametrize(
    ("name", "version", "number", "libc"),
    [
        ("Linux Ubuntu", UBUNTU, 41_500, 227),
        ("Linux", "4.9.0-8-amd64", 40_900, 0),
        ("Linux Mint", "Linux Mint 19 Tara [4.18.12-041812-generic|libc 2.3 (x)]", 41_812, 203),
        ("Darwin", "22.6.0", 220_600, 0),
        ("Microsoft Windows 10", "Core x64 Edition, (10.00.19045.00)", 1_001_904_500, 0),
        # The last one counts, as for BOINC's server.
        ("Windows", "Server (x), Service Pack 1, (06.01.7601.00)", 601_760_100, 0),
        ("Android", "3.0.31-g6fb96c9 (Android 4.3)", 30_031, 0),
        ("Windows", "10.0.19045", 0, 0),
        ("FreeBSD", "13.2.0", 0, 0),
        ("", "", 0, 0),
    ],
)
def test_systems_and_c_libraries_have_boincs_numbers(name: str, version: str, number: int, libc: int) -> None:
    assert (os_number(name, version), libc_number(version)) == (number, libc)


@pytest.mark.parametrize(
    ("rules", "fits"),
    [
        ({"min_os": 41_500}, True),
        ({"min_os": 41_501}, False),
        ({"max_os": 41_499}, False),
        ({"min_libc": 227}, True),
        ({"min_libc": 228}, False),
    ],
)
def test_a_system_fits_within_its_range(rules: dict[str, Any], fits: bool) -> None:
    computer = Computer(4, 1e9, {}, os_number=os_number("Linux", UBUNTU), libc_number=libc_number(UBUNTU))
    assert (missing(PlanClassRules("c", "CPU", **rules), "linux", computer) is None) is fits
    assert missing(PlanClassRules("c", "CPU", **rules), "linux", Computer(4, 1e9, {})) is not None


@pytest.mark.parametrize(
    ("text", "number"), [("8.2.4", 80_204), ("7.0.12 (r1)", 70_012), ("7.20", 0), ("", 0), ("7.0.123", 0)]
)
def test_versions_are_numbers(text: str, number: int) -> None:
    assert virtualbox_number(text) == number


@pytest.mark.parametrize(
    ("pattern", "may_be_used"),
    [
        ("", True),
        (r"^Linux.*\|libc 2\.(1[7-9]|[2-9][0-9])", True),
        (r"\(10\.0", True),
        ("(a+)+$", False),
        ("(a|a)*", False),
        ("a?a?a?a?a", False),
        ("(a|a)(a|a)(a|a)(a|a)", False),
        ("a{1000}", False),
        # An escaped backslash, any number of times
        (r"\\*" * 4 + "x", False),
        (r"(a\\)*", False),
        (r"(a)\1", False),
        ("(?=a)", False),
        ("[[:alpha:]]", False),
        ("(", False),
        ("a" * 201, False),
    ],
)
def test_a_pattern_takes_long_on_no_text(pattern: str, may_be_used: bool) -> None:
    assert is_pattern(pattern) is may_be_used
