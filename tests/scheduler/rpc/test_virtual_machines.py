"""Versions for VirtualBox only go to computers that can run them, and other owners are told what is missing."""

from __future__ import annotations

from typing import Any

import pytest

from credit.models import App
from portal.models import User
from scheduler.models import PlanClass
from tests.support.credit_factories import make_app, make_result, make_version, make_workunit
from tests.support.scheduler_clients import Computer, computer_of, messages, names, value

pytestmark = pytest.mark.django_db
WINDOWS, WINDOWS_32 = "windows_x86_64", "windows_intelx86"
# As a client 8.2 on Windows writes it
HOST = (
    "<os_version>Professional x64 Edition, (10.00.19045.00)</os_version>\n"
    "<p_vm_extensions_disabled>{off}</p_vm_extensions_disabled>\n"
    "<wsl>\n<distro>\n<distro_name>Ubuntu</distro_name>\n<os_name>Ubuntu</os_name>\n"
    "<os_version>Ubuntu 24.04</os_version>\n<is_default>1</is_default>\n</distro>\n</wsl>\n"
    "<virtualbox_version>{virtualbox}</virtualbox_version>\n"
)
CLIENT = {"core_client_major_version": 8, "core_client_minor_version": 2, "core_client_release": 4}


@pytest.fixture
def app(db: None) -> App:
    app = make_app()
    for _ in range(3):
        make_result(make_workunit(app, output_files=[], fpops_est=1e9))
    return app


def plan_class(**fields: Any) -> None:
    PlanClass.objects.create(name="vbox64", needs_virtualbox=True, **fields)


def computer(user: User, virtualbox: str = "7.0.12", off: int = 0, features: str = "fpu sse2 svm") -> Computer:
    hardware = HOST.format(off=off, virtualbox=virtualbox) if virtualbox else ""
    made = computer_of(user, platform=WINDOWS, os_name="Microsoft Windows 10", hardware=hardware)
    made.extra = f"<alt_platform>\n<name>{WINDOWS_32}</name>\n</alt_platform>\n"
    made.features = features
    return made


@pytest.mark.parametrize(
    ("fields", "described", "client", "said"),
    [
        ({}, {}, CLIENT, ""),
        ({}, {"virtualbox": ""}, CLIENT, "need VirtualBox, which is not installed"),
        (
            {},
            {"virtualbox": "7.0.12 (unusable - Podman/Docker present)"},
            CLIENT,
            "which BOINC cannot use while Docker or Podman is here",
        ),
        ({}, {"virtualbox": "seven"}, CLIENT, "need another version of VirtualBox"),
        ({"min_virtualbox_version": 70_013}, {}, CLIENT, "need another version of VirtualBox"),
        ({"min_virtualbox_version": 70_012, "max_virtualbox_version": 70_012}, {}, CLIENT, ""),
        ({"max_virtualbox_version": 60_199}, {}, CLIENT, "need another version of VirtualBox"),
        ({"excluded_virtualbox_versions": "60100 70012"}, {}, CLIENT, "need another version of VirtualBox"),
        ({}, {}, {**CLIENT, "core_client_major_version": 6}, "need a newer or older version of BOINC"),
        ({"min_client_version": 80_205}, {}, CLIENT, "need a newer or older version of BOINC"),
        ({"max_client_version": 80_203}, {}, CLIENT, "need a newer or older version of BOINC"),
        ({"needs_vm_acceleration": True}, {}, CLIENT, ""),
        ({"needs_vm_acceleration": True}, {"off": 1}, CLIENT, "VT-x or AMD-V"),
        ({"needs_vm_acceleration": True}, {"features": "fpu sse2"}, CLIENT, "VT-x or AMD-V"),
        ({}, {"off": 1}, CLIENT, ""),
        ({"os_pattern": r"\(10\.00\.1904[0-9]"}, {}, CLIENT, ""),
        # That of the Linux below Windows is another
        ({"os_pattern": "Ubuntu"}, {}, CLIENT, "need other processors or drivers"),
        ({"cpu_vendor_pattern": "^AuthenticAMD$"}, {}, CLIENT, "need other processors or drivers"),
        ({"cpu_model_pattern": "Test.CPU"}, {}, CLIENT, ""),
    ],
)
def test_who_gets_a_version_for_virtualbox(
    app: App, alice: User, fields: dict[str, Any], described: dict[str, Any], client: dict[str, int], said: str
) -> None:
    plan_class(**fields)
    make_version(app, platform=WINDOWS, plan_class="vbox64")
    reply = computer(alice, **described).ask(1, **client)
    assert bool(names(reply, "result")) != bool(said)
    assert [bool(said), True] == [bool(messages(reply)), said in "".join(messages(reply))]


def test_a_version_for_another_than_the_main_platform_is_not_sent(app: App, alice: User) -> None:
    """A program of 32 bits would look for VirtualBox where Windows of 64 bits does not have it."""
    plan_class()
    make_version(app, platform=WINDOWS_32, plan_class="vbox64")
    assert "need other processors" in messages(computer(alice).ask(1, **CLIENT))[0]
    make_version(app, platform=WINDOWS, plan_class="vbox64")
    assert value(computer(alice).ask(1, **CLIENT), "platform") == WINDOWS


@pytest.mark.parametrize(("off", "ncpus"), [(0, "4"), (1, "1")])
def test_a_machine_has_several_processors_only_with_the_processors_help(
    app: App, alice: User, off: int, ncpus: str
) -> None:
    plan_class(max_ncpus=4)
    make_version(app, platform=WINDOWS, plan_class="vbox64")
    assert value(computer(alice, off=off).ask(1, **CLIENT), "avg_ncpus") == ncpus
