"""The systemd units: every service runs with as few rights as it needs, and within limits."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from django.conf import settings

from tests.support.needs import need

DEPLOY = Path(__file__).resolve().parents[3] / "deploy"
UNITS = sorted(DEPLOY.glob("*.service"))
# Units of the machine with the backups; the site's own user may not reach these.
BACKUP_UNITS = {"cobblestone-backup-check", "cobblestone-basebackup", "cobblestone-receivewal"}
NEEDED = {
    "NoNewPrivileges": "yes",
    "CapabilityBoundingSet": "",
    "SystemCallArchitectures": "native",
    "SystemCallErrorNumber": "EPERM",
    "RestrictNamespaces": "yes",
    "ProtectProc": "invisible",
    "ProtectSystem": "strict",
    "PrivateDevices": "yes",
}
NEEDED_BY_SITE = {
    "User": "cobblestone",
    # Of 32 processes, as on a machine with 64 processors, each may have 64 threads; one for clients has about 20.
    "TasksMax": "2048",
    "Environment": "OPENBLAS_NUM_THREADS=1",
}
NEEDED_BY_BACKUPS = {"User": "cobblestone-backup", "TasksMax": "64", "ReadWritePaths": "/var/backups/cobblestone"}


def lines(unit: Path) -> list[tuple[str, str]]:
    return re.findall(r"^(\w+)=(.*)$", unit.read_text(), re.M)


@pytest.mark.parametrize("unit", UNITS, ids=lambda path: path.stem)
def test_a_service_has_few_rights_and_limits(unit: Path) -> None:
    found = dict(lines(unit))
    needed = NEEDED | (NEEDED_BY_BACKUPS if unit.stem in BACKUP_UNITS else NEEDED_BY_SITE)
    assert {name: found.get(name) for name in needed} == needed
    assert [value for name, value in lines(unit) if name == "SystemCallFilter"] == ["@system-service", "~@privileged"]
    assert re.fullmatch(r"\d+[%MG]", found["MemoryMax"])


@pytest.mark.system
@pytest.mark.nightly
@pytest.mark.parametrize("unit", [*UNITS, *sorted(DEPLOY.glob("*.timer"))], ids=lambda path: path.name)
def test_systemd_understands_every_line(unit: Path) -> None:
    need("systemd-analyze")
    command = ["systemd-analyze", "verify", "--man=no", "--recursive-errors=no", str(unit)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    # The site is not installed here.
    missing = re.compile(
        r"\S+: Command /srv/cobblestone/(\.venv/bin/\w+|deploy/cobblestone-backup) is not executable:"
        r" No such file or directory"
    )
    assert [line for line in done.stderr.splitlines() if not missing.fullmatch(line)] == []


@pytest.mark.system
@pytest.mark.nightly
@pytest.mark.parametrize("unit", UNITS, ids=lambda path: path.stem)
def test_systemd_finds_little_to_complain_about(unit: Path) -> None:
    need("systemd-analyze")
    # From 0 to 100; without these lines they have 60 and more.
    command = ["systemd-analyze", "security", "--offline=true", "--threshold=20", str(unit)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("section", ["## Upgrades", "### Restore"])
def test_all_services_are_stopped_and_started(section: str) -> None:
    text = (DEPLOY.parent / "docs" / "how-to" / "deploy.md").read_text()
    match = re.search(rf"^{section}$.*?^```$(.*?)^```$", text, re.M | re.S)
    assert match
    services = {unit.stem for unit in UNITS if "[Install]" in unit.read_text()} - BACKUP_UNITS
    assert "cobblestone-requested" in services
    for verb in ("stop", "start|enable --now"):
        command = re.search(rf"^systemctl (?:{verb}) (.*)$", match[1], re.M)
        assert command and services <= set(command[1].split()), verb


def test_a_new_unit_is_known_before_services_are_stopped_and_enabled() -> None:
    text = (DEPLOY.parent / "docs" / "how-to" / "deploy.md").read_text()
    upgrades = text.partition("\n## Upgrades\n")[2]
    commands = [
        "git pull",
        "cp deploy/*.service",
        "systemctl daemon-reload",
        "systemctl stop",
        "systemctl enable --now",
    ]
    places = [upgrades.index(f"\n{command}") for command in commands]
    assert places == sorted(places)
    assert 0 <= upgrades.index("`APP_FUNCTIONS`") < places[0]


def test_a_queue_that_tasks_are_sent_to_has_a_service() -> None:
    commands = [dict(lines(unit))["ExecStart"] for unit in UNITS]
    queues = {route["queue"] for route in settings.CELERY_TASK_ROUTES.values()}
    assert queues == {"requested"}
    for queue in queues:
        assert any(f" worker --queues {queue} " in command for command in commands)
