"""Requests to webhooks, to ntfy and to push services."""

from __future__ import annotations

import datetime as dt
import json
from dataclasses import replace
from email.header import decode_header, make_header

import pytest

from extras.alerts.kinds.ntfy import MAX_NTFY_BYTES, ntfy_request
from extras.alerts.kinds.push import Sender, parse_subscription, push_request
from extras.alerts.kinds.webhook import new_secret, signature, webhook_request
from extras.alerts.wire import MAX_LINE_CHARS, MAX_LINES, Alert, Destination, DestinationError, clean
from portal.wire import web_push
from tests.support.push_browser import PushBrowser, claims_of

NOW = dt.datetime(2026, 3, 10, 12, tzinfo=dt.UTC)
ALERT = Alert("msg_1", "silent", False, "A computer is silent", ("attic: 3 days.",), "https://s.test/computers/1/", NOW)


def test_the_signature_is_that_of_the_example_of_standard_webhooks() -> None:
    """From the tests of the reference libraries (github.com/standard-webhooks/standard-webhooks)."""
    secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
    made = signature(secret, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, b'{"test": 2432232314}')
    assert made == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


@pytest.mark.parametrize("secret", ["", "whsec_", "whsec_***", "whsec_QUJD", "whsec_" + "QUJD" * 100])
def test_a_secret_that_is_too_short_too_long_or_none_signs_nothing(secret: str) -> None:
    with pytest.raises(DestinationError, match="24 to 64 bytes"):
        signature(secret, "msg_1", 1, b"")


def test_secrets_differ() -> None:
    assert new_secret() != new_secret() and signature(new_secret(), "1", 1, b"")


def test_a_webhook_is_told_what_when_and_where_to_look() -> None:
    request = webhook_request(ALERT, Destination("https://hook.test/x", key=new_secret()), 1_700_000_000)
    assert request.url == "https://hook.test/x" and request.headers["webhook-id"] == "msg_1"
    assert json.loads(request.body) == {
        "type": "alert.silent",
        "timestamp": "2026-03-10T12:00:00+00:00",
        "data": {
            "id": "msg_1",
            "kind": "silent",
            "state": "begun",
            "title": "A computer is silent",
            "lines": ["attic: 3 days."],
            "url": "https://s.test/computers/1/",
        },
    }


def test_ntfy_gets_plain_text_and_headers() -> None:
    request = ntfy_request(ALERT, Destination("https://ntfy.test/topic", token="tk_1"))
    assert request.body == b"attic: 3 days."
    assert request.headers["Title"] == "A computer is silent" and request.headers["Authorization"] == "Bearer tk_1"
    assert (request.headers["Priority"], request.headers["Tags"]) == ("3", "warning")
    assert request.headers["Click"] == ALERT.url
    assert "Authorization" not in ntfy_request(ALERT, Destination("https://ntfy.test/topic")).headers


def test_a_long_alert_loses_lines_so_that_ntfy_shows_it_as_a_message() -> None:
    """ntfy treats longer texts as files, which many servers refuse."""
    alert = replace(ALERT, lines=tuple("計" * MAX_LINE_CHARS for _ in range(MAX_LINES)))
    body = ntfy_request(alert, Destination("https://ntfy.test/topic")).body
    assert 3000 < len(body) <= MAX_NTFY_BYTES and body.decode().endswith("計\n…")


def test_what_matters_more_is_more_urgent() -> None:
    to = Destination("https://ntfy.test/topic")
    assert ntfy_request(replace(ALERT, kind="security"), to).headers["Priority"] == "4"
    assert ntfy_request(replace(ALERT, is_over=True), to).headers["Priority"] == "2"


@pytest.mark.parametrize("title", ["Ein Rechner schweigt – „Dachboden“", "計算機", "x" * 60 + "é" * 60])
def test_a_title_in_any_script_is_one_header_of_ascii(title: str) -> None:
    header = ntfy_request(replace(ALERT, title=title), Destination("https://n.test/t")).headers["Title"]
    assert header.isascii() and "\n" not in header and "\r" not in header
    assert str(make_header(decode_header(header))) == title


def test_a_name_that_somebody_chose_begins_no_line() -> None:
    assert clean("attic\r\nX-Other: 1\0\u2028\u202e", 100) == "attic X-Other: 1"
    assert clean("x" * 400, MAX_LINE_CHARS) == "x" * (MAX_LINE_CHARS - 1) + "…"


def test_a_browser_reads_its_alert_and_knows_who_sent_it() -> None:
    browser = PushBrowser()
    to = parse_subscription(browser.subscription("https://push.test:8443/send/abc"))
    sender = Sender(web_push.parse_key(web_push.new_key_text()), "https://s.test/")
    request = push_request(ALERT, to, sender, 1_700_000_000)
    assert json.loads(browser.decrypted(request.body)) == {
        "title": "A computer is silent",
        "body": "attic: 3 days.",
        "url": "https://s.test/computers/1/",
        "tag": "msg_1",
    }
    claims = claims_of(request.headers["Authorization"])
    assert claims["aud"] == "https://push.test:8443" and claims["sub"] == "https://s.test/"
    assert claims["exp"] == 1_700_000_000 + web_push.VALID_SECS
    assert claims["k"] == web_push.public_key_text(sender.key)
    assert request.headers["Content-Encoding"] == "aes128gcm" and request.headers["TTL"] == "86400"


def test_a_long_alert_loses_lines_so_that_a_push_service_takes_it() -> None:
    browser = PushBrowser()
    to = parse_subscription(browser.subscription("https://push.test/abc"))
    sender = Sender(web_push.parse_key(web_push.new_key_text()), "https://s.test/")
    alert = replace(ALERT, title="題" * 120, lines=tuple("計" * MAX_LINE_CHARS for _ in range(MAX_LINES)))
    payload = json.loads(browser.decrypted(push_request(alert, to, sender, 1).body))
    assert payload["body"].endswith("\n…") and payload["title"] == alert.title


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "null",
        "{}",
        "[" * 3000,
        '{"endpoint": 7, "keys": {"p256dh": "x", "auth": "y"}}',
        '{"endpoint": "https://p.test/", "keys": []}',
        '{"endpoint": "https://p.test/", "keys": {"p256dh": "AA", "auth": "AA"}}',
        PushBrowser().subscription("https://p.test/" + "x" * 1000),
        PushBrowser().subscription("https://p.test/\ud800"),
        PushBrowser().subscription("https://p.test/é"),
        "x" * 5000,
    ],
)
def test_what_is_no_subscription_is_refused(text: str) -> None:
    with pytest.raises(DestinationError):
        parse_subscription(text)
