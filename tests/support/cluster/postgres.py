"""PostgreSQL on three machines under Patroni, by the file in deploy/: only names, addresses and folders differ.

HAProxy leads to the primary, by the file in deploy/ too. The ways between the machines, to them from HAProxy, and from
them to etcd are links that can be broken.
"""

from __future__ import annotations

import json
import re
import sys
import urllib.request
from collections.abc import Sequence
from http.client import HTTPException
from pathlib import Path
from typing import Any, Final

import psycopg
import yaml

from portal.dev import embedded
from portal.dev.supervisor import clean_environment, unprivileged
from tests.support.cluster.links import Network, State
from tests.support.cluster.programs import ClusterProgram
from tests.support.site_process import CHECKOUT
from tests.support.wait import wait_until
from tools.benchmarks.harness.server import free_port

EXAMPLE: Final = CHECKOUT / "deploy" / "patroni.yml"
PROXY_EXAMPLE: Final = CHECKOUT / "deploy" / "haproxy.cfg"
HAPROXY: Final = "/usr/sbin/haproxy"
NODES: Final = ("db1", "db2", "db3")
START_SECS: Final = 90.0
SITE_PASSWORD: Final = "site's secret"


class DataNode:
    """One machine with PostgreSQL and Patroni."""

    def __init__(self, number: int, folder: Path, network: Network, etcd_ports: Sequence[int]) -> None:
        self.name = NODES[number]
        postgres, rest = free_port(), free_port()
        self.postgres_link = network.link(("127.0.0.1", postgres))
        # For the other machines, and for HAProxy and the tests.
        self.rest_link, self.check_link = (network.link(("127.0.0.1", rest)) for _ in range(2))
        self.etcd_links = [network.link(("127.0.0.1", port)) for port in etcd_ports]
        self.home = folder / self.name
        # It may be a disk of its own.
        self.home.mkdir(mode=0o700, exist_ok=True)
        prefix = unprivileged([self.home])
        config = folder / f"{self.name}.yml"
        config.write_text(yaml.safe_dump(self._config(postgres, rest)))
        config.chmod(0o644)
        command = [*prefix, sys.executable, "-W", "ignore", "-m", "patroni", str(config)]
        self.patroni = ClusterProgram(self.name, command, folder, clean_environment())

    @property
    def port(self) -> int:
        """Where the site and the other machines find its PostgreSQL."""
        return self.postgres_link.port

    def _config(self, postgres: int, rest: int) -> dict[str, Any]:
        text = EXAMPLE.read_text().replace("10.0.0.0/24", "127.0.0.0/8")
        for place, own, known in (("restapi", rest, self.rest_link.port), ("postgresql", postgres, self.port)):
            text, n = re.subn(
                rf"(?m)(^{place}:\n  listen: )\S+\n  connect_address: \S+",
                rf"\g<1>127.0.0.1:{own}\n  connect_address: 127.0.0.1:{known}",
                text,
            )
            assert n == 1, place
        config: dict[str, Any] = yaml.safe_load(text)
        config["name"] = self.name
        # The members of etcd would give their own addresses, past the links.
        config["etcd3"] = {"hosts": [f"127.0.0.1:{link.port}" for link in self.etcd_links], "use_proxies": True}
        # The checksums are the default of this version; the rest of the options are the example's.
        parameters = {"unix_socket_directories": str(self.home), "shared_buffers": "64MB", "max_wal_size": "128MB"}
        config["postgresql"] |= {
            "data_dir": str(self.home / "data"),
            "bin_dir": str(embedded.programs("postgres")),
            "pgpass": str(self.home / "pgpass"),
            "parameters": parameters,
        }
        return config


class DataNodes:
    """The three of them; ``url`` of the site's database."""

    def __init__(self, folder: Path, network: Network, etcd_ports: Sequence[int]) -> None:
        self.nodes = [DataNode(number, folder, network, etcd_ports) for number in range(len(NODES))]
        example = yaml.safe_load(EXAMPLE.read_text())["postgresql"]["authentication"]["superuser"]
        self._superuser: dict[str, str] = {"user": example["username"], "password": example["password"]}
        self.proxy_port = free_port()
        self.url = self._url(self.proxy_port)
        self.haproxy = ClusterProgram("haproxy", [HAPROXY, "-db", "-f", str(self._write_proxy(folder))], folder)

    def _write_proxy(self, folder: Path) -> Path:
        """deploy/haproxy.cfg with these addresses. One stands for those of all web nodes and workers."""
        text = PROXY_EXAMPLE.read_text().replace("127.0.0.1:5432", f"127.0.0.1:{self.proxy_port}")
        for number, node in enumerate(self.nodes, 1):
            old = f"10.0.0.1{number}:5432 check port 8008"
            assert old in text
            text = text.replace(old, f"127.0.0.1:{node.port} check port {node.check_link.port}")
        config = folder / "haproxy.cfg"
        config.write_text(text)
        return config

    def _url(self, port: int) -> str:
        return f"postgresql://cobblestone:{SITE_PASSWORD.replace(' ', '%20')}@127.0.0.1:{port}/cobblestone"

    def connect(self, database: str = "cobblestone", **params: Any) -> psycopg.Connection[Any]:
        """A session on the primary, as the superuser."""
        return psycopg.connect(
            host=",".join("127.0.0.1" for _ in self.nodes),
            port=",".join(str(node.port) for node in self.nodes),
            dbname=database,
            target_session_attrs="read-write",
            connect_timeout=2,
            autocommit=True,
            **(self._superuser | params),
        )

    def single_url(self, node: DataNode) -> str:
        """The site's database on one machine."""
        return self._url(node.port)

    def leader(self) -> DataNode | None:
        """The machine whose PostgreSQL takes writes."""
        try:
            with self.connect("postgres") as session:
                port = session.info.port
        except psycopg.Error:
            return None
        return next(node for node in self.nodes if node.port == port)

    def sync_standby(self) -> DataNode:
        """The machine that has to have a commit before it is answered."""
        name = next(member["name"] for member in self._members() if member["role"] == "sync_standby")
        return next(node for node in self.nodes if node.name == name)

    def is_whole(self) -> bool:
        """Whether both other machines follow the primary, and one of them is known in etcd to have what it has: only
        such a one may take over. The primary is asked itself, as Patroni tells of one that died for some seconds more.
        """
        if self.leader() is None:
            return False
        members = self._members()
        if {member["role"] for member in members} != {"leader", "sync_standby", "replica"}:
            return False
        return all(member["state"] in ("running", "streaming") for member in members)

    def _members(self) -> list[dict[str, str]]:
        """The machines as the first Patroni that answers sees them."""
        for node in self.nodes:
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{node.check_link.port}/cluster", timeout=2) as reply:
                    members: list[dict[str, str]] = json.load(reply)["members"]
                    return members
            except (OSError, HTTPException):
                continue
        return []

    def cut_off(self, node: DataNode, state: State) -> None:
        """Break, or mend, all ways between that machine and others. HAProxy still asks the other two. These ask each
        other's Patroni nothing meanwhile either: which of the machines asks cannot be told.
        """
        for link in (node.postgres_link, node.check_link, *node.etcd_links, *(each.rest_link for each in self.nodes)):
            link.set(state)

    def create_database(self) -> None:
        wait_until(self.leader, "a first leader", START_SECS)
        with self.connect("postgres") as session:
            session.execute(f"CREATE ROLE cobblestone LOGIN PASSWORD '{SITE_PASSWORD.replace(chr(39), chr(39) * 2)}'")
            session.execute("CREATE DATABASE cobblestone OWNER cobblestone")
