"""The former address of a site that has moved: nginx with the `server` block of docs/how-to/move.md, without TLS."""

from __future__ import annotations

import os
import re
import socket
from pathlib import Path
from typing import Final

from tests.support.guarded_program import GuardedProgram
from tests.support.nginx_deployment import NGINX, main_configuration
from tests.support.site_process import CHECKOUT

HOW_TO: Final = CHECKOUT / "docs" / "how-to" / "move.md"


class FormerAddress(GuardedProgram):
    """nginx at the port that the site had; a context manager. ``url``: where the site is now."""

    poll_secs = 0.1

    def __init__(self, folder: Path, port: int, url: str) -> None:
        folder.mkdir()
        self._port = port
        self.log_of_requests = folder / "moved.log"
        block = re.search(r"(   # What computers still use.*?)   ```", HOW_TO.read_text(), re.DOTALL)
        assert block is not None
        text = re.sub(r" *(listen (80|\[::\]:80|\[::\]:443 ssl)|ssl_certificate(_key)? .*);\n", "", block[1])
        for old, new in {
            "listen 443 ssl;": f"listen 127.0.0.1:{port};",
            "server_name old.example.org;": "server_name 127.0.0.1;",
            "/var/log/nginx/moved.log": str(self.log_of_requests),
            "https://new.example.org$request_uri": f"{url.removesuffix('/')}$request_uri",
        }.items():
            assert text.count(old) == 1, old
            text = text.replace(old, new)
        (folder / "site.conf").write_text(text)
        (folder / "nginx.conf").write_text(main_configuration(folder))
        command = [NGINX, "-p", str(folder), "-e", "stderr", "-c", str(folder / "nginx.conf")]
        super().__init__("the former address", command, folder / "nginx.log", dict(os.environ), folder)

    def answers(self) -> bool:
        try:
            with socket.create_connection(("127.0.0.1", self._port), timeout=5):
                return True
        except OSError:
            return False

    def requests(self) -> list[str]:
        """The paths that were asked for at the former address."""
        return [line.split()[1] for line in self.log_of_requests.read_text().splitlines()]
