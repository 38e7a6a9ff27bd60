"""Computers that ask the scheduler for jobs and report them, for scenes of several sessions."""

from __future__ import annotations

import datetime as dt
import itertools
from typing import Any

from credit.models import App, Result, Workunit
from credit.statistics import check
from portal.clients import sync_driver
from portal.models import Host, User
from scheduler.models import Upload
from scheduler.programs import catalogue
from tests.support.credit_factories import make_app, make_result, make_success, make_version, make_workunit
from tests.support.interleavings import Work
from tests.support.scheduler_clients import Computer, key_of, result_xml

NOON = dt.datetime(2026, 11, 20, 12, tzinfo=dt.UTC)
RIGHT = b"r" * 16
_numbers = itertools.count(1)


def volunteer() -> User:
    return User.objects.create_user(f"w{next(_numbers)}@example.org", "secret")


def app_with_jobs(nworkunits: int = 1, ncopies: int = 2, **fields: Any) -> App:
    """An app of its own for each scene: what earlier ones left in other queues is nobody's business."""
    App.objects.update(is_deprecated=True)
    app = make_app(f"app{next(_numbers)}", max_jobs_per_day_init=1000)
    make_version(app)
    for _ in range(nworkunits):
        workunit = make_workunit(app, **{"fpops_est": 7.2e12, "delay_bound_secs": 86_400, "output_files": [], **fields})
        for _ in range(ncopies):
            make_result(workunit)
    catalogue.forget()
    return app


def known(user: User) -> Computer:
    """A computer that has asked the scheduler before."""
    computer = Computer(key_of(user))
    computer.ask(now=NOON - dt.timedelta(hours=2))
    return computer


def asks(computer: Computer, njobs: int, now: dt.datetime = NOON, results: str = "", extra: str = "") -> Work:
    async def steps() -> str:
        return await computer.asks(0, njobs, now=now, results=results, extra=extra)

    return lambda: sync_driver.run(steps())


def delivered(name: str) -> str:
    """Its output is here; the report of it."""
    Upload.objects.create(
        result=Result.objects.get(name=name),
        name=f"{name}_0",
        path=f"outputs/{name}_0",
        nbytes=17,
        md5="a" * 32,
        completed_at=NOON,
    )
    return result_xml(name, files={f"{name}_0": "a" * 32})


def credit_is_right() -> None:
    assert check.differences() == []


def waiting_workunit(app: App, *hosts: Host) -> Workunit:
    workunit = make_workunit(app, need_validate=True, min_quorum=len(hosts), target_nresults=len(hosts))
    version = app.versions.get()
    for host in hosts:
        make_success(workunit, host, app_version=version, output_digest=RIGHT)
    return workunit


def computer_with_work(user: User, **fields: Any) -> Host:
    what = {"domain_name": "studio", "os_name": "Linux Debian", "p_vendor": "GenuineIntel", "p_model": "Core i5"}
    return Host.objects.create(owner=user, p_fpops=4e9, ncpus=4, **{**what, **fields})
