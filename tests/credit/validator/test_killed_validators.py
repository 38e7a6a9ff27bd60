"""Four validators of one app at once, killed at random moments and started again: nothing is lost or done twice."""

from __future__ import annotations

import datetime as dt
import os
import random
import select
import signal
import subprocess
import sys
import time
from typing import Any, Self

import pytest
from django.conf import settings
from django.db import connection
from django.db.models import Count, Sum

from credit.engine.states import AssimilateState, ValidateState
from credit.models import App, AppVersion, HostAppVersion, HostCredit, Result, UserCredit, Workunit
from credit.statistics import check as statistics_check
from credit.validator.passes import run_pass
from extras.laboratory.trials.population import KINDS
from extras.laboratory.trials.simulation import SimulatedProject, make_computers, release_versions
from tests.support.credit_factories import NOON, make_app
from tests.support.site_process import environment
from tests.support.wait import wait_until

pytestmark = pytest.mark.django_db(transaction=True)

NJOBS = 300
NVALIDATORS = 4
KILLS = 5
WAIT_SECS = 120.0

# Forks a validator for each line: to start Python and load the site for each would take most of the test's time.
# Passes until nothing waits, each of few workunits, so that there are many to be killed in.
VALIDATORS = """
import datetime as dt, os, sys, django
django.setup()
from credit.validator.passes import run_pass
from credit.models import Workunit
app_id, now = int(sys.argv[1]), dt.datetime.fromisoformat(sys.argv[2])
while sys.stdin.readline():
    if os.fork() == 0:
        print(os.getpid(), flush=True)
        while Workunit.objects.filter(app=app_id, need_validate=True).exists():
            run_pass(app_id, now, 5)
        os._exit(0)
"""


def project(app: App) -> SimulatedProject:
    rng = random.Random(5)
    computers = make_computers(rng, 24, anonymous_part=0.2)
    made = SimulatedProject(app, KINDS, release_versions(app), computers, rng)
    made.report(NJOBS, NOON - dt.timedelta(days=1), NOON)
    return made


class Validators:
    """The process that starts them; use it as a context manager."""

    def __init__(self, app: App) -> None:
        command = [sys.executable, "-c", VALIDATORS, str(app.pk), NOON.isoformat()]
        variables, pipe = environment(settings.VAR_DIR), subprocess.PIPE
        self._process = subprocess.Popen(command, env=variables, cwd=settings.BASE_DIR, stdin=pipe, stdout=pipe)
        self._started: list[int] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_raised: object) -> None:
        for pid in self._started:
            self.kill(pid)
        self._process.communicate()

    def start(self) -> int:
        """The number of one that is at work. It keeps it when it has ended, as nobody waits for it."""
        assert self._process.stdin is not None and self._process.stdout is not None
        self._process.stdin.write(b"\n")
        self._process.stdin.flush()
        self._started.append(int(self._process.stdout.readline()))
        return self._started[-1]

    def kill(self, pid: int) -> None:
        """By SIGKILL, wherever it is; return when it has ended."""
        os.kill(pid, signal.SIGKILL)
        end = os.pidfd_open(pid)
        select.select([end], [], [])
        os.close(end)


def samples() -> list[Any]:
    """Of each version: samples and grants; of each host's records: samples, and valid results in a row."""
    records = HostAppVersion.objects.order_by("host", "app_version", "processor_type")
    return [
        list(AppVersion.objects.order_by("pk").values_list("pk", "pfc_n", "ngranted")),
        list(records.values_list("host", "app_version", "processor_type", "pfc_n", "et_n", "consecutive_valid")),
    ]


def forget() -> None:
    """As before any validation."""
    Workunit.objects.update(
        need_validate=True,
        canonical_result=None,
        canonical_credit=None,
        assimilate_state=AssimilateState.INIT,
        transition_at=None,
    )
    Result.objects.update(
        validate_state=ValidateState.INIT, granted_credit=None, granted_at=None, grant_rule=None, claim_rule=None
    )
    HostAppVersion.objects.update(
        **{"pfc_n": 0, "pfc_avg": None, "et_n": 0, "et_avg": None, "et_var": None, "et_q": 0},
        **{"turnaround_n": 0, "turnaround_avg": None, "turnaround_var": None, "turnaround_q": 0},
        **{"consecutive_valid": 0, "error_rate": 0.1, "scale_probation": True},
    )
    AppVersion.objects.update(pfc_n=0, pfc_avg=None, expavg_credit=0, expavg_at=None, total_credit=0, ngranted=0)
    UserCredit.objects.all().delete()
    HostCredit.objects.all().delete()


def test_four_validators_killed_at_random_decide_everything_once() -> None:
    app = make_app()
    project(app)
    # What one validator makes of it, undisturbed.
    while run_pass(app.pk, NOON, 500).nworkunits:
        pass
    alone = samples()
    forget()

    rng = random.Random(time.time_ns())
    killed_at_work = 0
    with Validators(app) as validators:
        running = [validators.start() for _ in range(NVALIDATORS)]
        for kill in range(KILLS):
            # Killed at a random moment of its pass, which says nothing of where it is: there is nothing to wait for.
            time.sleep(rng.uniform(0, 0.1))
            killed_at_work += is_waiting()
            validators.kill(running[kill % NVALIDATORS])
            running[kill % NVALIDATORS] = validators.start()
        wait_until(lambda: not is_waiting(), "everything to be decided", WAIT_SECS, 0.05)
    assert killed_at_work >= 2
    check(alone)


def is_waiting() -> bool:
    return Workunit.objects.filter(need_validate=True).exists()


def check(alone: list[Any]) -> None:
    assert Workunit.objects.filter(need_validate=True).count() == 0
    decided = Workunit.objects.filter(canonical_result__isnull=False).count()
    assert decided == NJOBS
    # Each result was granted once: the statistics have as many samples as with one validator.
    assert samples() == alone
    granted = Result.objects.aggregate(credit=Sum("granted_credit"), count=Count("granted_credit"))
    assert granted["count"] == 2 * NJOBS
    for table in (UserCredit, HostCredit):
        total = table.objects.aggregate(credit=Sum("total_credit"))["credit"]
        assert total == pytest.approx(granted["credit"], rel=1e-9)
    assert list(statistics_check.differences()) == []
    connection.close()


def test_the_order_of_validators_changes_no_total_where_claims_do_not_depend_on_it() -> None:
    app = make_app(credit_system="actual_flops")
    project(app)
    Result.objects.update(fpops_cumulative=1e13)
    totals = []
    for limit in (50, 600):
        while run_pass(app.pk, NOON, limit).nworkunits:
            pass
        totals.append(dict(UserCredit.objects.values_list("user", "total_credit")))
        forget()
    assert totals[0] == pytest.approx(totals[1], rel=1e-12)
    assert sum(totals[0].values()) == pytest.approx(2 * NJOBS * 1e13 * 200 / 86400e9)
