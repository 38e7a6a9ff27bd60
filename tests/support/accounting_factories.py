"""Small makers of computers, projects and their ledger rows."""

from __future__ import annotations

import datetime as dt
import itertools
from collections.abc import Mapping, Sequence
from typing import Any

from accounting.ledger.partitions import create_months
from accounting.models import Day, GrantedDay, GrantedTotal, HostLedger, HostProject, Note, Project
from accounting.rpc import account_keys
from portal.models import Host, User

_numbers = itertools.count(1)


def at(day: str, hour: int = 0) -> dt.datetime:
    """at("2026-03-01", 5) is five o'clock UTC of that day."""
    return dt.datetime.fromisoformat(day).replace(hour=hour, tzinfo=dt.UTC)


def make_project(name: str = "", account_key: str = "", **fields: Any) -> Project:
    """With a shared account key, if it is given."""
    number = next(_numbers)
    name = name or f"Project {number}"
    project = Project.objects.create(name=name, **{"master_url": f"https://p{number}.example.org/", **fields})
    if account_key:
        project.shared_account_key = account_keys.seal_shared(project, account_key)
        project.save()
    return project


def make_host(owner: User, name: str, first: str = "2026-01-01", last: str = "2026-02-01", **fields: Any) -> Host:
    """A Linux computer that was in contact from the beginning of one day to the beginning of another."""
    what = {"os_name": "Linux Debian", "p_vendor": "GenuineIntel", "p_model": "Core i5", "ncpus": 4, **fields}
    host = Host.objects.create(owner=owner, domain_name=name, created_at=at(first), last_contact_at=at(last), **what)
    HostLedger.objects.create(host=host, last_at=at(last))
    return host


def credit(host: Host, project: Project, day: str, amounts: Sequence[int], flags: int = 0) -> None:
    """What the ledger leaves behind when it credits six amounts on one day."""
    date = dt.date.fromisoformat(day)
    create_months(date, date)
    a, b, c, d, e, f = amounts
    Day.objects.create(
        user=host.owner,
        day=date,
        project=project,
        host=host,
        cpu_ec=a,
        gpu_ec=b,
        cpu_time=c,
        gpu_time=d,
        njobs_success=e,
        njobs_error=f,
        flags=flags,
    )
    row, _ = HostProject.objects.get_or_create(host=host, project=project)
    total = [x + y for x, y in zip(row.credited, amounts, strict=True)]
    HostProject.objects.filter(host=host, project=project).update(credited=total)


def granted(host: Host, project: Project, number: int, days: Mapping[str, int]) -> GrantedTotal:
    """What imports leave behind of a computer with this number at the project: credit by day, in micro-credits."""
    for day, amount in days.items():
        GrantedDay.objects.create(
            user=host.owner, day=dt.date.fromisoformat(day), project=project, host=host, credit=amount
        )
    total, last = sum(days.values()), at(max(days))
    return GrantedTotal.objects.create(
        project=project, project_host_id=number, host=host, total_credit=total, highest_credit=total,
        counted_credit=total, avg_at=last, made_at=at(min(days)), as_of=last, fits_since=at(min(days)),
    )  # fmt: skip


def make_note(host: Host, kind: str, day: str, **fields: Any) -> Note:
    return Note.objects.create(
        **{
            "host": host,
            "kind": kind,
            "day": dt.date.fromisoformat(day),
            "first_at": at(day, 1),
            "last_at": at(day, 2),
            **fields,
        }
    )
