"""Upgrades without stopping, from a version that is known to have run: docs/how-to/upgrades.md, step by step.

The old version has its own code, environment and requirements. Clients and people use the site all the time, and none
of their requests may fail. UPGRADE_FROM= names another version to begin with.
"""

from __future__ import annotations

import itertools
import os
import re
import shutil
import signal
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit, urlunsplit

import psycopg
import pytest
from django.db import connection

from portal.benchmarks.server import free_port
from portal.dev import embedded
from tests.support.guarded_program import GuardedProgram
from tests.support.nginx_deployment import NGINX, Deployment, Program, unit_command, write_configuration
from tests.support.site_process import database_url, environment
from tests.support.upgrades import NEW, Load, Version, check_out
from tests.support.wait import wait_until

pytestmark = [pytest.mark.long, pytest.mark.usefixtures("nginx")]
UNITS: Final = ("cobblestone-web", "cobblestone-clients")
TASK_UNITS: Final = ("cobblestone-worker", "cobblestone-requested", "cobblestone-beat")
_UNGRANTED: Final = """
SELECT count(*) FROM credit_result r
 WHERE name = ANY (%s) AND granted_at IS NULL
   AND (SELECT count(*) FROM credit_result o WHERE o.workunit_id = r.workunit_id AND o.outcome = 1) >= 2"""
_GRANTED: Final = "SELECT count(*) FROM credit_result WHERE granted_at IS NOT NULL"
_COPIES: Final = "SELECT state, count(*) FROM accounting_datacopy GROUP BY state"


@pytest.fixture(scope="module")
def old(tmp_path_factory: pytest.TempPathFactory) -> Version:
    """A checkout of the old version with an environment of its own."""
    return check_out(tmp_path_factory.mktemp("old"))


@pytest.fixture
def old_database(transactional_db: None) -> Iterator[str]:
    """The address of an empty database."""
    name = f"{connection.settings_dict['NAME']}_upgrade"
    with connection._nodb_cursor() as cursor:
        cursor.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')
        cursor.execute(f'CREATE DATABASE "{name}"')
    yield urlunsplit(urlsplit(database_url())._replace(path=f"/{name}"))
    with connection._nodb_cursor() as cursor:
        cursor.execute(f'DROP DATABASE "{name}" WITH (FORCE)')


@contextmanager
def used(load: Load, running: list[GuardedProgram]) -> Iterator[None]:
    """Clients and people use the site meanwhile; what runs at the end is stopped."""
    with ThreadPoolExecutor(8) as pool:
        asking: list[Future[None]] = []
        try:
            asking += [pool.submit(work) for work in load.workers()]
            yield
        finally:
            load.over.set()
            for each in asking:
                each.result()
            for program in reversed(running):
                program.stop()
    assert load.failures == []
    assert len(set(load.jobs)) == len(load.jobs) > 0


def reload(folder: Path) -> None:
    os.kill(int((folder / "nginx.pid").read_text()), signal.SIGHUP)


def test_nobody_notices_an_upgrade(old: Version, old_database: str, tmp_path: Path) -> None:
    var_dir = tmp_path / "var"
    var_dir.mkdir()
    site = Deployment(var_dir, tmp_path, DATABASE_URL=old_database, MIN_SENDWORK_INTERVAL_SECS="0")
    variables = dict(site.web.environment)
    variables.pop("DJANGO_ALLOW_ASYNC_UNSAFE", None)
    for step in (("migrate", "--verbosity", "0"), ("prepare",), ("collectstatic", "--no-input", "--verbosity", "0")):
        old.managed(variables, *step)
    population = old.populate(variables)
    old_programs = [
        Program(
            unit_command(unit, port, old.folder, old.python),
            f"http://127.0.0.1:{port}/",
            tmp_path / f"old-{unit}.log",
            variables,
            old.folder,
        )
        for unit, port in zip(UNITS, (free_port(), free_port()), strict=True)
    ]
    new_programs = [site.web, site.clients]
    new_config = (tmp_path / "site.conf").read_text()
    old_config = new_config
    for before, after in zip(old_programs, new_programs, strict=True):
        old_config = old_config.replace(after.url[7:-1], before.url[7:-1])
    (tmp_path / "site.conf").write_text(old_config)
    load = Load(site.address, population)
    running: list[GuardedProgram] = []
    start(running, [*old_programs, site.nginx])
    with used(load, running):
        load.more()
        assert "No stop is needed" in NEW.managed(variables, "upgrade_check")
        NEW.managed(variables, "migrate", "--verbosity", "0")
        NEW.managed(variables, "prepare")
        load.more()
        NEW.managed(variables, "collectstatic", "--no-input", "--verbosity", "0")
        start(running, new_programs)
        load.more()
        (tmp_path / "site.conf").write_text(new_config)
        reload(tmp_path)
        load.more()
        for program in old_programs:
            program.stop()
        load.more()
    assert "consistent" in NEW.managed(variables, "check_ledger")


