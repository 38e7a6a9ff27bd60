"""The history on a computer's own page."""

from __future__ import annotations

from django.test import Client
from django.urls import reverse
from django.utils import timezone

from portal.models import User
from portal.templatetags import display
from tests.support.accounting_factories import credit, make_host, make_project


def test_a_computers_page_draws_its_own_days(client: Client, alice: User) -> None:
    today = str(timezone.now().date())
    studio, attic = make_host(alice, "studio"), make_host(alice, "attic")
    alpha, beta = make_project("Alpha"), make_project("Beta")
    credit(studio, alpha, today, (10_000_000, 0, 0, 0, 1, 0))
    credit(studio, beta, today, (0, 5_000_000, 0, 0, 1, 0))
    credit(attic, alpha, today, (70_000_000, 0, 0, 0, 1, 0))
    client.force_login(alice)
    page = client.get(reverse("host", args=[studio.pk])).content.decode()
    # 10 + 5 credits of its own, nothing of the other's
    assert f"{display.day(timezone.now().date())}: 15 credits" in page
    assert ": 70 credits" not in page
    assert f"{reverse('history')}?host={studio.pk}" in page
