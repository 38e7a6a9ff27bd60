"""Changes of the computer's hardware during a run: processors that are added or removed, or become faster or slower."""

from __future__ import annotations

from dataclasses import replace

from emulator.engine.client import Client
from emulator.engine.scenario import ChangeProcessor
from emulator.engine.state import Job
from emulator.engine.timeline.reasons import Reason


def change_processor(client: Client, event: ChangeProcessor, now: float) -> list[Job]:
    """Makes the change; returns the jobs that no longer fit, which are given up."""
    kind = client.kinds.index(event.kind)
    old = client.processors[kind]
    count = event.instances
    if count is None:
        count = old.instances if client.present[kind] else 0
    new = replace(old, instances=count or old.instances, peak_flops=event.peak_flops or old.peak_flops)
    for job in client.running:
        client.settle(job, now)
    fewer = client.present[kind] and count < old.instances
    client.set_processor(kind, new, is_there=count > 0)
    if fewer:
        # Those that still have room are restarted.
        for job in [job for job in client.running if job.kind == kind]:
            client.stop(job, now, Reason.HARDWARE)
        client.running = [job for job in client.running if job.running]
    _change_speeds(client, kind, new.peak_flops / old.peak_flops)
    find_offers(client)
    lost = [job for project in client.all_projects for job in project.jobs() if not client.can_run(job)]
    client.give_up(lost, now, Reason.HARDWARE)
    client.recalculate(now)
    client.set_cpu_rate(now)
    return lost


def _change_speeds(client: Client, kind: int, faster: float) -> None:
    """Multiplies the speed of versions and jobs of that kind; all are counted at the new peaks."""
    flops = client.instance_flops
    for project in client.all_projects:
        for app in project.apps:
            for offer in app.all_offers:
                if offer.kind == kind:
                    offer.flops *= faster
                offer.count_at(flops)
        for job in project.jobs():
            spent_flop = job.spent_flop
            if job.kind == kind:
                job.run_faster(faster)
            job.counted_flops = job.cpus * flops[0] + (job.usage * flops[job.kind] if job.kind else 0.0)
            job.changed_flop += spent_flop - job.spent_flop


def find_offers(client: Client) -> None:
    """Finds the versions that the computer can run now."""
    for project in client.all_projects:
        project.can_supply = [False] * len(client.kinds)
        for app in project.apps:
            client.find_offers(project, app)
