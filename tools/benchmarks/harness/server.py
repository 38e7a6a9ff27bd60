"""The site's processes, for a measurement: the web server as in `make run`, and commands."""

from __future__ import annotations

import os
import secrets
import shlex
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from django.conf import settings

from portal.dev.parent_death import ends_with_parent

# Browsers refuse some ports below it.
LOWEST_PORT: Final = 11_000
# getrusage() would include the process that started it, too.
_PROGRAM: Final = """
from pathlib import Path
from django.core.management import execute_from_command_line
execute_from_command_line(["manage.py", "{command}"])
print(Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0])
"""


def site_environment() -> dict[str, str]:
    """Return the environment of a process that works on this site's database, cache and broker."""
    return os.environ | {name: getattr(settings, name) for name in ("DATABASE_URL", "CACHE_URL", "BROKER_URL")}


def most_memory_kb(command: str, **environment: str) -> int:
    """Run a command of manage.py; return its peak memory."""
    run = subprocess.run(
        [sys.executable, "-c", _PROGRAM.format(command=command)],
        env=os.environ | {"DJANGO_SETTINGS_MODULE": "portal.settings"} | environment,
        check=True,
        capture_output=True,
        text=True,
    )
    return int(run.stdout.split()[-1])


@contextmanager
def server() -> Iterator[int]:
    """Run the site as `make run` serves it, on a free loopback port and on this database."""
    port = free_port()
    # The measured computers ask for jobs again as soon as they have an answer.
    environment = site_environment() | {"PORT": str(port), "MIN_SENDWORK_INTERVAL_SECS": "0"}
    command = [word.replace("$PORT", str(port)) for word in shlex.split(_web_command())]
    with (settings.VAR_DIR / "bench-web.log").open("wb") as log:
        web = subprocess.Popen(
            ends_with_parent([sys.executable, *command[1:]]), stdout=log, stderr=log, env=environment
        )
    try:
        await_port(port, web)
        yield port
    finally:
        web.terminate()
        web.wait(10)


def _web_command() -> str:
    lines = (settings.BASE_DIR / "Procfile").read_text().splitlines()
    return next(line.removeprefix("web:").strip() for line in lines if line.startswith("web:"))


def free_port() -> int:
    """Return a free loopback port for a server that is started next.

    It is not among those that the system gives to outgoing connections: one of these might take it before the server
    does.
    """
    outgoing = int(Path("/proc/sys/net/ipv4/ip_local_port_range").read_text().split()[0])
    end = outgoing if outgoing > 2 * LOWEST_PORT else 65_536
    while True:
        port = LOWEST_PORT + secrets.randbelow(end - LOWEST_PORT)
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
        return port


def await_port(port: int, server: subprocess.Popen[bytes]) -> None:
    """Wait until the server accepts connections; RuntimeError if it does not."""
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline and server.poll() is None:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except OSError:
            time.sleep(0.1)
    raise RuntimeError("the web server did not start")
