"""Every account-manager request captured from a real client (7.20.5), read to the values written out here."""

import pytest

from accounting.wire.requests import ReportedProject, parse_request
from portal.wire.hardware import Coproc
from tests.support.am_requests import captured, captured_requests

KEY = "be834110a013b1306352b55339acd440"
ACCOUNT_KEY = "1_77aa6d2754819a30f128656675a452bb"
LOGIN_HASH = "c5b3b6203845d293d91e391b3fe9c8dc"
CPID_A = "00000000000000000000000000000a01"
CPID_B = "00000000000000000000000000000b01"

# name: (login, hash, key, cpid, previous cpid, opaque, the client's clock)
TOP_LEVEL = {
    "am_request_first_password": ("user@example.org", LOGIN_HASH, "", CPID_A, "", "", 1795248390.697167),
    "am_request_second_password_no_project": (
        "User@Example.ORG", LOGIN_HASH, "", CPID_A, CPID_A, "<host_id>2</host_id>", 1795248512.578961,
    ),
    "am_request_authenticator_one_project": (
        "", "", KEY, CPID_A, CPID_A, "<host_id>2</host_id>", 1795248608.120135,
    ),
    "am_request_after_two_jobs": ("", "", KEY, CPID_A, CPID_A, "<host_id>2</host_id>", 1795248795.385632),
    "am_request_before_detach": ("", "", KEY, CPID_A, CPID_A, "<host_id>2</host_id>", 1795249152.915096),
    "am_request_static_one_project": ("", "", KEY, CPID_A, CPID_A, "<host_id>2</host_id>", 1795249633.246224),
    "am_request_gpu_work": ("", "", KEY, CPID_B, CPID_B, "<host_id>1</host_id>", 1795249303.345648),
}  # fmt: skip


def project(url: str = "http://127.0.0.1:8201/", **values: object) -> ReportedProject:
    """The captures' one project, with what differs."""
    common: dict[str, object] = {
        "project_name": "Test Project",
        "hostid": 1,
        "resource_share": 50.0,
        "attached_via_acct_mgr": True,
        "account_key": ACCOUNT_KEY,
    }
    reported = ReportedProject(url)
    for name, value in (common | values).items():
        assert hasattr(reported, name)
        setattr(reported, name, value)
    return reported


PROJECTS = {
    "am_request_first_password": [],
    "am_request_second_password_no_project": [],
    "am_request_authenticator_one_project": [
        project(
            resource_share=100.0, in_progress_dur=7.832959, totals=(0, 0, 0, 0, 0, 0), no_work=("CPU",)
        )
    ],
    "am_request_after_two_jobs": [project(totals=(600_340, 0, 259_346_744, 0, 2, 0), no_work=("CPU",))],
    "am_request_before_detach": [project(totals=(1_010_728, 0, 436_634_618, 0, 3, 2), no_work=("CPU",))],
    # This client had not been told that the manager is dynamic: no totals.
    "am_request_static_one_project": [
        project(hostid=2, resource_share=100.0, dont_request_more_work=True, totals=None)
    ],
    "am_request_gpu_work": [
        project(
            "http://127.0.0.1:8202/",
            resource_share=100.0,
            totals=(23_185, 37_095_231, 10_015_712, 40_062_850, 1, 0),
            no_work=("CPU", "testgpu"),
        )
    ],
}  # fmt: skip


def test_there_is_an_expectation_for_every_capture() -> None:
    assert set(captured_requests()) == set(TOP_LEVEL) == set(PROJECTS)


@pytest.mark.parametrize("name", TOP_LEVEL)
def test_who_sent_a_captured_request(name: str) -> None:
    request = parse_request(captured(name))
    assert (
        request.name,
        request.password_hash,
        request.authenticator,
        request.host_cpid,
        request.previous_host_cpid,
        request.opaque,
        request.client_now,
    ) == TOP_LEVEL[name]
    assert request.domain_name == "testhost"
    assert (request.client_version, request.version_tuple) == ("7.20.5", (7, 20, 5))
    assert (request.platform_name, request.alt_platforms) == ("x86_64-pc-linux-gnu", ())
    assert request.run_mode == "auto"
    assert request.host_token is None  # the captured <host_id> is another manager's form


@pytest.mark.parametrize("name", PROJECTS)
def test_the_projects_of_a_captured_request(name: str) -> None:
    request = parse_request(captured(name))
    assert request.projects == PROJECTS[name]


@pytest.mark.parametrize("name", [name for name in TOP_LEVEL if name != "am_request_gpu_work"])
def test_the_hardware_of_the_computer_without_a_gpu(name: str) -> None:
    hardware = parse_request(captured(name)).hardware()
    assert hardware is not None
    assert (hardware.timezone, hardware.ncpus) == (0, 1)
    assert (hardware.p_vendor, hardware.p_model) == ("GenuineIntel", "Test CPU [Family 6 Model 1 Stepping 1]")
    assert hardware.p_features.startswith("fpu vme de pse tsc msr")
    assert hardware.p_features.endswith("flush_l1d arch_capabilities")
    assert (hardware.p_fpops, hardware.p_iops, hardware.p_membw) == (1e9, 1e9, 1e9)
    assert hardware.p_calculated == 1795248365.203461
    assert (hardware.m_nbytes, hardware.m_cache, hardware.m_swap) == (25_276_514_304, 503_316_480, 0)
    assert hardware.d_total == 270_553_174_016
    assert hardware.os_name == "Linux Debian"
    assert hardware.os_version == "Debian GNU/Linux 12 (bookworm) [6.1.0-test|libc 2.36]"
    assert (hardware.product_name, hardware.virtualbox_version) == ("", "")
    assert (hardware.coprocs, hardware.faults) == ((), ())


def test_the_hardware_of_the_computer_with_two_gpus() -> None:
    hardware = parse_request(captured("am_request_gpu_work")).hardware()
    assert hardware is not None
    assert hardware.ncpus == 2
    assert hardware.d_free == 80_783_106_048
    assert hardware.coprocs == (
        Coproc(
            type="testgpu",
            name="",
            count=2,
            peak_flops=1e12,
            ram_bytes=None,
            driver_version="",
            opencl_version="",
        ),
    )


def test_the_digest_is_the_same_for_one_computer_and_another_for_another() -> None:
    digests = {name: parse_request(body).hardware_digest for name, body in captured_requests().items()}
    other = digests.pop("am_request_gpu_work")
    # Free disk space, addresses and time differ in these six; the hardware does not.
    assert len(set(digests.values())) == 1
    assert other not in digests.values()
    assert len(other) == 16


def test_what_changes_at_every_contact() -> None:
    assert parse_request(captured("am_request_after_two_jobs")).contact() == {
        "run_mode": "auto",
        "d_free": 80868081664.0,
        "time_stats": {
            "on_frac": 0.999988,
            "connected_frac": -1.0,
            "cpu_and_network_available_frac": 1.0,
            "active_frac": 1.0,
            "gpu_active_frac": 1.0,
            "client_start_time": 1795248387.69614,
            "total_start_time": 1795248365.439134,
            "total_duration": 410.529269,
            "total_active_duration": 410.529269,
            "total_gpu_active_duration": 410.529269,
            "now": 1795248795.385632,
            "previous_uptime": 20.479415,
            "session_active_duration": 390.502866,
            "session_gpu_active_duration": 390.502866,
        },
        "net_stats": {"bwup": 3065951.010948, "bwdown": 5676499.067179},
    }
