"""The site in containers, by the files in deploy/containers: machines are network namespaces of this one.

Images are built on Debian's packages, by mmdebstrap and podman, and kept with their layers below CONTAINERS_DIR
(var/containers), so only the first run takes minutes. Without systemd nobody runs health checks: tests do.
"""

from __future__ import annotations

import base64
import os
import re
import secrets
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

from portal.wire import signing
from tests.support.needs import go_without, need
from tests.support.site_process import CHECKOUT

FILES: Final = CHECKOUT / "deploy" / "containers"
HOST: Final = "portal.example.org"
BASE: Final = "localhost/cobblestone/base"
PROGRAMS: Final = ("podman", "podman-compose", "runc", "mmdebstrap", "ip", "nsenter", "curl", "openssl")
TARGETS: Final = re.findall(
    r"^FROM \w+ AS (site|nginx|database|valkey|patroni|etcd|haproxy)$", (FILES / "Containerfile").read_text(), re.M
)
VALKEY_PASSWORD: Final = "a password of Valkey"
BUILD_SECS: Final = 1800.0
# The numbers that the images give to users.
SITE, POSTGRES, VALKEY = 10001, 10002, 10003
# Not all machines let podman raise limits, or have crun's kind of control groups.
_PODMAN: Final = '[containers]\ndefault_ulimits = []\n[engine]\nruntime = "runc"\n'


def need_all(*programs: str) -> None:
    """Go without, unless these programs are there, and this is root."""
    if os.geteuid() != 0:
        go_without("containers are built and run by root")
    need(*programs)


class Builder:
    """A store of its own, and the program that builds images into it: podman, or buildah, which podman has inside."""

    def __init__(self, program: str) -> None:
        self._folder = Path(os.environ.get("CONTAINERS_DIR") or CHECKOUT / "var" / "containers")
        self._folder.mkdir(parents=True, exist_ok=True)
        (self._folder / "containers.conf").write_text(_PODMAN)
        self.program = self._folder / program
        store = f"--root '{self._folder}/root' --runroot '{self._folder}/run'"
        self.program.write_text(f'#!/bin/sh\nexec {program} {store} "$@"\n')
        self.program.chmod(0o755)
        self.environment = os.environ | {
            "CONTAINERS_CONF": str(self._folder / "containers.conf"),
            "DISABLE_HC_SYSTEMD": "true",
            "PODMAN_COMPOSE_WARNING_LOGS": "false",
        }

    def run(self, *arguments: str | Path) -> str:
        return _run([self.program, *arguments], self.environment, BUILD_SECS)

    def rebuild(self, target: str, tag: str) -> str:
        """The digest of an image of which nothing was kept of a build before, with all files of one time."""
        self._make_base()
        options = ["--no-cache", "--timestamp", "0", "--build-arg", "SOURCE_DATE_EPOCH=0"]
        name = f"localhost/cobblestone-again/{target}:{tag}"
        self._build(target, name, *options)
        # Two names of one image are two lines.
        return self.run("images", "--format", "{{.Digest}}", name).split()[0]

    def _make_base(self) -> None:
        if BASE not in self.run("images"):
            folder = self._folder / "base"
            folder.mkdir(exist_ok=True)
            _run(["mmdebstrap", "--variant=minbase", "trixie", folder / "base.tar"], self.environment, BUILD_SECS)
            (folder / "Containerfile").write_text("FROM scratch\nADD base.tar /\n")
            self.run("build", "--tag", BASE, "--file", folder / "Containerfile", folder)
            shutil.rmtree(folder)

    def _build(self, target: str, tag: str, *more: str) -> None:
        options = ["--isolation", "chroot", "--network", "host", "--build-arg", f"BASE={BASE}"]
        if certificates := os.environ.get("PIP_CERT"):
            options += ["--volume", f"{certificates}:/run/pip_cert.pem:ro", "--build-arg", "PIP_CERT=/run/pip_cert.pem"]
        if index := os.environ.get("PIP_INDEX_URL"):
            options += ["--build-arg", f"PIP_INDEX_URL={index}"]
        names = ["--target", target, "--tag", tag]
        self.run("build", *options, *more, *names, "--file", FILES / "Containerfile", CHECKOUT)


class Podman(Builder):
    """podman, which also runs the images."""

    def __init__(self) -> None:
        super().__init__("podman")

    def build(self) -> None:
        """All images. Packages come from where this machine's pip has them."""
        self._make_base()
        for target in TARGETS:
            self._build(target, f"localhost/cobblestone/{target}")


