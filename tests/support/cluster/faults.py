"""Faults of the cluster. Each is a function that breaks something and, as a machine's process manager or somebody who
plugs a cable in again would, mends it; to add one, write it and name it in `FAULTS`.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from typing import Final

from tests.support.cluster.links import State
from tests.support.cluster.postgres import DataNode
from tests.support.cluster.site import ClusterSite
from tests.support.s3_server import FaultyProxy
from tests.support.wait import wait_until

Fault = Callable[[ClusterSite], None]

OUTAGE_SECS: Final = 35.0
"""Longer than a leader keeps its lock: another takes over meanwhile."""
RESTART_SECS: Final = 3.0
"""After which a process manager starts again what has ended."""

BROKEN_CONNECTIONS: Final = 10
"""So many connections to the storage meet each of its faults."""


def _leader(site: ClusterSite) -> DataNode:
    leader = site.data.leader()
    assert leader is not None
    return leader


def kill_postgres(site: ClusterSite) -> None:
    """PostgreSQL of the leader is killed; its Patroni notices."""
    _leader(site).patroni.signal(signal.SIGKILL, "postgres")


def kill_leader(site: ClusterSite) -> None:
    """The leader's machine loses its power, and comes back."""
    leader = _leader(site)
    leader.patroni.kill()
    site.start_again([leader.patroni], OUTAGE_SECS)


def pause_leader(site: ClusterSite) -> None:
    """The leader's machine stands still, and goes on as if nothing had happened."""
    leader = _leader(site)
    leader.patroni.signal(signal.SIGSTOP)
    time.sleep(OUTAGE_SECS)
    leader.patroni.signal(signal.SIGCONT)


def cut_leader_off(site: ClusterSite) -> None:
    """The leader's machine reaches nobody, and nobody reaches it."""
    leader = _leader(site)
    site.data.cut_off(leader, State.DROPS)
    time.sleep(OUTAGE_SECS)
    site.data.cut_off(leader, State.PASSES)


def kill_patroni(site: ClusterSite) -> None:
    """Patroni of the leader is killed, and PostgreSQL is left alone until it is started again."""
    leader = _leader(site).patroni
    leader.signal(signal.SIGKILL, "python")
    site.start_again([leader], RESTART_SECS)


def kill_standby(site: ClusterSite) -> None:
    """A machine that is not the leader is lost; perhaps the one for which commits wait."""
    leader = _leader(site)
    standby = next(node.patroni for node in site.data.nodes if node is not leader)
    standby.kill()
    site.start_again([standby], OUTAGE_SECS)


def kill_etcd_member(site: ClusterSite) -> None:
    site.etcd.members[0].kill()
    site.start_again(site.etcd.members[:1], RESTART_SECS)


def kill_web_node(site: ClusterSite) -> None:
    """Both servers of one web node."""
    for program in site.web_nodes[0]:
        program.kill()
    site.start_again(site.web_nodes[0], RESTART_SECS)


def kill_workers_and_beat(site: ClusterSite) -> None:
    programs = [*site.workers, site.beat]
    for program in programs:
        program.kill()
    site.start_again(programs, RESTART_SECS)


def kill_valkey(site: ClusterSite) -> None:
    """Queue and cache are lost with all that is in them."""
    site.valkey.kill()
    site.start_again([site.valkey], RESTART_SECS)


def break_storage(site: ClusterSite) -> None:
    """The S3 server answers with errors, then cuts its answers, then is not there."""
    assert site.storage is not None
    for fault in ("error", "cut", "refuse"):
        with site.storage.broken(fault):
            _meet(site.storage)


def _meet(storage: FaultyProxy) -> None:
    before = storage.nconnections
    wait_until(lambda: storage.nconnections >= before + BROKEN_CONNECTIONS, "requests of the broken storage", 60)


SHORT: Final[tuple[Fault, ...]] = (kill_web_node, kill_postgres)
"""What every run of the tests has time for."""
FAULTS: Final[tuple[Fault, ...]] = (
    kill_leader,
    pause_leader,
    kill_postgres,
    kill_patroni,
    kill_standby,
    kill_etcd_member,
    kill_web_node,
    kill_workers_and_beat,
    kill_valkey,
    cut_leader_off,
    break_storage,
)
