"""Every list costs the same number of statements, however long it is."""

from __future__ import annotations

import datetime as dt

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from accounting.models import ProjectKeyword, ProjectVersion
from emulator.models import Experiment, Run
from portal.models import Session, User
from portal.people.api_tokens import issue_token
from tests.support.accounting_factories import credit, make_host, make_note, make_project

pytestmark = pytest.mark.django_db

LISTS = [
    "/home/",
    "/computers/",
    "/computers/{host}/",
    "/computers/{host}/merge/",
    "/history/?by=project",
    "/history/?by=computer",
    "/history/?by=processor",
    "/history/days/{today}/",
    "/projects/",
    "/projects/{project}/",
    "/projects/keywords/",
    "/account/keys/",
    "/account/tokens/",
    "/account/sessions/",
    "/emulator/",
]


def grow(user: User, number: int) -> dict[str, object]:
    """This many more computers, projects, days, notes, tokens and sessions; something of each kind to open."""
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
        experiment = Experiment.objects.create(owner=user, title=f"experiment {n}", started_at=timezone.now())
        Run.objects.create(experiment=experiment, number=1, variant="Recent estimated credit", policy="rec")
        issue_token(user, name=f"token {n}", scopes=["read:hosts"], lifetime=None)
        key = f"{user.hosts.count():0>32}"
        Session.objects.create(session_key=key, user=user, expire_date=timezone.now() + dt.timedelta(days=1))
    return {"host": host.pk, "project": project.pk, "today": today}


def cost(client: Client, address: str) -> int:
    with CaptureQueriesContext(connection) as seen:
        assert client.get(address).status_code == 200
    return len(seen)


@pytest.mark.parametrize("address", LISTS)
def test_a_longer_list_costs_no_more_statements(client: Client, alice: User, address: str) -> None:
    # Two, so that a computer with several kinds of GPUs is among them.
    there = grow(alice, 2)
    client.force_login(alice)
    client.get(address.format(**there))
    short = cost(client, address.format(**there))
    grow(alice, 8)
    assert cost(client, address.format(**there)) == short
