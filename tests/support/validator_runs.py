"""What tests of the validator share: workunits with results that agree, or not, and the books afterwards."""

from __future__ import annotations

import datetime as dt
from typing import Any

from credit.models import App, AppVersion, HostAppVersion, Result, Workunit
from credit.statistics import check
from credit.validator.passes import PassReport, run_pass
from portal.models import Host, User
from tests.support.credit_factories import NOON, make_success, make_workunit

LATER = NOON + dt.timedelta(hours=1)
EST = 1e13
RIGHT, WRONG = b"r" * 16, b"w" * 16


def volunteers(number: int) -> list[Host]:
    """Hosts of as many volunteers."""
    return [
        Host.objects.create(owner=User.objects.create_user(f"v{n}@example.org", "s", name=f"V{n}"), p_fpops=4e9)
        for n in range(number)
    ]


def done(app: App, version: AppVersion | None, *hosts: Host, **fields: Any) -> Workunit:
    """A workunit that these hosts have reported, with the same output, and that waits to be validated.

    Each took 3,000 s at 4 GFLOPS: 12e12 FLOPs, of 10e12 estimated. Fields are the results', but for the workunit's own.
    """
    own = {name: fields.pop(name) for name in list(fields) if name in _WORKUNIT_FIELDS}
    quorum = own.pop("min_quorum", max(1, len(hosts)))
    workunit = make_workunit(
        app,
        **{"need_validate": True, "min_quorum": quorum, "target_nresults": max(quorum, len(hosts)), **own},
    )
    for host in hosts:
        report(workunit, version, host, **fields)
    return workunit


_WORKUNIT_FIELDS = {field.name for field in Workunit._meta.get_fields()} - {
    field.name for field in Result._meta.get_fields()
} | {"min_quorum", "fpops_est"}


def report(workunit: Workunit, version: AppVersion | None, host: Host, **fields: Any) -> Result:
    return make_success(workunit, host, **{"app_version": version, "output_digest": RIGHT, **fields})


def validate(app: App, now: dt.datetime = LATER, limit: int | None = None) -> PassReport:
    return run_pass(app.pk, now, limit)


def record(host: Host, version: AppVersion, **fields: Any) -> HostAppVersion:
    return HostAppVersion.objects.create(host=host, app=version.app, app_version=version, **fields)


def differences() -> list[str]:
    return list(check.differences())