def start(running: list[GuardedProgram], programs: Sequence[GuardedProgram]) -> None:
    try:
        for program in programs:
            program.start()
            running.append(program)
    except BaseException:
        for program in reversed(running):
            program.stop()
        raise


class Machine:
    """A machine with all services of the site, and with static files of its own."""

    def __init__(self, name: str, folder: Path, variables: dict[str, str]) -> None:
        self.name, self.folder = name, folder / name
        self.variables = variables | {"VAR_DIR": str(self.folder)}
        self.ports = {unit: free_port() for unit in UNITS}
        self.programs: dict[str, GuardedProgram] = {}

    def start(self, version: Version, units: Sequence[str], running: list[GuardedProgram]) -> None:
        started = {unit: self._program(version, unit) for unit in units}
        self.programs |= started
        start(running, list(started.values()))

    def stop(self, units: Sequence[str]) -> None:
        for unit in units:
            self.programs[unit].stop()

    def _program(self, version: Version, unit: str) -> GuardedProgram:
        log = self.folder / f"{unit}.log"
        if unit in UNITS:
            port = self.ports[unit]
            command = unit_command(unit, port, version.folder, version.python)
            return Program(command, f"http://127.0.0.1:{port}/", log, self.variables, version.folder)
        text = (version.folder / "deploy" / f"{unit}.service").read_text()
        found = re.search(r"^ExecStart=\S+/celery (.*)$", text, re.M)
        assert found
        options = found[1].replace("%%h", self.name).replace("/var/lib/cobblestone", str(self.folder))
        if unit == "cobblestone-worker":
            options += f" --hostname worker@{self.name}"
        command = [version.python, "-W", "ignore", "-m", "celery", *options.split()]
        return GuardedProgram(f"{unit} of {self.name}", command, log, self.variables, version.folder)


class Site:
    """Two machines behind nginx, with a database and a Valkey that both use."""

    def __init__(self, folder: Path, database: str) -> None:
        self.folder = folder
        nginx_port, valkey_port = free_port(), free_port()
        self.address = ("127.0.0.1", nginx_port)
        url = f"http://127.0.0.1:{nginx_port}/"
        broker = f"redis://127.0.0.1:{valkey_port}"
        self.folders = {name: folder / "shared" / name.lower() for name in ("FILES", "UPLOADS", "STATISTICS")}
        settings = {
            "SITE_URL": url, "DATABASE_URL": database, "BROKER_URL": f"{broker}/0", "CACHE_URL": f"{broker}/1",
            "BEHIND_PROXY": "1", "DOWNLOAD_ACCEL_PREFIX": "/stored/", "GRANIAN_WORKERS": "1",
            "GRANIAN_BLOCKING_THREADS": "8", "MIN_SENDWORK_INTERVAL_SECS": "0", "VALIDATOR_EVERY_SECS": "2",
            "TRANSITIONER_EVERY_SECS": "2", "OPENBLAS_NUM_THREADS": "1",
            **{f"{name}_DIR": str(path) for name, path in self.folders.items()},
        }  # fmt: skip
        variables = environment(folder / "first", **settings)
        variables.pop("DJANGO_ALLOW_ASYNC_UNSAFE", None)
        self.machines = [Machine(name, folder, variables) for name in ("first", "second")]
        server = str(embedded.programs("valkey") / "valkey-server")
        options = ["--port", str(valkey_port), "--bind", "127.0.0.1", "--save", "", "--dir", str(folder)]
        self.valkey = GuardedProgram("valkey", [server, *options], folder / "valkey.log", os.environ, folder)
        nginx = [NGINX, "-p", str(folder), "-e", "stderr", "-c", str(folder / "nginx.conf")]
        self.nginx = Program(nginx, url, folder / "nginx.log", os.environ)

    def managed(self, version: Version, *arguments: str) -> str:
        """A command on the first machine."""
        return version.managed(self.machines[0].variables, *arguments)

    def lead_to(self, machines: Sequence[Machine]) -> None:
        """What nginx's upstreams are."""
        web, clients = ([machine.ports[unit] for machine in machines] for unit in UNITS)
        replaced = {f"/var/lib/cobblestone/{name.lower()}/": f"{path}/" for name, path in self.folders.items()}
        replaced = {old: new for old, new in replaced.items() if "uploads" not in old}
        write_configuration(self.folder, self.address[1], web, clients, replaced)

    def rows(self, statement: str, *values: Any) -> list[Any]:
        with psycopg.connect(self.machines[0].variables["DATABASE_URL"]) as session:
            return session.execute(statement, values).fetchall()


