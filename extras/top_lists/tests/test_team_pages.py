"""The pages of teams: found, find, join, leave and transfer one."""

from __future__ import annotations

import pytest
from django.test import Client

from credit.models import Team
from credit.teams import membership, reads
from portal.models import User

pytestmark = pytest.mark.django_db


def test_a_volunteer_founds_finds_and_leaves_a_team_on_the_pages(signed_in: Client, alice: User) -> None:
    assert "You are not in a team" in signed_in.get("/project/teams/").content.decode()
    signed_in.post("/project/teams/new/", {"name": "  Peaks  <b> ", "type": "6"})
    team = Team.objects.get(founder=alice)
    assert team.name == "Peaks <b>"
    page = signed_in.get(f"/project/teams/{team.pk}/").content.decode()
    assert "Leave this team" in page and "Peaks &lt;b&gt;" in page
    taken = signed_in.post("/project/teams/new/", {"name": "PEAKS <b>", "type": "6"}).content.decode()
    assert "team with this name already" in taken
    signed_in.post(f"/project/teams/{team.pk}/change/", {"leave": ""})
    assert reads.team_of(alice) is None
    reversed_name = signed_in.post("/project/teams/new/", {"name": "Peaks\u202e", "type": "6"})
    assert "invisible character" in reversed_name.content.decode()
    assert "No team found" in signed_in.get("/project/teams/?q=valley").content.decode()
    assert "No team found" in signed_in.get("/project/teams/?q=pe%00aks").content.decode()


def test_nobody_takes_a_team_by_the_form(alice: User, client: Client, bob: User) -> None:
    peaks = membership.found(alice, Team(name="Peaks"))
    client.force_login(bob)
    client.post(f"/project/teams/{peaks.pk}/change/", {"hand_on": str(bob.pk)})
    assert Team.objects.get().founder_id != bob.pk
