"""The site runs in containers as deploy/containers has them, on one machine and on three."""

from __future__ import annotations

import shutil
import time
from functools import partial
from pathlib import Path
from urllib.parse import urlencode

import pytest

from portal.wire.credentials import client_password_hash
from tests.support.containers import PROGRAMS, Builder, Machine, Podman, machines, need_all, write_settings
from tests.support.wait import wait_until
from tools.simulation.client import SimulatedComputer

pytestmark = [pytest.mark.nightly, pytest.mark.system]
EMAIL, PASSWORD = "dora@example.org", "seven green boats"
PROJECT = "https://project.example.org/"
SITE_SERVICES = ("web", "clients", "worker", "requested", "beat")
START_SECS = 180.0
WORK_SECS = 3


@pytest.fixture(scope="module")
def podman() -> Podman:
    need_all(*PROGRAMS)
    found = Podman()
    found.build()
    return found


def is_ready(machine: Machine, address: str = "127.0.0.1") -> bool:
    return b'"ready": true' in machine.ask("/readyz", address=address)


def open_account(machine: Machine) -> SimulatedComputer:
    """A volunteer, who attaches a computer to the site's one project."""
    add = (
        "from accounting.models import Project; from accounting.rpc.account_keys import seal_shared; "
        f"project = Project.objects.create(name='Project', master_url='{PROJECT}'); "
        "project.shared_account_key = seal_shared(project, '1_key'); project.save()"
    )
    machine.manage("shell", "-c", add)
    asked = {"email_addr": EMAIL, "passwd_hash": client_password_hash(PASSWORD, EMAIL), "user_name": "Dora"}
    assert b"<authenticator>" in machine.ask(f"/create_account.php?{urlencode(asked)}")
    computer = SimulatedComputer("studio", "a" * 32, EMAIL, PASSWORD)

    def is_attached() -> bool:
        # The list of projects is kept for some seconds.
        computer.apply_reply(machine.ask("/rpc.php", computer.request(time.time())))
        return PROJECT in computer.projects

    wait_until(is_attached, "a project", 60, 2)
    report(machine, computer)
    return computer


def report(machine: Machine, computer: SimulatedComputer) -> None:
    computer.apply_reply(machine.ask("/rpc.php", computer.request(time.time())))


def work(machine: Machine, computer: SimulatedComputer) -> None:
    """Some seconds of one processor, which pass, as nobody can have computed more."""
    time.sleep(WORK_SECS)
    computer.projects[PROJECT].work(computer, WORK_SECS, 0)
    report(machine, computer)


def credited_secs(machine: Machine, *connection: str) -> float:
    total = "SELECT coalesce(sum(cpu_time), 0) / 1000000 FROM accounting_day"
    return float(machine.execute("database", "psql", *connection, "-Atc", total, "cobblestone", user="cobblestone"))


@pytest.mark.parametrize("target", ["site", "database", "valkey"])
def test_two_builds_of_an_image_are_the_same_bytes(target: str) -> None:
    program = "podman" if shutil.which("podman") else "buildah"
    need_all(program, "mmdebstrap")
    builder = Builder(program)
    first, second = (builder.rebuild(target, tag) for tag in ("first", "second"))
    assert first.startswith("sha256:") and first == second


def test_one_machine(podman: Podman, tmp_path: Path) -> None:
    write_settings(tmp_path, AM_SIGNING_KEY="/etc/cobblestone/am_signing_private",
                   AM_SIGNING_KEY_PUBLIC="/etc/cobblestone/am_signing_public")  # fmt: skip
    with machines(podman, "compose.one.yaml", [(tmp_path, ())]) as (machine,):
        machine.compose("up", "-d", "--no-build", "database", "valkey")
        wait_until(lambda: machine.is_healthy("database"), "PostgreSQL", START_SECS)
        machine.manage("migrate", "--verbosity", "0")
        machine.manage("prepare")
        machine.compose("up", "-d", "--no-build")
        wait_until(lambda: is_ready(machine), "the site", START_SECS)
        for service in ("database", "valkey", "web", "clients", "nginx"):
            wait_until(partial(machine.is_healthy, service), service, 60)
        assert b"<html" in machine.ask("/account/login/")

        computer = open_account(machine)
        work(machine, computer)
        assert credited_secs(machine) == WORK_SECS
        machine.podman("kill", *(machine.container(service) for service in ("clients", "database", "web")))
        machine.compose("up", "-d", "--no-build")
        wait_until(lambda: is_ready(machine), "the site after a restart", START_SECS)
        wait_until(lambda: b"<project_config>" in machine.ask("/get_project_config.php"), "clients' service", 60)
        # What was credited is not credited again, and what comes next is.
        report(machine, computer)
        assert credited_secs(machine) == WORK_SECS
        work(machine, computer)
        assert credited_secs(machine) == 2 * WORK_SECS
        machine.manage("check_ledger")
        assert_few_rights(machine)


