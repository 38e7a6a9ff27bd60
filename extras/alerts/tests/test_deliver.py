"""Delivery of messages: to a browser that decrypts, a program that checks signatures, an ntfy server."""

from __future__ import annotations

import base64
import datetime as dt
import hashlib
import hmac
import json
import ssl
from collections.abc import Callable
from typing import Any

import pytest
import structlog
from django.conf import settings as site_settings
from django.db import DatabaseError, connection, connections
from django.utils import timezone
from pytest_django import Settings

import extras.alerts
from extras.alerts import deliver
from extras.alerts.apps import AlertsConfig
from extras.alerts.kinds.webhook import new_secret
from extras.alerts.models import AlertChannel, AlertMessage
from extras.alerts.tests.receivers import HOST, Receiver, add_browser, add_ntfy, add_webhook, silent_server
from portal.fetch.fetcher import FetchLimits
from portal.fetch.sender import send
from portal.models import User
from portal.wire import web_push
from tests.support.push_browser import PushBrowser, claims_of

pytestmark = pytest.mark.django_db
DAY = dt.timedelta(days=1)


def queue(channel: AlertChannel, title: str = "A computer is silent", **fields: Any) -> AlertMessage:
    return AlertMessage.objects.create(
        channel=channel, kind="silent", title=title, lines=["attic has not reported."], path="/computers/1/", **fields
    )


def due_again(**fields: Any) -> None:
    """Advance to the time at which messages are retried."""
    AlertMessage.objects.filter(outcome="waiting").update(due_at=timezone.now(), **fields)


def outcomes() -> list[str]:
    return list(AlertMessage.objects.order_by("pk").values_list("outcome", flat=True))


def test_a_browser_gets_an_alert_that_only_it_can_read_from_this_site(alice: User, tls: ssl.SSLContext) -> None:
    browser = PushBrowser()
    with Receiver(tls, "201 Created") as service:
        message = queue(add_browser(alice, f"{service.url}send/x", browser))
        assert deliver.deliver_due() == 1
    ((headers, body),) = service.received()
    assert service.requests[0].startswith(b"POST /send/x HTTP/1.1") and b"attic" not in body
    payload = json.loads(browser.decrypted(body))
    assert payload["body"] == "attic has not reported." and payload["tag"] == f"msg_{message.uid.hex}"
    assert payload["url"] == f"{site_settings.SITE_URL}computers/1/"
    claims = claims_of(headers["Authorization"])
    assert claims["aud"] == f"https://{HOST}:{service.port}"
    assert claims["k"] == web_push.public_key_text(web_push.parse_key(site_settings.VAPID_PRIVATE_KEY))


def test_a_webhook_can_check_that_it_is_from_this_site(alice: User, tls: ssl.SSLContext) -> None:
    secret = new_secret()
    with Receiver(tls) as program:
        queue(add_webhook(alice, f"{program.url}hook", secret))
        assert deliver.deliver_due() == 1
    ((headers, body),) = program.received()
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.".encode() + body
    key = base64.b64decode(secret.removeprefix("whsec_"))
    expected = base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
    assert headers["webhook-signature"] == f"v1,{expected}"
    assert abs(int(headers["webhook-timestamp"]) - timezone.now().timestamp()) < 300
    assert json.loads(body)["data"]["lines"] == ["attic has not reported."]


def test_ntfy_gets_text_with_a_token(alice: User, tls: ssl.SSLContext) -> None:
    with Receiver(tls) as server:
        queue(add_ntfy(alice, f"{server.url}topic", "tk_1"), title="Ein Rechner schweigt – „Dach“")
        assert deliver.deliver_due() == 1
    ((headers, body),) = server.received()
    assert body == b"attic has not reported." and headers["Authorization"] == "Bearer tk_1"
    assert headers["Title"].startswith("=?utf-8?") and headers["Priority"] == "3"


def test_a_sent_message_is_not_sent_again(alice: User, tls: ssl.SSLContext) -> None:
    with Receiver(tls) as server:
        queue(add_ntfy(alice, server.url))
        assert (deliver.deliver_due(), deliver.deliver_due()) == (1, 0)
        assert len(server.requests) == 1
    assert AlertChannel.objects.get().last_sent_at is not None


def test_what_fails_is_tried_again_later_under_the_same_id(alice: User, tls: ssl.SSLContext) -> None:
    with Receiver(tls, "503 Busy", "200 OK") as server:
        queue(add_webhook(alice, server.url))
        assert deliver.deliver_due() == 0
        message, channel = AlertMessage.objects.get(), AlertChannel.objects.get()
        assert message.outcome == "waiting" and message.due_at > timezone.now()
        assert "status 503" in message.answer and channel.failing_since is not None
        assert deliver.deliver_due() == 0 and len(server.requests) == 1
        due_again()
        assert deliver.deliver_due() == 1
        first, second = (headers["webhook-id"] for headers, _ in server.received())
    assert first == second and AlertChannel.objects.get().failing_since is None


