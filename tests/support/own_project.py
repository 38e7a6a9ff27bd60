"""The site's own project as its operator and its volunteers use it: commands, jobs, real clients that ask for work."""

from __future__ import annotations

import io
import json
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

from django.core.management import call_command
from django.test import override_settings

from tests.support.boinc_client import BoincClient
from tests.support.site_process import Site
from tests.support.wait import wait_until

PASSWORDS = {"alice@example.org": "alice's secret", "bob@example.org": "bob's secret"}
JOB_SECS = 240
# The site lets a computer ask again after a second.
POKE_SECS = 1.0
LOG_NCHARS = 6_000
# Two seconds of a processor, at the benchmark of 1 GFLOPS that clients have before they measure.
SHORT: dict[str, Any] = {
    "fpops_est": 2e9,
    "fpops_bound": 2e13,
    "output_files": [{"open_name": "out", "max_nbytes": 100_000}],
}
QUICK = {
    "SCHEDULER_REQUEST_DELAY_SECS": "1",
    "VALIDATOR_EVERY_SECS": "2",
    "TRANSITIONER_EVERY_SECS": "2",
    "AM_REPEAT_SECS_AFTER_ATTACH": "30",
}


class Manage:
    """The site's own commands, as its operator types them; with other settings, as on another machine.

    They run in the test's process, with the site's addresses, files and keys: starting another would take most of the
    time of these tests.
    """

    def __init__(self, site: Site, **settings: str) -> None:
        self._site = site
        self._environment = {**site.environment, **settings}

    def __call__(self, *arguments: str) -> str:
        said = io.StringIO()
        with override_settings(**_settings(self._environment)):
            call_command(*arguments, stdout=said)
        return said.getvalue()

    def code_key(self) -> str:
        """The code-signing key in force."""
        return Path(self._site.environment["CODE_SIGNING_KEY_PUBLIC"]).read_text().strip()

    def submit(self, app: str, jobs: list[dict[str, Any]], **defaults: Any) -> None:
        with NamedTemporaryFile("w", suffix=".json") as file:
            json.dump({"defaults": {**SHORT, **defaults}, "jobs": jobs}, file)
            file.flush()
            self("submit_jobs", app, file.name)


def _settings(environment: Mapping[str, str]) -> dict[str, Any]:
    """What commands read of the settings, as `portal.settings` makes them from this environment."""
    var_dir = Path(environment["VAR_DIR"])
    former = [path for path in environment.get("FORMER_PATHS", "").split(", ") if path]
    keys = ("AM_SIGNING_KEY", "AM_SIGNING_KEY_PUBLIC", "CODE_SIGNING_KEY", "CODE_SIGNING_KEY_PUBLIC")
    return {
        "SITE_URL": environment["SITE_URL"],
        "PROJECT_URL": f"{environment['SITE_URL']}{(former or ['/project/'])[0].removeprefix('/')}",
        "FORMER_PATHS": former,
        "DEMO": False,
        "MEDIA_ROOT": var_dir / "files",
        "UPLOADS_DIR": var_dir / "uploads",
        **{name: Path(environment[name]) for name in keys},
    }


def attach(client: BoincClient, site: Site, email: str, project: str) -> None:
    """Attach the client to the account manager, and wait until it has attached to the project."""
    client.attach_manager(site.url, email, PASSWORDS[email])
    try:
        wait_until(lambda: client.project_urls() == [project], "the project to be attached", 60)
    except AssertionError as error:
        error.add_note(f"{client.log()[-LOG_NCHARS:]}\n--- site\n{site.log()[-LOG_NCHARS:]}")
        raise


def ask_until(is_so: Callable[[], object], what: str, clients: Iterable[BoincClient], project: str, site: Site) -> None:
    """Let the clients ask for work and report as often as the site allows, until it is so."""
    clients = list(clients)

    def poke() -> bool:
        if is_so():
            return True
        for client in clients:
            client.command("--project", project, "update")
        return bool(is_so())

    try:
        wait_until(poke, what, JOB_SECS, POKE_SECS)
    except AssertionError as error:
        for client in clients:
            error.add_note(f"--- {client.directory.name}\n{client.log()[-LOG_NCHARS:]}")
        error.add_note(f"--- site\n{site.log()[-LOG_NCHARS:]}")
        raise