class Machine:
    """A network namespace, and the containers of a compose file in it."""

    def __init__(self, podman: Podman, namespace: str, compose_file: str, folder: Path, *options: str) -> None:
        self._podman = podman
        self._enter = ["nsenter", f"--net=/run/netns/{namespace}"]
        self.project = namespace
        self._compose = [*self._enter, "podman-compose", "--podman-path", str(podman.program), "-p", namespace]
        self._compose += ["-f", str(FILES / compose_file), *options]
        self._environment = podman.environment | {
            "COBBLESTONE_ETC": str(folder / "etc"),
            "COBBLESTONE_TLS": str(folder / "tls"),
            "COBBLESTONE_MEMORY": "1g",
        }

    def compose(self, *arguments: str) -> str:
        return _run([*self._compose, *arguments], self._environment, 300)

    def manage(self, *arguments: str) -> str:
        return self.compose("run", "-T", "--rm", "web", "manage", *arguments)

    def podman(self, *arguments: str) -> str:
        return _run([*self._enter, self._podman.program, *arguments], self._environment, 120)

    def execute(self, service: str, *command: str, user: str = "") -> str:
        options = ["--user", user] if user else []
        return self.podman("exec", *options, self.container(service), *command)

    def container(self, service: str) -> str:
        return f"{self.project}_{service}_1"

    def ask(self, path: str, body: bytes | None = None, address: str = "127.0.0.1") -> bytes:
        """What nginx answers over TLS; empty if it cannot be reached."""
        command = [*self._enter, "curl", "-sk", "--max-time", "20", "--resolve", f"{HOST}:443:{address}"]
        command += [f"https://{HOST}{path}"]
        command += [] if body is None else ["--data-binary", "@-"]
        return subprocess.run(command, input=body, stdout=subprocess.PIPE, check=False).stdout

    def is_healthy(self, service: str) -> bool:
        """Whether the health check of the compose file passes."""
        command = [*self._enter, str(self._podman.program), "healthcheck", "run", self.container(service)]
        return subprocess.run(command, env=self._environment, capture_output=True, check=False).returncode == 0

    def logs(self) -> str:
        names = self.podman("ps", "-a", "--format", "{{.Names}}", "--filter", f"name={self.project}_").split()
        done = [
            subprocess.run([self._podman.program, "logs", "--tail", "15", name], env=self._environment,
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False).stdout
            for name in names
        ]  # fmt: skip
        return "\n".join(f"== {name}\n{text}" for name, text in zip(names, done, strict=True))


@contextmanager
def machines(
    podman: Podman, compose_file: str, folders: Sequence[tuple[Path, Sequence[str]]]
) -> Iterator[list[Machine]]:
    """Machines 10.0.0.11, 10.0.0.12 … on a switch of their own; at the end all that they have is thrown away."""
    tag = f"cb{os.getpid()}"
    with ExitStack() as stack:
        for name in [f"{tag}sw", *(f"{tag}n{number}" for number in range(len(folders)))]:
            _run(["ip", "netns", "add", name])
            stack.callback(_run, ["ip", "netns", "delete", name])
            _run(["ip", "-n", name, "link", "set", "lo", "up"])
        _run(["ip", "-n", f"{tag}sw", "link", "add", "switch", "type", "bridge"])
        _run(["ip", "-n", f"{tag}sw", "link", "set", "switch", "up"])
        found = []
        for number, (folder, options) in enumerate(folders):
            own = f"{tag}n{number}"
            peer = ["peer", "name", f"port{number}", "netns", f"{tag}sw"]
            _run(["ip", "-n", own, "link", "add", "eth0", "type", "veth", *peer])
            _run(["ip", "-n", own, "address", "add", f"10.0.0.{11 + number}/24", "dev", "eth0"])
            _run(["ip", "-n", own, "link", "set", "eth0", "up"])
            _run(["ip", "-n", f"{tag}sw", "link", "set", f"port{number}", "master", "switch", "up"])
            machine = Machine(podman, own, compose_file, folder, *options)
            found.append(machine)
            stack.callback(machine.compose, "down", "--volumes", "--timeout", "5")
        try:
            yield found
        finally:
            for machine, (folder, _options) in zip(found, folders, strict=True):
                # The report of a test that fails shows them.
                (folder / f"{machine.project}.log").write_text(machine.logs())


def write_settings(folder: Path, **changed: str) -> None:
    """/etc/cobblestone and a certificate below the folder, as docs/how-to/containers.md says."""
    etc = folder / "etc"
    tls = folder / "tls" / "live" / HOST
    etc.mkdir(parents=True)
    tls.mkdir(parents=True)
    lines = [line for line in (CHECKOUT / "deploy" / "cobblestone.env").read_text().splitlines()]
    kept = [line for line in lines if line.partition("=")[0] not in changed]
    (etc / "env").write_text("\n".join([*kept, *(f"{name}={value}" for name, value in changed.items() if value), ""]))
    for name in ("secret_key", "account_key_secret", "upload_secret", "certificate_secret", "metrics_token"):
        (etc / name).write_text(secrets.token_urlsafe(48))
    (etc / "vapid_private_key").write_text(base64.urlsafe_b64encode(secrets.token_bytes(32)).decode())
    (etc / "email_url").write_text("smtp://127.0.0.1:25")
    for number, name in enumerate(("broker_url", "cache_url")):
        password = VALKEY_PASSWORD.replace(" ", "%20")
        (etc / name).write_text(f"redis://:{password}@{changed.get('VALKEY_HOST', '127.0.0.1')}:6379/{number}")
    bind = "127.0.0.1 " + changed.get("VALKEY_HOST", "")
    (etc / "valkey.conf").write_text(f'bind {bind.strip()}\nrequirepass "{VALKEY_PASSWORD}"\n')
    key = signing.generate_key()
    (etc / "am_signing_private").write_text(signing.private_key_text(key))
    (etc / "am_signing_public").write_text(signing.public_key_text(key))
    for name in ("patroni.yml", "haproxy.cfg"):
        shutil.copy(CHECKOUT / "deploy" / name, etc)
    owners = {"valkey.conf": VALKEY, "patroni.yml": POSTGRES}
    for path in [etc, *etc.iterdir()]:
        os.chown(path, 0, owners.get(path.name, SITE))
        path.chmod(0o750 if path == etc else 0o644 if path.name == "haproxy.cfg" else 0o640)
    files = ("-keyout", tls / "privkey.pem", "-out", tls / "fullchain.pem")
    _run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", f"/CN={HOST}", *files])


def _run(command: Sequence[str | Path], environment: dict[str, str] | None = None, secs: float = 60) -> str:
    done = subprocess.run(
        command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=secs, check=False
    )
    assert done.returncode == 0, f"{command}\n{done.stdout[-3000:]}\n{done.stderr[-3000:]}"
    return done.stdout
