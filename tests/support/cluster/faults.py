"""Faults of the cluster. Each is a function that breaks something and, as a machine's process manager or somebody who
plugs a cable in again would, mends it; to add one, write it and name it in `FAULTS`.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final

import psycopg

from tests.support.cluster.history import without_credit
from tests.support.cluster.links import State
from tests.support.cluster.postgres import DataNode
from tests.support.cluster.site import ClusterSite
from tests.support.s3_server import FaultyProxy
from tests.support.small_disk import fill_up
from tests.support.wait import wait_until

Fault = Callable[[ClusterSite], None]

OUTAGE_SECS: Final = 35.0
"""Longer than a leader keeps its lock: another takes over meanwhile."""
RESTART_SECS: Final = 3.0
"""After which a process manager starts again what has ended."""

CLOCK_STEPS_SECS: Final = (600, -600, 3600, -3600, 0)
"""How far a clock is ahead, after each step."""
STEP_SECS: Final = 10.0
CREDIT_SECS: Final = 90.0
FULL_SECS: Final = 15.0
"""Until somebody has made room."""
BROKEN_CONNECTIONS: Final = 10
"""This many connections to the storage meet each of its faults."""


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


def kill_two_leaders(site: ClusterSite) -> None:
    """The machine that takes over dies before another has what it has, so only a return of the two ends the outage."""
    first = _leader(site)
    first.patroni.kill()
    wait_until(lambda: site.data.leader() not in (None, first), "another leader", OUTAGE_SECS, 0.1)
    second = _leader(site)
    second.patroni.kill()
    site.start_again([first.patroni, second.patroni], OUTAGE_SECS)


def _let_it_last() -> None:
    """How long an outage lasts is part of the fault: it is over when it is over, whatever the others do meanwhile."""
    time.sleep(OUTAGE_SECS)


def pause_leader(site: ClusterSite) -> None:
    """The leader's machine stands still, and goes on as if nothing had happened."""
    leader = _leader(site)
    leader.patroni.signal(signal.SIGSTOP)
    _let_it_last()
    leader.patroni.signal(signal.SIGCONT)


def cut_leader_off(site: ClusterSite) -> None:
    """The leader's machine reaches nobody, and nobody reaches it."""
    leader = _leader(site)
    site.data.cut_off(leader, State.DROPS)
    _let_it_last()
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


def pause_sync_standby(site: ClusterSite) -> None:
    """The machine for which commits wait stands still, and its connections stay."""
    standby = site.data.sync_standby()
    standby.patroni.signal(signal.SIGSTOP)
    _let_it_last()
    standby.patroni.signal(signal.SIGCONT)


def cut_leader_off_from_etcd(site: ClusterSite) -> None:
    """The leader's machine reaches all others, but cannot renew its lock."""
    for link in (leader := _leader(site)).etcd_links:
        link.set(State.DROPS)
    _let_it_last()
    for link in leader.etcd_links:
        link.set(State.PASSES)


def kill_etcd_member(site: ClusterSite) -> None:
    site.etcd.members[0].kill()
    site.start_again(site.etcd.members[:1], RESTART_SECS)


def kill_two_etcd_members(site: ClusterSite) -> None:
    """Nobody can be made the leader; the present one goes on, as its Patroni reaches the others."""
    leader = _leader(site)
    lost = site.etcd.members[:2]
    for member in lost:
        member.kill()
    site.start_again(lost, OUTAGE_SECS)
    assert site.data.leader() is leader


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


def step_clock_of_web_node(site: ClusterSite) -> None:
    _step_clocks(site, "web0")


def step_clock_of_worker(site: ClusterSite) -> None:
    _step_clocks(site, "worker0")


def step_clock_of_beat(site: ClusterSite) -> None:
    _step_clocks(site, "beat")


