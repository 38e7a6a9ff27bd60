"""Hardware read from <host_info>: coprocessors of every kind, ranges, faults, and the digest."""

import tracemalloc

import pytest

from portal.wire.hardware import MAX_DISTROS, Coproc, Hardware, hardware_digest, parse_containers, parse_hardware
from tests.support.am_requests import HOST_INFO

NVIDIA = b"""<coproc_cuda>
   <count>2</count>
   <name>NVIDIA GeForce RTX 3060</name>
   <available_ram>12000000000.000000</available_ram>
   <have_cuda>1</have_cuda>
   <have_opencl>1</have_opencl>
   <peak_flops>12738560000000.000000</peak_flops>
   <cudaVersion>12020</cudaVersion>
   <drvVersion>53504</drvVersion>
   <totalGlobalMem>12622168064.000000</totalGlobalMem>
   <clockRate>1777000</clockRate>
   <coproc_opencl>
      <name>NVIDIA GeForce RTX 3060</name>
      <vendor>NVIDIA Corporation</vendor>
      <global_mem_size>12622168064</global_mem_size>
      <opencl_platform_version>OpenCL 3.0 CUDA 12.2.138</opencl_platform_version>
      <opencl_device_version>OpenCL 3.0 CUDA</opencl_device_version>
      <opencl_driver_version>535.104.05</opencl_driver_version>
   </coproc_opencl>
</coproc_cuda>
"""
ATI = b"""<coproc_ati>
   <count>1</count>
   <name>AMD Radeon RX 580 &amp; friends</name>
   <peak_flops>6175000000000.000000</peak_flops>
   <CALVersion>1.4.1848</CALVersion>
   <localRAM>8192</localRAM>
</coproc_ati>
"""
INTEL = b"""<coproc_intel_gpu>
   <count>1</count>
   <name>Intel(R) UHD Graphics 630</name>
   <peak_flops>441600000000.000000</peak_flops>
   <coproc_opencl>
      <global_mem_size>13000000000</global_mem_size>
      <opencl_device_version>OpenCL 3.0 NEO</opencl_device_version>
      <opencl_driver_version>23.17.26241</opencl_driver_version>
   </coproc_opencl>
</coproc_intel_gpu>
"""
APPLE = b"<coproc_apple_gpu><count>1</count><name>Apple M2</name><peak_flops>3.6e12</peak_flops></coproc_apple_gpu>"
CUSTOM = b"<coproc>\n<type>miner_asic</type>\n<count>3</count>\n<peak_flops>1e12</peak_flops>\n</coproc>"
NO_NVIDIA = b"<coproc_cuda>\n<count>0</count>\n<name></name>\n<peak_flops>0.000000</peak_flops>\n</coproc_cuda>"

INSIDE = HOST_INFO.removeprefix(b"<host_info>").removesuffix(b"</host_info>\n")


def with_coprocs(*coprocs: bytes) -> Hardware:
    return parse_hardware(INSIDE.replace(b"    <coprocs>\n", b"    <coprocs>\n" + b"".join(coprocs)))


def with_value(tag: bytes, text: bytes) -> Hardware:
    start = INSIDE.index(b"<%s>" % tag) + len(tag) + 2
    return parse_hardware(INSIDE[:start] + text + INSIDE[INSIDE.index(b"</%s>" % tag) :])


