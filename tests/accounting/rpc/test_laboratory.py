"""A laboratory in one account: three hundred computers that are installed from images with a join token."""

from __future__ import annotations

import datetime as dt

import pytest
from django.test import Client

from accounting.models import HostProject, Project
from portal.computers.new_hosts import TooManyHosts
from portal.models import ClientKey, Host, JoinToken, User
from portal.people.join_tokens import make_join_token
from tests.support.am_rpc import HOUR, START, call, make_computer
from tests.support.page_text import text_of
from tools.simulation.client import SimulatedComputer

COMPUTERS = 300


def test_three_hundred_computers_join_are_told_together_and_are_installed_again(
    alice: User, signed_in: Client, projects: list[Project]
) -> None:
    token, text = make_join_token(alice, group="lab 2", max_hosts=COMPUTERS, lifetime=dt.timedelta(days=7))

    def installed(number: int) -> SimulatedComputer:
        return make_computer(alice, f"pc-{number:03}", email=token.login, password=text)

    computers = [installed(number) for number in range(COMPUTERS)]
    for second, computer in enumerate(computers):
        reply = call(computer, START + dt.timedelta(seconds=second))
        assert (reply.error, set(reply.accounts)) == ((0, ""), {project.master_url for project in projects})
    with pytest.raises(TooManyHosts, match="This join token has been used for all its computers"):
        call(installed(COMPUTERS), START + dt.timedelta(minutes=10))
    assert ClientKey.objects.filter(revoked_at=None).count() == Host.objects.filter(owner=alice).count() == COMPUTERS

    asked = {"group": "lab 2", "scope": "all", "action": "no_new_work", "project": str(projects[0].pk)}
    said = text_of(signed_in.post("/computers/change/", asked, follow=True))
    assert f"{COMPUTERS} computers were changed." in said
    # Nobody's key has ended by another's.
    told = [call(computer, START + 6 * HOUR).account(projects[0]) for computer in computers]
    assert None not in [account.find("dont_request_more_work") for account in told]
    assert HostProject.objects.filter(project=projects[0], listed=True).count() == COMPUTERS

    # Images are written again in the night: other clients, with the names of these computers.
    for second, computer in enumerate([installed(number) for number in range(COMPUTERS)]):
        assert call(computer, START + 12 * HOUR + dt.timedelta(seconds=second)).error == (0, "")
    assert Host.objects.filter(owner=alice).count() == JoinToken.objects.get().joined_hosts == COMPUTERS