def prepared(site: Site, old: Version) -> dict[str, Any]:
    """The old version's site, as it is before its services are started; its population."""
    first, second = site.machines
    first.folder.mkdir()
    site.managed(old, "migrate", "--verbosity", "0")
    site.managed(old, "prepare")
    population = old.populate(first.variables)
    # The keys are the same everywhere.
    shutil.copytree(first.folder, second.folder)
    for machine in site.machines:
        old.managed(machine.variables, "collectstatic", "--no-input", "--verbosity", "0")
    return population


def test_nobody_notices_an_upgrade_of_two_machines(old: Version, old_database: str, tmp_path: Path) -> None:
    site = Site(tmp_path, old_database)
    running: list[GuardedProgram] = []
    start(running, [site.valkey])
    try:
        population = prepared(site, old)
    except BaseException:
        site.valkey.stop()
        raise
    site.lead_to(site.machines)
    for machine in site.machines:
        machine.start(old, [*UNITS, *TASK_UNITS], running)
    start(running, [site.nginx])
    load = Load(site.address, population, reports=True)
    copies = itertools.count()

    def go_on() -> None:
        """Some use of the site, and somebody asks for a copy of their data."""
        load.ask_for_copy(next(copies))
        load.more()

    with used(load, running):
        go_on()
        wait_for_credit(site, load)
        assert "No stop is needed" in site.managed(NEW, "upgrade_check")
        site.managed(NEW, "migrate", "--verbosity", "0")
        site.managed(NEW, "prepare")
        go_on()
        upgrade_workers(site, running, go_on)
        wait_for_credit(site, load)
        for machine in site.machines:
            upgrade_web(site, machine, running, go_on)
        load.more()
        load.over.set()
        wait_for_credit(site, load)
        ncopies = next(copies)
        wait_until(lambda: site.rows(_COPIES) == [("ready", ncopies)], "all copies", 120)
    for check in ("check_ledger", "check_credit", "check_files"):
        site.managed(NEW, check)
    for machine in site.machines:
        for unit in TASK_UNITS:
            assert "unregistered task" not in (machine.folder / f"{unit}.log").read_text()


def upgrade_workers(site: Site, running: list[GuardedProgram], go_on: Callable[[], None]) -> None:
    """Those of all machines: no old one may meet tasks that it does not know."""
    for machine in site.machines:
        machine.stop(list(reversed(TASK_UNITS)))
    go_on()
    for unit in TASK_UNITS:
        for machine in site.machines:
            machine.start(NEW, [unit], running)
    go_on()


def upgrade_web(site: Site, machine: Machine, running: list[GuardedProgram], go_on: Callable[[], None]) -> None:
    """The machine is taken out of nginx's upstreams, and put back."""
    site.lead_to([each for each in site.machines if each is not machine])
    reload(site.folder)
    go_on()
    machine.stop(UNITS)
    NEW.managed(machine.variables, "collectstatic", "--no-input", "--verbosity", "0")
    machine.start(NEW, UNITS, running)
    site.lead_to(site.machines)
    reload(site.folder)
    go_on()


def wait_for_credit(site: Site, load: Load) -> None:
    """Each job that was reported until now gets its credit, if its workunit's other copy was reported, too."""
    names = list(load.reported)
    wait_until(lambda: site.rows(_UNGRANTED, names) == [(0,)] or load.failures, "the credit of all jobs", 180)
    assert load.failures == []
    assert site.rows(_GRANTED)[0][0] > len(names) / 2