def test_each_kind_of_coprocessor_is_described() -> None:
    hardware = with_coprocs(NVIDIA, ATI, INTEL, APPLE, CUSTOM)
    assert hardware.coprocs == (
        Coproc(
            "NVIDIA", "NVIDIA GeForce RTX 3060", 2, 12_738_560_000_000.0, 12_622_168_064, "535.04", "OpenCL 3.0 CUDA"
        ),
        # 8,192 MiB
        Coproc("ATI", "AMD Radeon RX 580 & friends", 1, 6_175_000_000_000.0, 8_589_934_592, "1.4.1848", ""),
        Coproc(
            type="intel_gpu",
            name="Intel(R) UHD Graphics 630",
            count=1,
            peak_flops=441_600_000_000.0,
            ram_bytes=13_000_000_000,
            driver_version="23.17.26241",
            opencl_version="OpenCL 3.0 NEO",
        ),
        Coproc("apple_gpu", "Apple M2", 1, 3.6e12, None, "", ""),
        Coproc("miner_asic", "", 3, 1e12, None, "", ""),
    )  # fmt: skip
    assert hardware.faults == ()
    assert hardware.d_free == 80_868_081_664  # what follows the coprocessors is read too


def test_older_clients_names_of_opencl_elements_are_known() -> None:
    older = INTEL.replace(b"opencl_d", b"openCL_d").replace(b"global_mem_size", b"global_RAM")
    (coproc,) = with_coprocs(older).coprocs
    assert (coproc.ram_bytes, coproc.driver_version, coproc.opencl_version) == (
        13_000_000_000,
        "23.17.26241",
        "OpenCL 3.0 NEO",
    )


def test_a_coprocessor_that_is_not_there_is_none() -> None:
    hardware = with_coprocs(NO_NVIDIA, CUSTOM)
    assert [coproc.type for coproc in hardware.coprocs] == ["miner_asic"]
    assert hardware.faults == ()


@pytest.mark.parametrize("count", [b"-1", b"1025", b"nan", b"text", b"1e9", b"99999999999"])
def test_a_coprocessor_of_impossible_count_is_left_out_with_a_fault(count: bytes) -> None:
    hardware = with_coprocs(CUSTOM.replace(b"<count>3<", b"<count>%s<" % count), ATI)
    assert [coproc.type for coproc in hardware.coprocs] == ["ATI"]
    assert tuple(map(str, hardware.faults)) == ("coproc count is not an integer from 1 to 1,024",)


def test_an_impossible_speed_is_left_out_with_a_fault() -> None:
    hardware = with_coprocs(CUSTOM.replace(b"1e12", b"1e300"))
    assert [coproc.peak_flops for coproc in hardware.coprocs] == [None]
    assert tuple(map(str, hardware.faults)) == ("coproc peak_flops is not a decimal number from 0 to 1e+18",)


def test_a_coprocessor_that_is_never_closed_loses_no_other() -> None:
    hardware = with_coprocs(CUSTOM.replace(b"</coproc>", b""), CUSTOM.replace(b"miner_asic", b"other"))
    assert [coproc.type for coproc in hardware.coprocs] == ["miner_asic", "other"]


def test_too_many_coprocessors_are_cut() -> None:
    hardware = with_coprocs(*[CUSTOM] * 65)
    assert len(hardware.coprocs) == 64
    assert tuple(map(str, hardware.faults)) == ("coprocs has more than 64 entries",)


def test_values_in_range_are_read() -> None:
    hardware = parse_hardware(INSIDE)
    assert (hardware.timezone, hardware.ncpus, hardware.p_fpops) == (3600, 4, 5e9)
    assert (hardware.m_nbytes, hardware.m_cache, hardware.p_iops) == (25_276_514_304, None, None)
    assert hardware.faults == ()


@pytest.mark.parametrize(
    ("tag", "attribute", "text", "limits"),
    [
        (b"p_ncpus", "ncpus", b"0", "an integer from 1 to 65,535"),
        (b"p_ncpus", "ncpus", b"1e9", "an integer from 1 to 65,535"),
        (b"p_fpops", "p_fpops", b"nan", "a decimal number from 0 to 1e+15"),
        (b"p_fpops", "p_fpops", b"-1", "a decimal number from 0 to 1e+15"),
        (b"p_fpops", "p_fpops", b"1e304", "a decimal number from 0 to 1e+15"),
        (b"m_nbytes", "m_nbytes", b"1e19", "a decimal number from 0 to 1e+18"),
        (b"d_total", "d_total", b"inf", "a decimal number from 0 to 1e+18"),
        (b"timezone", "timezone", b"100000", "an integer from -86,400 to 86,400"),
    ],
)
def test_an_impossible_value_is_left_out_and_named(tag: bytes, attribute: str, text: bytes, limits: str) -> None:
    hardware = with_value(tag, text)
    assert getattr(hardware, attribute) is None
    assert tuple(map(str, hardware.faults)) == (f"{tag.decode()} is not {limits}",)
    assert hardware.os_name == "Linux Debian"


