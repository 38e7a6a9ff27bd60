"""Names in the admin come through the check of all doors, and are shown in their own direction."""

from __future__ import annotations

import pytest
from django.test import Client

from portal.models import Host, User


@pytest.fixture
def operators(client: Client, operator: User) -> Client:
    client.force_login(operator)
    return client


def test_a_name_that_hides_something_is_refused(operators: Client, studio: Host) -> None:
    address = f"/admin/portal/host/{studio.pk}/change/"
    reply = operators.post(address, {"given_name": "attic\u202egnp", "venue": ""})
    assert "The name has an invisible character in it." in reply.content.decode()
    assert operators.post(address, {"given_name": " attic  two ", "venue": ""}).status_code == 302
    assert Host.objects.get(pk=studio.pk).given_name == "attic two"


def test_lists_show_names_in_their_own_direction(operators: Client, studio: Host, alice: User) -> None:
    User.objects.filter(pk=alice.pk).update(name="مريم")
    assert "<bdi>مريم</bdi>" in operators.get("/admin/portal/user/").content.decode()
    assert f"<bdi>{studio.name}</bdi>" in operators.get("/admin/portal/host/").content.decode()
