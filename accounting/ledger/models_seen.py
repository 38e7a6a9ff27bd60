"""The usual speed of each processor model: learned from the site's computers by a task, and shipped for some."""

from __future__ import annotations

import csv
import datetime as dt
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final

from django.conf import settings
from django.db import transaction
from django.db.models import Q

from accounting.engine.amounts import Processor
from accounting.engine.hardware_models import Model, ReportedSpeed, Usual, model_name, usual_speeds
from accounting.models import HostProject, ModelSpeed
from portal.models import Host

SHIPPED: Final = Path(__file__).with_name("gpu_models.csv")
SEEN_FOR: Final = dt.timedelta(days=90)
OLD_ENOUGH: Final = dt.timedelta(days=30)
MAX_FLOPS: Final = 10**18
MAX_MODELS: Final = 20_000


@cache
def shipped() -> dict[Model, int]:
    """Return the peaks that clients compute for common GPUs, for a site that has few computers."""
    with SHIPPED.open() as lines:
        rows = csv.DictReader(line for line in lines if not line.startswith("#"))
        return {(Processor.GPU, model_name(row["model"])): _peak_flops(row) for row in rows}


def _peak_flops(row: dict[str, str]) -> int:
    return int(row["cores"]) * int(row["per_clock"]) * int(row["mhz"]) * 10**6


def usual() -> Usual:
    """Read the speeds that the ledger judges by; one statement."""
    learned = {
        (Processor(processor), name): flops
        for processor, name, flops in ModelSpeed.objects.values_list("processor", "name", "flops")
    }
    return Usual({**shipped(), **learned}, settings.AM_MODEL_FACTOR)


def learn(now: dt.datetime) -> int:
    """Learn the usual speeds of models from the computers of the last months; return how many models. Safe to
    repeat.
    """
    speeds = usual_speeds(_seen(now), shipped(), min_owners=settings.AM_MODEL_OWNERS, factor=settings.AM_MODEL_FACTOR)
    rows = [
        ModelSpeed(processor=processor.value, name=name, flops=flops, as_of=now)
        for (processor, name), flops in speeds.items()
        if shipped().get((processor, name)) != flops
    ][:MAX_MODELS]
    with transaction.atomic():
        ModelSpeed.objects.bulk_create(
            rows, update_conflicts=True, unique_fields=["processor", "name"], update_fields=["flops", "as_of"]
        )
        ModelSpeed.objects.exclude(as_of=now).delete()
    return len(rows)


def _seen(now: dt.datetime) -> Iterator[ReportedSpeed]:
    """Read each processor of each computer that was recently in contact, at its reported speed.

    Only computers and accounts of some age with credit count: new ones can be made up in minutes.
    """
    hosts = Host.objects.filter(
        last_contact_at__gte=now - SEEN_FOR,
        merged_into=None,
        created_at__lt=now - OLD_ENOUGH,
        owner__created_at__lt=now - OLD_ENOUGH,
        pk__in=HostProject.objects.filter(Q(credited__0__gt=0) | Q(credited__1__gt=0)).values("host"),
    )
    columns = hosts.values_list("owner_id", "p_model", "p_fpops", "coprocs").iterator(chunk_size=2000)
    for owner_id, cpu, flops, coprocs in columns:
        if cpu and flops and 0 < flops < MAX_FLOPS:
            yield ReportedSpeed((Processor.CPU, model_name(cpu)), owner_id, flops)
        for gpu in coprocs:
            peak = gpu.get("peak_flops") or 0
            if gpu.get("name") and 0 < peak < MAX_FLOPS:
                yield ReportedSpeed((Processor.GPU, model_name(str(gpu["name"]))), owner_id, peak)