def assert_few_rights(machine: Machine) -> None:
    for service in SITE_SERVICES:
        assert machine.execute(service, "id", "-un").strip() == "cobblestone"
    assert machine.execute("database", "id", "-un").strip() == "postgres"
    assert machine.execute("valkey", "id", "-un").strip() == "valkey"
    for service in (*SITE_SERVICES, "database", "valkey", "nginx"):
        status = machine.execute(service, "cat", "/proc/1/status")
        assert "NoNewPrivs:\t1" in status
        if service != "nginx":
            assert "CapEff:\t0000000000000000" in status
        with pytest.raises(AssertionError, match="Read-only file system"):
            machine.execute(service, "touch", "/srv/file", user="root")
    # nginx sends files, and does not see keys.
    machine.execute("nginx", "ls", "/var/lib/cobblestone/files", user="www-data")
    with pytest.raises(AssertionError, match="Permission denied"):
        machine.execute("nginx", "ls", "/var/lib/cobblestone/keys", user="www-data")


ADDRESSES = [f"10.0.0.{number}" for number in (11, 12, 13)]
SITE_PASSWORD = "site-secret"


def test_three_machines_of_which_one_is_lost(podman: Podman, tmp_path: Path) -> None:
    database_url = f"postgresql://cobblestone:{SITE_PASSWORD}@127.0.0.1:5432/cobblestone"
    write_settings(
        tmp_path,
        AM_SIGNING_KEY="/etc/cobblestone/am_signing_private",
        AM_SIGNING_KEY_PUBLIC="/etc/cobblestone/am_signing_public",
        DATABASE_URL=database_url,
        # Files would be in object storage.
        ROOMS="account_manager",
        DOWNLOAD_ACCEL_PREFIX="",
        SEVERAL_MACHINES="1",
        GRANIAN_WORKERS="1",
        VALKEY_HOST=ADDRESSES[0],
    )
    example = (Path(__file__).parents[2] / "deploy" / "containers" / "node.env").read_text()
    nodes = []
    for number, address in enumerate(ADDRESSES):
        node = tmp_path / f"node{number + 1}.env"
        text = example.replace("NODE_NAME=node1", f"NODE_NAME=node{number + 1}")
        node.write_text(text.replace("NODE_ADDRESS=10.0.0.11", f"NODE_ADDRESS={address}"))
        profile = ("--profile", "valkey") if number == 0 else ()
        nodes.append((tmp_path, ("--env-file", str(node), *profile)))
    with machines(podman, "compose.three.yaml", nodes) as (first, second, third):
        for machine in (first, second, third):
            machine.compose("up", "-d", "--no-build", "etcd")
        for machine in (first, second, third):
            machine.compose("up", "-d", "--no-build", "database", "haproxy")
        leader = wait_until(lambda: leader_of(first, second, third), "a leader", START_SECS, 1)
        assert leader is not None
        for statement in (
            f"CREATE ROLE cobblestone LOGIN PASSWORD '{SITE_PASSWORD}'",
            "CREATE DATABASE cobblestone OWNER cobblestone",
        ):
            leader.execute("database", "psql", "-h", "/run/postgresql", "-c", statement, user="postgres")
        first.compose("up", "-d", "--no-build", "valkey")
        first.manage("migrate", "--verbosity", "0")
        first.manage("prepare")
        for machine in (first, second, third):
            machine.compose("up", "-d", "--no-build")
        for machine in (first, second, third):
            wait_until(partial(is_ready, machine), "the site", START_SECS)
        wait_until(lambda: "Sync Standby" in patronictl(leader), "a synchronous standby", START_SECS, 1)
        computer = open_account(second)
        work(second, computer)

        survivors = [machine for machine in (first, second, third) if machine is not leader]
        kill(leader)
        wait_until(lambda: leader_of(*survivors), "another leader", START_SECS, 1)

        def is_answered() -> bool:
            try:
                report(survivors[0], computer)
            except ValueError:
                return False
            return True

        wait_until(is_answered, "an answer", START_SECS, 1)
        work(survivors[1], computer)
        total = "SELECT sum(cpu_time) / 1000000 FROM accounting_day"
        (counted,) = survivors[0].execute("database", "psql", "-Atc", total, database_url).split()
        assert float(counted) == 2 * WORK_SECS


def leader_of(*nodes: Machine) -> Machine | None:
    """The machine whose PostgreSQL takes writes."""
    for machine in nodes:
        asked = ("psql", "-h", "/run/postgresql", "-Atc", "SELECT pg_is_in_recovery()")
        try:
            if machine.execute("database", *asked, user="postgres").strip() == "f":
                return machine
        except AssertionError:
            continue
    return None


def patronictl(machine: Machine) -> str:
    return machine.execute("database", "patronictl", "-c", "/etc/patroni/config.yml", "list")


def kill(machine: Machine) -> None:
    """All containers of the machine at once, as when its power fails."""
    names = machine.podman("ps", "--format", "{{.Names}}", "--filter", f"name={machine.project}_").split()
    assert len(names) >= 8
    machine.podman("kill", *names)
