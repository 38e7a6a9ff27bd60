"""The real site for one test: its web server as a process of its own, on the test's database.

It is started as production starts it (granian, hashed static files, a signing key in a file); only its
e-mails go to files. Nothing of it outlives the test: it runs under the guard.
"""

import json
import os
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Mapping
from email import message_from_bytes
from email.message import Message
from pathlib import Path
from urllib.parse import urljoin, urlsplit, urlunsplit

from django.conf import settings
from django.db import connection

from portal.wire import signing
from tests.support.guarded_program import GuardedProgram
from tests.support.process_guard import children_of
from tools.benchmarks.harness.server import free_port

DOOR = "/door-for-tests"
CHECKOUT = Path(__file__).resolve().parents[2]
# As in the Procfile.
WEB_SERVER = (
    *(sys.executable, "-m", "granian", "--interface", "asgi", "--runtime-mode", "st", "--loop", "uvloop"),
    *("--http", "1", "--no-ws", "--backlog", "4096", "--backpressure", "8192"),
    *("--respawn-failed-workers", "--workers-kill-timeout", "5"),
    *("--http1-header-read-timeout", "20000", "--http1-buffer-size", "65536"),
)


def database_url() -> str:
    """Return the URL of the test's database: the configured one with the test's name."""
    parts = urlsplit(settings.DATABASE_URL)
    return urlunsplit(parts._replace(path="/" + str(connection.settings_dict["NAME"])))


def environment(var_dir: Path, **more: str) -> dict[str, str]:
    """Return the environment of the site's processes: the test's servers and secrets, files in `var_dir`."""
    return os.environ | {
        "VAR_DIR": str(var_dir),
        "DATABASE_URL": database_url(),
        "BROKER_URL": settings.BROKER_URL,
        "CACHE_URL": str(settings.CACHES["default"]["LOCATION"]),  # of this test process alone
        "SECRET_KEY": settings.SECRET_KEY,
        "ACCOUNT_KEY_SECRET": settings.ACCOUNT_KEY_SECRET,
        "AM_SIGNING_KEY": str(var_dir / "am_signing_private"),
        "AM_SIGNING_KEY_PUBLIC": str(var_dir / "am_signing_public"),
        "EMAIL_URL": f"filemail:///{var_dir / 'mail'}",
        # The checks have tests of their own; here they would take a fifth of each start of a worker.
        "CELERY_SKIP_CHECKS": "1",
        # Compressing takes seconds of each test run.
        "STATICFILES_STORAGE": "whitenoise.storage.ManifestStaticFilesStorage",
        **more,
    }


def prepare(var_dir: Path) -> None:
    """Write a signing key and the static files into `var_dir`, once for all sites of a test run."""
    key = signing.generate_key()
    (var_dir / "am_signing_private").write_text(signing.private_key_text(key))
    (var_dir / "am_signing_public").write_text(signing.public_key_text(key))
    subprocess.run(
        [sys.executable, "manage.py", "collectstatic", "--noinput", "--verbosity=0"],
        cwd=CHECKOUT,
        env=environment(var_dir),
        stdin=subprocess.DEVNULL,
        check=True,
    )


def celery_worker(variables: Mapping[str, str], log_file: Path, *options: str) -> GuardedProgram:
    """A Celery worker in the environment of a site."""
    command = [sys.executable, "-W", "ignore", "-m", "celery", "--quiet", "--app", "portal", "worker", "--pool", "solo"]
    command += ["--without-gossip", "--without-mingle", *options]
    return GuardedProgram("the worker", command, log_file, variables, CHECKOUT)


def celery_beat(variables: Mapping[str, str], log_file: Path) -> GuardedProgram:
    """A beat process, which sends periodic tasks while no other one does."""
    return GuardedProgram("beat", [sys.executable, "manage.py", "beat"], log_file, variables, CHECKOUT)


class Site(GuardedProgram):
    """A running site; use it as a context manager. `var_dir` must have been prepared. `PORT`: a free one by default."""

    application = "portal.asgi:application"

    def __init__(self, var_dir: Path, log_file: Path, **settings_by_name: str) -> None:
        # Processes that answer requests; granian reads them from its environment.
        settings_by_name.setdefault("GRANIAN_WORKERS", "1")
        # Of a test whose clients have been at this port before
        port = int(settings_by_name.pop("PORT", "") or free_port())
        self.url = f"http://127.0.0.1:{port}/"
        self.signing_key = signing.parse_private_key((var_dir / "am_signing_private").read_text())
        self._mail_dir = var_dir / "mail"
        command = [*WEB_SERVER, "--port", str(port), self.application]
        variables = environment(var_dir, SITE_URL=self.url, **settings_by_name)
        super().__init__("the site", command, log_file, variables, CHECKOUT)

    def mails_to(self, address: str) -> list[Message]:
        """Return the e-mails that the site has sent to that address, oldest first."""
        files = sorted(self._mail_dir.glob("*.log"), key=lambda file: file.stat().st_mtime)
        separator = b"\n" + b"-" * 79 + b"\n"  # of Django's file backend
        mails = [
            message_from_bytes(text.lstrip())
            for file in files
            for text in file.read_bytes().split(separator)
            if text.strip()
        ]
        return [mail for mail in mails if address in str(mail["To"])]

    def worker_pids(self) -> list[int]:
        """Return the processes that answer requests: below the guard is granian's own, and below that are these."""
        assert self._process is not None
        return [pid for server in children_of(self._process.pid) for pid in children_of(server)]

    def answers(self) -> bool:
        try:
            with urllib.request.urlopen(self.url, timeout=10) as reply:
                return bool(reply.status == 200)
        except urllib.error.HTTPError as error:
            raise AssertionError(f"the site answers {error.code}\n{self.log()}") from error
        except OSError:
            return False


class SharedSite(Site):
    """A site that many tests use one after the other: each says which settings are its own (`tests.support.door`)."""

    application = "tests.support.door:application"

    def __init__(self, var_dir: Path, log_file: Path, **settings_by_name: str) -> None:
        super().__init__(var_dir, log_file, **settings_by_name)
        self._started_with = dict(self.environment)

    def change(self, **settings_by_name: str) -> None:
        """Let it have these settings besides those that it was started with, and forget what it has read."""
        self.environment = {**self._started_with, **settings_by_name}
        request = urllib.request.Request(urljoin(self.url, DOOR), json.dumps(settings_by_name).encode())
        with urllib.request.urlopen(request, timeout=30) as reply:
            assert reply.status == 204
