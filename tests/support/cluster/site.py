"""The whole site on several machines: data nodes, etcd, two web nodes behind nginx, two workers, beat, Valkey.

What is killed is started again after a while, as systemd does (Restart=); nobody else does anything.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final, Self

from django.db import connection

from portal.databases import watch
from portal.dev import embedded
from portal.environment import database
from tests.support.cluster import clocks
from tests.support.cluster.clocks import MachineClock
from tests.support.cluster.etcd import Etcd
from tests.support.cluster.history import get
from tests.support.cluster.links import Network
from tests.support.cluster.postgres import DataNodes
from tests.support.cluster.programs import ClusterProgram
from tests.support.database import backend
from tests.support.nginx_deployment import NGINX, unit_command, write_configuration
from tests.support.s3_server import FaultyProxy
from tests.support.site_process import database_url, environment
from tests.support.wait import wait_until
from tools.benchmarks.harness.server import free_port

NWEB_NODES: Final = 2
NWORKERS: Final = 2
START_SECS: Final = 120.0
SETTINGS: Final = {
    "BEHIND_PROXY": "1",
    "GRANIAN_WORKERS": "1",
    "GRANIAN_BLOCKING_THREADS": "4",
    "SCHEDULER_REQUEST_DELAY_SECS": "0",
    "MIN_SENDWORK_INTERVAL_SECS": "0",
    "VALIDATOR_EVERY_SECS": "2",
    "TRANSITIONER_EVERY_SECS": "2",
    "OPENBLAS_NUM_THREADS": "1",
}


class ClusterSite:
    """A context manager; the test's database, as it is then, is copied into it. ``var_dir`` must have been prepared."""

    def __init__(self, var_dir: Path, folder: Path, storage: FaultyProxy | None, **settings: str) -> None:
        """``storage``: the way to its S3 server, if it has one."""
        self._var_dir, self._folder, self._settings = var_dir, folder, settings
        self.storage = storage
        self.has_clocks = False
        self.clocks: dict[str, MachineClock] = {}
        self._valkey_port, nginx_port = free_port(), free_port()
        self.files = folder / "files"
        self.url = f"http://127.0.0.1:{nginx_port}/"
        self.address = ("127.0.0.1", nginx_port)

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            network = stack.enter_context(Network())
            self.etcd = Etcd(self._folder)
            self.data = DataNodes(self._folder, network, self.etcd.ports)
            self._make_site()
            if self.has_clocks:
                self._make_clocks()
            stack.callback(self._stop_all)
            self._start()
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_raised: object) -> None:
        self._stack.close()

    def _make_site(self) -> None:
        broker = f"redis://127.0.0.1:{self._valkey_port}"
        shared = {
            "SITE_URL": self.url,
            "DATABASE_URL": self.data.url,
            "BROKER_URL": f"{broker}/0",
            "CACHE_URL": f"{broker}/1",
            "FILES_DIR": str(self.files),
            "UPLOADS_DIR": str(self._folder / "uploads"),
            "STATISTICS_DIR": str(self._folder / "statistics"),
        }
        self.environment = environment(self._var_dir, **(SETTINGS | shared | self._settings))
        server = str(embedded.programs("valkey") / "valkey-server")
        options = ["--port", str(self._valkey_port), "--bind", "127.0.0.1", "--save", "", "--dir", str(self._folder)]
        self.valkey = self._program("valkey", [server, *options])
        ports = {unit: [free_port() for _ in range(NWEB_NODES)] for unit in ("cobblestone-web", "cobblestone-clients")}
        self.web_nodes = [
            [self._program(f"{unit}{number}", unit_command(unit, each[number])) for unit, each in ports.items()]
            for number in range(NWEB_NODES)
        ]
        celery = [sys.executable, "-W", "ignore", "-m", "celery", "--quiet", "--app", "portal"]
        worker = [*celery, "worker", "--pool", "solo", "--without-gossip", "--without-mingle", "--loglevel", "warning"]
        self.workers = [
            self._program(f"worker{number}", [*worker, "--hostname", f"worker{number}@%h"])
            for number in range(NWORKERS)
        ]
        schedule = ["--schedule", str(self._folder / "beat-schedule"), "--pidfile="]
        self.beat = self._program("beat", [*celery, "beat", *schedule, "--loglevel", "warning"])
        write_configuration(
            self._folder,
            self.address[1],
            ports["cobblestone-web"],
            ports["cobblestone-clients"],
            {
                "/var/lib/cobblestone/files/": f"{self._folder}/files/",
                "/var/lib/cobblestone/statistics/": f"{self._folder}/statistics/",
            },
        )
        nginx = [NGINX, "-p", str(self._folder), "-e", "stderr", "-c", str(self._folder / "nginx.conf")]
        self.nginx = self._program("nginx", nginx)

    def _make_clocks(self) -> None:
        """A clock for each machine: a web node, a worker, beat, a data node with its Patroni."""
        clocks.require()
        machines: dict[str, Sequence[ClusterProgram]] = {
            **{f"web{number}": node for number, node in enumerate(self.web_nodes)},
            **{program.name: [program] for program in (*self.workers, self.beat)},
            **{node.name: [node.patroni] for node in self.data.nodes},
        }
        for name, programs in machines.items():
            self.clocks[name] = MachineClock(self._folder, name)
            for program in programs:
                program.environment = {**program.environment, **self.clocks[name].variables()}

    def _program(self, name: str, command: Sequence[str]) -> ClusterProgram:
        return ClusterProgram(name, command, self._folder, self.environment)

    @property
    def programs(self) -> list[ClusterProgram]:
        """All of them, in the order in which they are started."""
        data = [node.patroni for node in self.data.nodes]
        web = [program for node in self.web_nodes for program in node]
        return [*self.etcd.members, *data, self.valkey, *web, *self.workers, self.beat, self.nginx]

    def _start(self) -> None:
        for program in self.etcd.members:
            program.start()
        dump = self._folder / "site.dump"
        _run("pg_dump", "-Fc", "-f", str(dump), database_url())
        wait_until(self.etcd.is_ready, "etcd", START_SECS)
        for node in self.data.nodes:
            node.patroni.start()
        self.data.create_database()
        leader = self.data.leader()
        assert leader is not None
        _run("pg_restore", "--exit-on-error", "--no-owner", "-d", self.data.single_url(leader), str(dump))
        for program in self.programs:
            if not program.pids():
                program.start()
        wait_until(self.data.is_whole, "two standbys", START_SECS)
        wait_until(self.answers, "the site", START_SECS)

    def _stop_all(self) -> None:
        for program in reversed(self.programs):
            # Killed, as all of it is thrown away, and waiting for the end of each takes long.
            program.kill()

    def answers(self) -> bool:
        """Whether every server of every node can serve."""
        return get(self.address, "/readyz")[0] == 200 and get(self.address, "/get_project_config.php")[0] == 200

    def start_again(self, programs: Sequence[ClusterProgram], after_secs: float) -> None:
        """What a process manager does when programs have ended."""
        time.sleep(after_secs)
        for program in programs:
            program.kill()
            program.start()

    @contextmanager
    def as_database(self) -> Iterator[None]:
        """This process's Django works on the cluster's database meanwhile."""
        before = dict(connection.settings_dict)
        _close()
        given = database(self.data.url)
        given["OPTIONS"] = {**before["OPTIONS"], **given["OPTIONS"]}
        connection.settings_dict.update(given)
        try:
            yield
        finally:
            _close()
            # Or the process would take the cluster, which ends with the test, for a database that is down.
            watch.end_all()
            connection.settings_dict.clear()
            connection.settings_dict.update(before)


def _close() -> None:
    connection.close()
    backend().close_pool()


def _run(program: str, *arguments: str) -> None:
    command = [str(embedded.programs("postgres") / program), *arguments]
    subprocess.run(command, check=True, capture_output=True, env=dict(os.environ))