@pytest.mark.parametrize("status", ["404 Not Found", "410 Gone"])
def test_a_channel_that_is_gone_is_paused_with_all_that_waits(alice: User, tls: ssl.SSLContext, status: str) -> None:
    with Receiver(tls, status) as server:
        channel = add_ntfy(alice, server.url)
        queue(channel)
        queue(channel, due_at=timezone.now() + DAY)
        deliver.deliver_due()
    channel.refresh_from_db()
    assert channel.paused_at is not None and "address no longer exists" in channel.fault
    assert outcomes() == ["failed", "failed"]


def test_a_channel_that_has_failed_for_days_is_paused(alice: User, tls: ssl.SSLContext) -> None:
    with Receiver(tls, "500 Oh") as server:
        channel = add_ntfy(alice, server.url)
        queue(channel)
        deliver.deliver_due()
        AlertChannel.objects.update(failing_since=timezone.now() - 3 * DAY)
        for _ in range(2):
            assert AlertChannel.objects.get().paused_at is None
            due_again()
            deliver.deliver_due()
    assert AlertChannel.objects.get().paused_at is not None and outcomes() == ["failed"]


def test_what_could_not_be_sent_for_a_day_is_given_up(alice: User, tls: ssl.SSLContext) -> None:
    with Receiver(tls) as server:
        queue(add_ntfy(alice, server.url), created_at=timezone.now() - DAY)
        assert deliver.deliver_due() == 0 and server.requests == []
    assert outcomes() == ["failed"]


def test_a_private_address_is_never_sent_to(alice: User, tls: ssl.SSLContext, settings: Settings) -> None:
    """Whatever was in the table before, or whatever a name resolves to now."""
    settings.FETCH_ALLOWED_NETWORKS = []
    with Receiver(tls) as server:
        for url in (server.url, "https://10.0.0.1/", "https://[::1]/", "https://169.254.169.254/"):
            queue(add_webhook(alice, url))
        queue(add_browser(alice, f"{server.url}push", PushBrowser()))
        while deliver.deliver_due() or AlertMessage.objects.filter(outcome="waiting").exists():
            pass
        assert server.requests == []
    assert set(outcomes()) == {"failed"} and not AlertChannel.objects.filter(paused_at=None).exists()
    assert {message.answer for message in AlertMessage.objects.all()} == {
        "This address cannot be used: alerts are only sent to public addresses on the internet."
    }


def test_a_redirect_is_not_followed_and_its_owner_is_told(alice: User, tls: ssl.SSLContext) -> None:
    with Receiver(tls, "302 Found") as server:
        queue(add_webhook(alice, server.url))
        deliver.deliver_due()
        assert len(server.requests) == 1
    assert "redirects to another one" in AlertMessage.objects.get().answer


