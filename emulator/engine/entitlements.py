"""The projects' entitlements during a run, and what could have run when.

Shares, projects and processors may change during a run. So the run is divided into stretches in which none of them
does, and each stretch is weighted by the computer's capacity in it: a project that is attached for the last of a
hundred days is entitled to its share of that day. A project is entitled while it is attached and not suspended.
"""

from __future__ import annotations

import math

from emulator.engine.client import Client
from emulator.engine.state import ProjectState
from emulator.engine.timeline.stretches import Claim, Stretch, Supply


class Entitlements:
    """The entitlements of one run. `able` is called for each span of time, `close` before something changes and at the
    end, `open` after it has changed. It is created when the client has its jobs from the start.
    """

    def __init__(self, client: Client) -> None:
        self._client = client
        kinds, projects = len(client.kinds), len(client.all_projects)
        self._able_secs = [0.0] * kinds
        self._since = 0.0
        self._entitled = [False] * projects
        self._flop = [0.0] * projects  # entitled to
        self._share_secs = [0.0] * projects
        self.capacity_flop = 0.0
        self.entitled_secs = [0.0] * projects
        # A spell without work that begins at the start is number 0.
        self._is_dry = [True] * projects
        self._dry_spell = [0] * projects  # the number of the last spell
        self._start_flop = [[0.0] * kinds for _ in range(projects)]
        for job in client.jobs():
            self._start_flop[job.project.index][job.kind] += job.left * job.usage * client.instance_flops[job.kind]
        self._stretches: dict[tuple[tuple[Claim, ...], float], Stretch] = {}

    def able(self, kind: int, secs: float) -> None:
        """Books that this kind of processor was able to compute for this long."""
        self._able_secs[kind] += secs

    def open(self, now: float) -> None:
        """Opens a stretch. Time in which a project is not entitled to run is no gap."""
        for project in self._client.all_projects:
            index = project.index
            was, is_ = self._entitled[index], project.attached and not project.suspended
            if was and not is_ and not project.running:
                project.gap_cubes += (now - project.gap_from_secs) ** 3
            elif is_ and not was:
                project.gap_from_secs = now
            self._entitled[index] = is_

    def close(self, now: float) -> None:
        """Closes the stretch: books its capacity, and each project's part of it."""
        client = self._client
        secs, self._since = now - self._since, now
        able, self._able_secs = self._able_secs, [0.0] * len(client.kinds)
        if secs <= 0.0:
            return
        instance_secs = [n * secs for n, secs in zip(client.instances, able, strict=True)]
        flop = sum([flops * secs for flops, secs in zip(client.instance_flops, instance_secs, strict=True)])
        self.capacity_flop += flop
        entitled = [project for project in client.all_projects if self._entitled[project.index]]
        shares = sum([project.share for project in entitled])
        for project in entitled:
            self.entitled_secs[project.index] += secs
            if shares:
                self._flop[project.index] += flop * project.share / shares
                self._share_secs[project.index] += secs * project.share / shares
        claims = tuple(_claim(client, project, self._start_flop[project.index]) for project in entitled)
        for claim in claims:
            self._dry_spell[claim.project] += claim.is_dry and not self._is_dry[claim.project]
            self._is_dry[claim.project] = claim.is_dry
        self._add(claims, able, instance_secs)

    def _add(self, claims: tuple[Claim, ...], able: list[float], instance_secs: list[float]) -> None:
        buffer_secs = self._client.buffer_total_secs
        stretch = self._stretches.get((claims, buffer_secs))
        if stretch is None:
            spells: tuple[set[int], ...] = tuple(set() for _ in claims)
            flops = list(self._client.instance_flops)
            stretch = Stretch(claims, buffer_secs, flops, able, instance_secs, spells)
            self._stretches[claims, buffer_secs] = stretch
        else:
            for kind, secs in enumerate(able):
                stretch.able_secs[kind] += secs
                stretch.instance_secs[kind] += instance_secs[kind]
        for claim, of_claim in zip(claims, stretch.dry_spells, strict=True):
            if claim.is_dry and self._dry_spell[claim.project]:
                of_claim.add(self._dry_spell[claim.project])

    @property
    def aims(self) -> list[float]:
        """The fraction of all work that each project was entitled to. If the computer never computed, by time alone."""
        parts = self._flop if self.capacity_flop else self._share_secs
        total = math.fsum(parts)
        return [part / total if total else 0.0 for part in parts]

    @property
    def stretches(self) -> tuple[Stretch, ...]:
        """All parts of the run; those with the same claims are merged."""
        return tuple(self._stretches.values())


def _claim(client: Client, project: ProjectState, start_flop: list[float]) -> Claim:
    supplies = dict.fromkeys(
        Supply(
            number,
            offer.kind,
            offer.usage,
            offer.cpus if offer.kind else 0.0,
            offer.counted_flops,
            min(
                app.app.max_concurrent or math.inf, (client.count[offer.kind] - offer.barred.bit_count()) / offer.usage
            ),
        )
        for number, app in enumerate(project.apps)
        for offer in app.offers
    )
    has_work = project.has_work and any([app.app.weight > 0 for app in project.apps])
    is_dry = not has_work or project.no_new_tasks or project.forced_down or project.held > 0
    most = project.project.max_concurrent or math.inf
    return Claim(project.index, tuple(supplies), most, is_dry, tuple(start_flop))
