"""Computers that report to the account manager, for scenes of several sessions: each has rows of its own."""

from __future__ import annotations

import datetime as dt
import itertools
from typing import Any

from django.utils import timezone

from accounting.computers.merge import MergeRefused
from accounting.engine.amounts import MICRO
from accounting.ledger import check
from accounting.models import Day, HostLedger, HostProject, Project
from accounting.rpc import answer as rpc_answer
from accounting.wire.requests import parse_request
from portal.clients import sync_driver
from portal.models import ClientKey, Host, User
from portal.people.accounts import ClientAuthError
from portal.wire import credentials
from tests.support.interleavings import Work
from tests.support.simulated.clients import ENOUGH, P_FPOPS, Computer

_numbers = itertools.count(1)
NOTHING = [0] * 6


def volunteer() -> User:
    return User.objects.create_user(f"v{next(_numbers)}@example.org", "secret")


def computer_of(user: User, projects: list[Project], **fields: Any) -> Computer:
    """A computer that is attached to the projects, has reported no work yet, and has a large allowance."""
    now = timezone.now()
    host = Host.objects.create(
        owner=user,
        domain_name="testhost",
        ncpus=8,
        p_fpops=P_FPOPS,
        os_name="Linux Debian",
        p_vendor="GenuineIntel",
        p_model="Test CPU",
        **fields,
    )
    HostLedger.objects.create(host=host, last_at=now - dt.timedelta(days=1), level=[ENOUGH] * 5)
    HostProject.objects.bulk_create(
        HostProject(host=host, project=project, reported=NOTHING, handed=NOTHING, listed=True) for project in projects
    )
    key = credentials.new_client_key()
    ClientKey.objects.create(
        user=user, host=host, origin=ClientKey.Origin.ATTACH, key_hash=credentials.key_hash(key), last_used_at=now
    )
    return Computer(host.pk, user.pk, key, host.token)


def report(computer: Computer, secs: int) -> Work:
    """The computer's report of this many seconds of work in all at each project."""

    def work() -> bytes | ClientAuthError:
        asked = Computer(computer.id, computer.owner, computer.key, computer.token, secs=secs)
        request = parse_request(asked.report())
        try:
            return sync_driver.run(rpc_answer.answer(request, now=timezone.now(), address="192.0.2.1"))
        except ClientAuthError as refused:
            return refused

    return work


def secs_of(user_id: int) -> dict[str, float]:
    """Seconds that are credited to a person, by project."""
    found: dict[str, float] = {}
    for day in Day.objects.filter(user=user_id).select_related("project"):
        found[day.project.name] = found.get(day.project.name, 0) + day.cpu_time / MICRO
    return found


def books_are_right() -> None:
    assert list(check.differences()) == []


def confirmed(outcomes: list[Any]) -> list[bool]:
    return [isinstance(outcome, bytes) for outcome in outcomes]


def or_refusal(work: Work) -> Work:
    """A refused merge is no failure: it is what the session returns."""

    def done() -> Any:
        try:
            return work()
        except MergeRefused as refused:
            return refused

    return done