def test_a_slow_channel_holds_up_nobody_else(
    alice: User, bob: User, tls: ssl.SSLContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One volunteer has more slow ones than there are threads: only a few of them are tried at once."""
    monkeypatch.setattr(deliver, "SEND_LIMITS", FetchLimits(total_secs=2.0))
    monkeypatch.setattr(deliver, "THREADS", 2)
    monkeypatch.setattr(deliver, "RUN_SECS", 0.0)
    with silent_server(tls) as slow, Receiver(tls) as quick:
        for _ in range(9):
            queue(add_ntfy(alice, slow.url))
        queue(add_ntfy(bob, quick.url))
        assert deliver.deliver_due() == 1
    tried = AlertMessage.objects.filter(ntries__gt=0, outcome="waiting")
    assert (
        list(tried.values_list("ntries", "answer"))
        == [(1, "The server could not be reached, or did not answer in time.")] * deliver.PER_PERSON
    )


def test_a_worker_that_dies_loses_nothing(alice: User, tls: ssl.SSLContext) -> None:
    """It took the message, and died before or after sending it: after the lease another one sends it."""
    with Receiver(tls) as server:
        queue(add_webhook(alice, server.url))
        assert len(deliver._take(timezone.now())) == 1
        assert deliver.deliver_due() == 0
        AlertMessage.objects.update(due_at=timezone.now())
        assert deliver.deliver_due() == 1 and len(server.requests) == 1
    assert AlertMessage.objects.get().ntries == 2


def test_two_workers_take_different_messages(alice: User, bob: User) -> None:
    for user in (alice, bob):
        for _ in range(2):
            queue(add_ntfy(user, f"https://{HOST}/"))
    now = timezone.now()
    first = {message.pk for message in deliver._take(now)}
    assert len(first) == 4 and deliver._take(now) == []


def test_an_error_with_one_message_does_not_send_those_of_others_again(
    alice: User, bob: User, tls: ssl.SSLContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    real: Callable[..., bool] = deliver._note

    def broken(message: AlertMessage, *answer: Any) -> bool:
        if message.channel.user_id == alice.pk:
            raise DatabaseError
        return real(message, *answer)

    monkeypatch.setattr(deliver, "_note", broken)
    with Receiver(tls) as server:
        for user in (alice, alice, bob, bob):
            queue(add_ntfy(user, server.url))
        assert deliver.deliver_due() == 2 and len(server.requests) == 4
    assert outcomes() == ["waiting", "waiting", "sent", "sent"]


def test_the_messages_of_a_channel_come_in_their_order(alice: User, tls: ssl.SSLContext) -> None:
    with Receiver(tls) as server:
        channel = add_ntfy(alice, server.url)
        for number in range(3):
            queue(channel, title=f"number {number}")
        assert deliver.deliver_due() == 3
        assert [headers["Title"] for headers, _ in server.received()] == ["number 0", "number 1", "number 2"]


def test_nothing_is_sent_for_those_who_leave_or_are_blocked(alice: User, bob: User, tls: ssl.SSLContext) -> None:
    with Receiver(tls) as server:
        for user, change in ((alice, {"is_active": False}), (bob, {"deletion_asked_at": timezone.now()})):
            queue(add_ntfy(user, server.url))
            User.objects.filter(pk=user.pk).update(**change)
        assert deliver.deliver_due() == 0 and server.requests == []


def test_with_another_secret_of_the_site_channels_are_paused_and_their_owners_told(
    alice: User, settings: Settings
) -> None:
    queue(add_webhook(alice, f"https://{HOST}/"))
    settings.ACCOUNT_KEY_SECRET = "another one " * 4
    deliver.deliver_due()
    channel = AlertChannel.objects.get()
    assert channel.paused_at is not None and "can no longer be read" in channel.fault


def test_no_transaction_is_open_while_something_is_sent(
    alice: User, tls: ssl.SSLContext, monkeypatch: pytest.MonkeyPatch, transactional_db: None
) -> None:
    own, open_then = connections["default"], []
    real: Callable[..., Any] = send

    def watched(*args: Any) -> Any:
        open_then.append(own.in_atomic_block)
        return real(*args)

    monkeypatch.setattr(deliver, "send", watched)
    with Receiver(tls) as server:
        queue(add_ntfy(alice, server.url))
        assert deliver.deliver_due() == 1
    assert open_then == [False]


def test_nothing_secret_is_stored_in_clear_or_logged(alice: User, tls: ssl.SSLContext) -> None:
    secret, token = new_secret(), "tk_very_secret"
    with Receiver(tls, "500 Oh") as server, structlog.testing.capture_logs() as logged:
        queue(add_webhook(alice, f"{server.url}secret-path", secret))
        queue(add_ntfy(alice, f"{server.url}secret-path", token))
        deliver.deliver_due()
        assert len(server.requests) == 2
    with connection.cursor() as cursor:
        cursor.execute("SELECT c::text, m::text FROM alerts_alertchannel c JOIN alerts_alertmessage m ON true")
        stored = str(cursor.fetchall())
    for each in (secret, token, "secret-path"):
        assert each not in stored and each.encode().hex() not in stored and each not in str(logged)
    assert len(logged) == 2


def test_what_came_of_it_is_said_in_the_language_of_the_owner(alice: User, tls: ssl.SSLContext) -> None:
    User.objects.filter(pk=alice.pk).update(language="de")
    with Receiver(tls, "429 Slow") as server:
        queue(add_ntfy(alice, server.url))
        deliver.deliver_due()
    assert AlertMessage.objects.get().answer == "Laut dem Server bekommt er zu viele Nachrichten (Status 429)."


def test_old_messages_are_removed(alice: User) -> None:
    now = timezone.now()
    channel = add_ntfy(alice, f"https://{HOST}/")
    for finished_at in (now - deliver.KEPT - dt.timedelta(minutes=1), now):
        queue(channel, outcome="sent", finished_at=finished_at)
    queue(channel)
    assert deliver.delete_old(now) == 1 and outcomes() == ["sent", "waiting"]


def test_metrics_say_how_alerts_fare(alice: User) -> None:
    queue(add_ntfy(alice, f"https://{HOST}/"), due_at=timezone.now() - dt.timedelta(hours=1))
    channel = add_webhook(alice, f"https://{HOST}/")
    AlertChannel.objects.filter(pk=channel.pk).update(paused_at=timezone.now())
    (collector,) = AlertsConfig("extras.alerts", extras.alerts).collectors()
    found = {
        (sample.name, *sample.labels.values()): sample.value
        for metric in collector.collect()
        for sample in metric.samples
    }
    assert found["cobblestone_alert_channels", "webhook", "paused"] == 1
    assert found["cobblestone_alert_channels", "ntfy", "in use"] == 1
    assert found["cobblestone_alerts_day", "ntfy", "waiting"] == 1
    assert 3600 <= found["cobblestone_alerts_oldest_seconds",] < 3700


def test_what_could_not_be_sent_in_time_is_told_in_the_language_of_its_reader(alice: User, bob: User) -> None:
    User.objects.filter(pk=bob.pk).update(language="de")
    for user in (alice, bob):
        queue(add_webhook(user, f"https://{HOST}/{user.pk}"), created_at=timezone.now() - 2 * DAY)
    deliver.deliver_due()
    assert list(AlertMessage.objects.order_by("pk").values_list("outcome", "answer")) == [
        ("failed", "It could not be sent within a day."),
        ("failed", "Sie konnte innerhalb eines Tages nicht gesendet werden."),
    ]
