"""The shipped nginx configuration in front of a server, for a measurement; skipped if nginx is not installed."""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from django.conf import settings

from portal.dev.parent_death import ends_with_parent
from tools.benchmarks.harness.server import await_port, free_port

PROGRAM: Final = "/usr/sbin/nginx"
_MAIN: Final = """\
{user}daemon off;
worker_processes auto;
pid {folder}/nginx.pid;
events {{ worker_connections 4096; }}
http {{
    client_body_temp_path {folder}/bodies;
    proxy_temp_path {folder}/replies;
    include {folder}/site.conf;
}}
"""


def is_installed() -> bool:
    return os.access(PROGRAM, os.X_OK)


@contextmanager
def before(port: int) -> Iterator[int]:
    """Return the port of an nginx with deploy/nginx.conf, without TLS, that passes all requests to the server on
    ``port``.
    """
    own = free_port()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        user = "user root;\n" if os.geteuid() == 0 else ""
        (folder / "nginx.conf").write_text(_MAIN.format(user=user, folder=folder))
        (folder / "site.conf").write_text(_site(own, port, folder))
        command = [PROGRAM, "-p", name, "-e", f"{folder}/nginx.log", "-c", f"{folder}/nginx.conf"]
        nginx = subprocess.Popen(ends_with_parent(command))
        try:
            await_port(own, nginx)
            yield own
        finally:
            nginx.terminate()
            nginx.wait(10)


def _site(own: int, port: int, folder: Path) -> str:
    text = (settings.BASE_DIR / "deploy" / "nginx.conf").read_text()
    text = re.sub(r"server \{\n    listen 80;.*?\n\}\n", "", text, flags=re.DOTALL)
    text = re.sub(r"    (listen \[::\]|ssl_).*\n", "", text)
    text = re.sub(r"127\.0\.0\.1:800[01]", f"127.0.0.1:{port}", text)
    text = text.replace("listen 443 ssl;", f"listen 127.0.0.1:{own};")
    return text.replace("/var/log/nginx/cobblestone.log", str(folder / "site.log"))
