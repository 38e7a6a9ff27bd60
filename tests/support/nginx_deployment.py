"""The site as production runs it, for tests: its two web services behind Debian's nginx, by the files in deploy/.

Only addresses, folders and times differ from those files, and TLS is left out. Nothing outlives the test: all of it
runs under the guard.
"""

from __future__ import annotations

import os
import re
import sys
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, Self

from tests.support.guarded_program import GuardedProgram
from tests.support.site_process import CHECKOUT, environment
from tools.benchmarks.harness.server import free_port

NGINX: Final = "/usr/sbin/nginx"
DEPLOY: Final = CHECKOUT / "deploy"
INSTALLATION: Final = CHECKOUT / "docs" / "how-to" / "deploy.md"
ADDRESS_HEADER: Final = "X-Test-Address"
"""A client that sends it counts as one at that address, such as an IPv6 address that this machine does not have."""
# What Debian's nginx.conf and docs/how-to/deploy.md have, for one process that writes below the test's folder.
_MAIN: Final = """\
{user}daemon off;
worker_processes 1;
{limits}pid {folder}/nginx.pid;
error_log {folder}/nginx.log info;
http {{
    access_log off;
    client_body_temp_path {folder}/bodies;
    proxy_temp_path {folder}/replies;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
    set_real_ip_from 127.0.0.1;
    real_ip_header {address_header};
    include {folder}/site.conf;
}}
"""


def main_configuration(folder: Path) -> str:
    """nginx's main file for a process that writes below ``folder`` and includes the site's file there."""
    user = "user root;\n" if os.geteuid() == 0 else ""  # else others may not read the test's folder
    limits = re.search(r"```\n(worker_rlimit_nofile .*?)```", INSTALLATION.read_text(), re.S)
    assert limits is not None
    return _MAIN.format(user=user, limits=limits[1], folder=folder, address_header=ADDRESS_HEADER)


class Program(GuardedProgram):
    """A program that serves on a loopback port of its own."""

    poll_secs = 0.1

    def __init__(
        self, command: list[str], url: str, log_file: Path, environment: Mapping[str, str], checkout: Path = CHECKOUT
    ) -> None:
        super().__init__(url, command, log_file, environment, checkout)
        self.url = url

    def answers(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self.url}healthz", timeout=10) as reply:
                return bool(reply.status == 200)
        except OSError:
            return False


class Deployment:
    """nginx, Django's pages and the clients' event loop; a context manager. ``var_dir`` must have been prepared.

    ``times``: what of nginx.conf is to be replaced by what, for tests that wait for its deadlines; other named values
    are settings of both services.
    """

    def __init__(self, var_dir: Path, folder: Path, times: Mapping[str, str] | None = None, **settings: str) -> None:
        ports = {name: free_port() for name in ("nginx", "cobblestone-web", "cobblestone-clients")}
        self.url = f"http://127.0.0.1:{ports['nginx']}/"
        self.address = ("127.0.0.1", ports["nginx"])
        self.files_dir = Path(settings.get("FILES_DIR", folder / "files"))
        defaults = {
            "SITE_URL": self.url,
            "BEHIND_PROXY": "1",
            "DOWNLOAD_ACCEL_PREFIX": "/stored/",
            "FILES_DIR": str(self.files_dir),
            "UPLOADS_DIR": str(folder / "uploads"),
            "GRANIAN_WORKERS": "1",
            "GRANIAN_BLOCKING_THREADS": "8",
        }
        variables = environment(var_dir, **(defaults | settings))
        self.web, self.clients = (
            Program(unit_command(name, port), f"http://127.0.0.1:{port}/", folder / f"{name}.log", variables)
            for name, port in ports.items()
            if name != "nginx"
        )
        write_configuration(
            folder,
            ports["nginx"],
            [ports["cobblestone-web"]],
            [ports["cobblestone-clients"]],
            {
                "/var/lib/cobblestone/files/": f"{self.files_dir}/",
                **(times or {}),
            },
        )
        nginx = [NGINX, "-p", str(folder), "-e", "stderr", "-c", str(folder / "nginx.conf")]
        self.nginx = Program(nginx, self.url, folder / "nginx.log", os.environ)

    def __enter__(self) -> Self:
        started: list[Program] = []
        try:
            for program in (self.web, self.clients, self.nginx):
                program.start()
                started.append(program)
        except BaseException:
            for program in reversed(started):
                program.stop()
            raise
        return self

    def __exit__(self, *_raised: object) -> None:
        for program in (self.nginx, self.clients, self.web):
            program.stop()


def write_configuration(
    folder: Path, port: int, web_ports: Sequence[int], client_ports: Sequence[int], replaced: Mapping[str, str]
) -> None:
    """nginx's files for services on these ports; ``replaced``: what else of deploy/nginx.conf becomes what."""
    (folder / "nginx.conf").write_text(main_configuration(folder))
    text = (DEPLOY / "nginx.conf").read_text()
    text = re.sub(r"server \{\n    listen 80;.*?\n\}\n", "", text, flags=re.DOTALL)
    text = re.sub(r"    (listen \[::\]|ssl_).*\n", "", text)
    for old, new in {
        "listen 443 ssl;": f"listen 127.0.0.1:{port};",
        "server_name portal.example.org;": "server_name 127.0.0.1;",
        "server 127.0.0.1:8000;": " ".join(f"server 127.0.0.1:{web_port};" for web_port in web_ports),
        "server 127.0.0.1:8001;": " ".join(f"server 127.0.0.1:{client_port};" for client_port in client_ports),
        "/var/log/nginx/cobblestone.log": str(folder / "nginx.log"),
        **replaced,
    }.items():
        assert old in text, old
        text = text.replace(old, new)
    (folder / "site.conf").write_text(text)


def unit_command(unit: str, port: int) -> list[str]:
    """How the unit of a checkout starts its server, with this Python and on this port."""
    text = (CHECKOUT / "deploy" / f"{unit}.service").read_text()
    match = re.search(r"^ExecStart=\S+/granian (.*)$", text, re.M)
    assert match
    options = re.sub(r"--port \d+", f"--port {port}", match[1])
    return [sys.executable, "-m", "granian", *options.split()]