def test_texts_are_unescaped_and_cut() -> None:
    assert with_value(b"p_model", b"A &lt;B&gt; &amp; C").p_model == "A <B> & C"
    assert with_value(b"p_model", b"A <b> C").p_model == "A <b> C"
    assert with_value(b"p_vendor", b"x" * 1000).p_vendor == "x" * 128


def test_a_flood_of_elements_is_read_in_part_and_noted() -> None:
    hardware = parse_hardware(INSIDE + b"<a>1</a>" * 20_001)
    assert hardware.ncpus == 4
    assert tuple(map(str, hardware.faults)) == ("host_info was read in part, elements: more than 20000",)


def test_the_digest_changes_with_the_hardware_alone() -> None:
    digest = hardware_digest(INSIDE)
    moving = INSIDE.replace(b"80868081664", b"70868081664").replace(b"127.0.0.1", b"10.0.0.7")
    assert moving != INSIDE
    assert hardware_digest(moving) == digest
    assert hardware_digest(INSIDE.replace(b"<p_ncpus>4", b"<p_ncpus>8")) != digest
    assert hardware_digest(INSIDE.replace(b"5000000000.0", b"5000000001.0")) != digest
    assert len(digest) == 16
    assert hardware_digest(b"") == b""


def test_docker_of_the_computer_is_told_from_that_of_linux_below_windows() -> None:
    distro = b"<distro><distro_name>Ubuntu</distro_name><os_name>Ubuntu</os_name>%b</distro>"
    inside = distro % b"<docker_version>26.1</docker_version>" + distro % b"<disallowed/>"
    hardware = parse_hardware(b"<os_name>Windows</os_name>\n<wsl>\n" + inside + b"</wsl>\n")
    assert hardware.os_name == "Windows" and hardware.containers.docker_version == ""
    assert [(each.docker_version, each.is_allowed) for each in hardware.containers.distros] == [
        ("26.1", True),
        ("", False),
    ]
    assert parse_containers(
        b"<docker_version>27.3.1</docker_version>" + b"<wsl>" + inside + b"</wsl>"
    ).docker_version == ("27.3.1")


@pytest.mark.parametrize(
    "raw",
    [
        b"<wsl>" + b"<distro><distro_name>x</distro_name></distro>" * 10_000 + b"</wsl>",
        b"<wsl><distro>" * 10_000,
        b"<docker_version>" + b"9" * 100_000 + b"</docker_version>",
        b"<wsl><distro><distro_name>\xff\x00\xfe</distro_name></wsl>",
        b"</wsl><distro><wsl>",
    ],
)
def test_containers_beyond_the_limits_are_cut(raw: bytes) -> None:
    found = parse_containers(raw)
    assert len(found.distros) <= MAX_DISTROS and len(found.docker_version) <= 64
    assert all("\0" not in distro.name for distro in found.distros)


def test_a_description_full_of_distros_fields_takes_little_memory() -> None:
    raw = b"<wsl><distro>" + b"<os_name>a</os_name>" * 200_000 + b"</distro></wsl>"
    tracemalloc.start()
    assert parse_containers(raw).distros[0].system == "a"
    # The section is copied a few times; a tuple for each field would take 30 MB.
    assert tracemalloc.get_traced_memory()[1] < 20_000_000
    tracemalloc.stop()
