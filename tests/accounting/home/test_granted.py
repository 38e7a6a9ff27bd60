"""What was granted here, beside what computers estimated."""

from __future__ import annotations

from django.test import Client
from django.urls import reverse
from pytest_django.fixtures import Settings

from credit.models import HostCredit, UserCredit
from portal.models import Host, User
from tests.support.page_text import text_of


def test_granted_credit_stands_beside_the_estimate(client: Client, alice: User, studio: Host) -> None:
    UserCredit.objects.create(user=alice, total_credit=163.2)
    HostCredit.objects.create(host=studio, total_credit=150.5)
    client.force_login(alice)
    assert "This site’s project has granted 163 credits" in text_of(client.get(reverse("home")))
    assert "This site’s project has granted 15" in text_of(client.get(reverse("host", args=[studio.pk])))


def test_without_a_project_nothing_is_said_of_granted_credit(
    client: Client, alice: User, studio: Host, settings: Settings
) -> None:
    UserCredit.objects.create(user=alice, total_credit=163.2)
    settings.ROOMS = ["account_manager"]
    client.force_login(alice)
    assert "has granted" not in text_of(client.get(reverse("home")))
