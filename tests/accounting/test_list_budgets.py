"""Every list costs the same number of statements, however long it is."""

from __future__ import annotations

import datetime as dt
from typing import Final

import pytest
from django.test import Client
from django.utils import timezone

from accounting.models import ProjectKeyword, ProjectVersion
from emulator.models import Experiment, Run
from portal.models import ClientKey, Session, User
from portal.people.accounts import issue_client_key
from portal.people.api_tokens import issue_token
from tests.support.accounting_factories import credit, make_host, make_note, make_project
from tests.support.page_reader import page_of
from tools.benchmarks.harness.statements import statements

pytestmark = pytest.mark.django_db

# Each list with its largest number of statements. Three read the session, the user, and whether the address is
# confirmed.
LISTS: Final = {
    # Sums, computers, total, names of projects; when a computer counts as silent, programs, types, what computers said
    # about projects, failed jobs, capped days, computers told apart, granted credit, days, notes; tasks; which days are
    # settled, and what is open; jobs of the site’s own project.
    "/home/": 20,
    # Computers, totals, today, when one counts as silent; revoked keys, programs, types, projects, jobs, capped days,
    # notes; all projects.
    "/computers/": 16,
    "/computers/{host}/": 35,
    "/computers/{host}/merge/": 99,
    # Computers and projects to choose from; days, names, notes; credit, how far settled, and what is open; the recent
    # average.
    "/history/?by=project": 12,
    "/history/?by=computer": 12,
    "/history/?by=processor": 12,
    # And the first day (three).
    "/history/?by=project&range=all": 15,
    # And another range, and the days before the first.
    "/history/?by=project&range=30&compare=year&curve=mean&scale=root": 14,
    # Rows, projects, computers, notes with their projects.
    "/history/days/{today}/": 7,
    "/projects/": 16,
    "/projects/{project}/": 17,
    "/projects/keywords/": 8,
    "/account/keys/": 99,
    "/account/tokens/": 99,
    "/account/sessions/": 99,
    "/emulator/": 99,
}


def grow(user: User, number: int) -> dict[str, object]:
    """Add this many computers, projects, days, notes, keys, tokens and sessions; return one of each kind to open."""
    today = timezone.now().date()
    for n in range(number):
        project = make_project(account_key=f"1_{n}", colour=n)
        ProjectKeyword.objects.create(project=project, keyword=1)
        ProjectVersion.objects.create(project=project, processor_type="NVIDIA")
        types = ("NVIDIA", "ATI")[: 1 + n % 2]
        gpus = [{"type": type_, "count": 1, "name": type_} for type_ in types]
        host = make_host(user, f"node {user.hosts.count()}", coprocs=gpus)
        credit(host, project, str(today), (1, 2, 3, 4, 5, 6), flags=1)
        make_note(host, "dropped", str(today), project=project)
        issue_client_key(user, ClientKey.Origin.ATTACH, host)
        experiment = Experiment.objects.create(owner=user, title=f"experiment {n}", started_at=timezone.now())
        Run.objects.create(experiment=experiment, number=1, variant="Recent estimated credit", policy="rec")
        issue_token(user, name=f"token {n}", scopes=["read:hosts"], lifetime=None)
        key = f"{user.hosts.count():0>32}"
        Session.objects.create(session_key=key, user=user, expire_date=timezone.now() + dt.timedelta(days=1))
    return {"host": host.pk, "project": project.pk, "today": today}


@pytest.mark.parametrize(("address", "most"), LISTS.items())
def test_a_longer_list_costs_no_more_statements(client: Client, alice: User, address: str, most: int) -> None:
    # Two, so that a computer with several kinds of GPUs is among them.
    there = grow(alice, 2)
    client.force_login(alice)
    address = address.format(**there)
    client.get(address)
    short = statements(lambda: page_of(client, address))
    assert short <= most
    grow(alice, 8)
    assert statements(lambda: page_of(client, address)) == short
