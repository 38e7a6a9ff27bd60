"""Names in the admin come through the check of all doors, and are shown in their own direction."""

from __future__ import annotations

from django.test import Client

from portal.models import Host, User


def test_a_name_that_hides_something_is_refused(desk: Client, studio: Host) -> None:
    address = f"/admin/portal/host/{studio.pk}/change/"
    reply = desk.post(address, {"given_name": "attic\u202egnp", "venue": ""})
    assert "The name has an invisible character in it." in reply.content.decode()
    assert desk.post(address, {"given_name": " attic  two ", "venue": ""}).status_code == 302
    assert Host.objects.get(pk=studio.pk).given_name == "attic two"


def test_lists_show_names_in_their_own_direction(desk: Client, studio: Host, alice: User) -> None:
    User.objects.filter(pk=alice.pk).update(name="مريم")
    assert "<bdi>مريم</bdi>" in desk.get("/admin/portal/user/").content.decode()
    assert f"<bdi>{studio.name}</bdi>" in desk.get("/admin/portal/host/").content.decode()
