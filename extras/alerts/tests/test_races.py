"""Races of two sessions for the same channel."""

from __future__ import annotations

import pytest
from django.db import transaction
from django.utils import timezone

from extras.alerts import channels
from extras.alerts.models import AlertChannel, AlertMessage
from extras.alerts.tests.receivers import HOST, add_browser, add_webhook
from portal.models import User
from tests.support.lock_waits import meanwhile
from tests.support.push_browser import PushBrowser

pytestmark = pytest.mark.django_db(transaction=True)
PUSH = f"https://{HOST}/push"


def test_two_people_who_add_one_browser_at_the_same_moment_get_no_error(alice: User, bob: User) -> None:
    browser = PushBrowser()
    with meanwhile(lambda: add_browser(bob, PUSH, browser)) as begin:
        with transaction.atomic():
            add_browser(alice, PUSH, browser)
            second = begin()
        second.result()
    assert AlertChannel.objects.get().user == bob


@pytest.mark.parametrize("what", ["remove", "take over"])
def test_a_channel_is_removed_while_a_worker_writes_down_what_came_of_its_messages(
    alice: User, bob: User, what: str
) -> None:
    """Workers lock in this order: the channel, then its messages."""
    browser = PushBrowser()
    channel = add_browser(alice, PUSH, browser)
    message = AlertMessage.objects.create(channel=channel, kind="silent", title="x", path="/")

    def change() -> object:
        return channels.remove(alice, channel.pk) if what == "remove" else add_browser(bob, PUSH, browser)

    with meanwhile(change) as begin:
        with transaction.atomic():
            AlertChannel.objects.select_for_update(no_key=True).get(pk=channel.pk)
            second = begin()
            rows = AlertMessage.objects.filter(pk=message.pk)
            assert rows.update(outcome="sent", finished_at=timezone.now()) == 1
        assert second.result()
    assert not AlertMessage.objects.exists() and not AlertChannel.objects.filter(user=alice).exists()


def test_other_channels_stay_when_one_is_removed(alice: User) -> None:
    first, second = (add_webhook(alice, f"https://{HOST}/") for _ in range(2))
    assert channels.remove(alice, first.pk) and not channels.remove(alice, first.pk)
    assert AlertChannel.objects.get() == second