def step_clock_of_leader_ahead(site: ClusterSite) -> None:
    """With it that of the database, by which the whole site goes; then a machine with the right time takes over."""
    leader = _leader(site)
    _step_clocks(site, leader.name, (600, 3600))
    with site.data.connect() as session:
        row = session.execute("SELECT extract(epoch FROM clock_timestamp())::float8").fetchone()
    assert row is not None and row[0] - time.time() > 3000, "the database's clock was set"
    leader.patroni.kill()
    site.clocks[leader.name].set(0)
    site.start_again([leader.patroni], OUTAGE_SECS)


def step_clock_of_leader_back(site: ClusterSite) -> None:
    """Its Patroni lets its lock expire, and takes it again."""
    _step_clocks(site, _leader(site).name, (-600, 3600, 0), OUTAGE_SECS)


def _step_clocks(
    site: ClusterSite, machine: str, ahead_secs: tuple[int, ...] = CLOCK_STEPS_SECS, pause_secs: float = STEP_SECS
) -> None:
    """After each step, what was reported meanwhile gets its credit."""
    for ahead_sec in ahead_secs:
        site.clocks[machine].set(ahead_sec)
        # Traffic goes on meanwhile: what it reports is what the wrong clock could harm.
        time.sleep(pause_secs)
        _wait_for_credit(site, ahead_sec)


def _wait_for_credit(site: ClusterSite, ahead_secs: int) -> None:
    with site.data.connect() as session:
        reported = without_credit(session)
        wait_until(lambda: not reported & without_credit(session), f"credit at {ahead_secs:+d} s", CREDIT_SECS, 1)


def fill_disk_of_leader(site: ClusterSite) -> None:
    """No table of the leader's can grow any more, until somebody makes room."""
    leader = _leader(site)
    ballast = fill_up(leader.home)
    wait_until(lambda: "No space left on device" in leader.patroni.log(), "a table that cannot grow", CREDIT_SECS, 0.5)
    # Traffic goes on meanwhile, against the full disk.
    time.sleep(FULL_SECS)
    ballast.unlink()


def fill_disk_of_leader_with_wal(site: ClusterSite) -> None:
    """PostgreSQL cannot write its log any more, and ends."""
    leader = _leader(site)
    ballast = fill_up(leader.home)
    with suppress(psycopg.Error), site.data.connect() as session:
        while True:
            session.execute("SELECT pg_logical_emit_message(false, 'ballast', repeat('x', 1000000))")
    wait_until(lambda: site.data.leader() not in (None, leader), "another leader", OUTAGE_SECS, 0.5)
    ballast.unlink()


def fill_disk_of_files(site: ClusterSite) -> None:
    ballast = fill_up(site.files)
    # Traffic goes on meanwhile, against the full disk.
    time.sleep(FULL_SECS)
    ballast.unlink()


def _meet(storage: FaultyProxy) -> None:
    before = storage.nconnections
    wait_until(lambda: storage.nconnections >= before + BROKEN_CONNECTIONS, "requests of the broken storage", 60)


SHORT: Final[tuple[Fault, ...]] = (kill_web_node, kill_postgres)
"""What every run of the tests has time for."""
FAULTS: Final[tuple[Fault, ...]] = (
    kill_leader,
    kill_two_leaders,
    pause_leader,
    kill_postgres,
    kill_patroni,
    kill_standby,
    pause_sync_standby,
    kill_etcd_member,
    kill_two_etcd_members,
    kill_web_node,
    kill_workers_and_beat,
    kill_valkey,
    cut_leader_off,
    cut_leader_off_from_etcd,
    break_storage,
)
OF_CLOCKS: Final[tuple[Fault, ...]] = (
    step_clock_of_web_node,
    step_clock_of_worker,
    step_clock_of_beat,
    step_clock_of_leader_ahead,
    step_clock_of_leader_back,
)
"""For a site with clocks of its own."""
OF_DISKS: Final[tuple[Fault, ...]] = (fill_disk_of_leader, fill_disk_of_leader_with_wal, fill_disk_of_files)
"""For a site with small disks, files on one of them."""
