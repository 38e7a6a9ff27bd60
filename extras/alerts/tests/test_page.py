"""The page of alerts: channels are added, configured, tried, paused and removed, only by their owner."""

from __future__ import annotations

import json
import ssl
from ipaddress import ip_network

import pytest
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from accounting.account_data import copies
from extras.alerts import channels, deliver
from extras.alerts.destinations import decrypt_destination
from extras.alerts.kinds.webhook import signature
from extras.alerts.models import AlertChannel, AlertMessage
from extras.alerts.reads import WATCHED_FOR
from extras.alerts.tests.receivers import HOST, Receiver, add_browser, add_ntfy, add_webhook, silent_server
from extras.alerts.wire import MAX_URL_CHARS
from portal.fetch.fetcher import FetchLimits
from portal.models import User
from portal.sign_in import throttle
from portal.wire import web_push
from tests.support.page_reader import Page, page_of
from tests.support.push_browser import PushBrowser
from tests.support.sessions import sign_in_lately
from tools.benchmarks.harness.statements import statements

pytestmark = pytest.mark.django_db
ALERTS = "/account/alerts/"
HOOK = f"https://{HOST}/hook-of-alice"


@pytest.fixture
def own_machine(settings: Settings) -> None:
    settings.FETCH_ALLOWED_NETWORKS = [ip_network("127.0.0.0/8")]


def shown(client: Client) -> str:
    return page_of(client, ALERTS).words


def test_without_channels_the_page_says_what_there_could_be(signed_in: Client) -> None:
    reply = signed_in.get(ALERTS)
    page = Page(reply.content.decode())
    assert "No alerts yet" in page.words and "no-store" in reply.headers["Cache-Control"]
    key = page.one("section", data_push="").attributes["data-push-key"]
    assert len(web_push._decoded("key", key, 65)) == 65


def test_a_webhook_is_added_and_its_secret_shown_once(signed_in: Client, own_machine: None) -> None:
    reply = signed_in.post(f"{ALERTS}webhook/", {"webhook-url": HOOK, "webhook-name": ""})
    secret = Page(reply.content.decode()).one("code", id="webhook-secret").text
    channel = AlertChannel.objects.get()
    assert reply.status_code == 200 and signature(secret, "1", 1, b"") == signature(
        decrypt_destination(channel).key, "1", 1, b""
    )
    assert (channel.name, channel.host, decrypt_destination(channel).url) == (HOST, HOST, HOOK)
    words = signed_in.get(ALERTS).content.decode()
    assert secret not in words and "hook-of-alice" not in words and HOST in words


def test_a_topic_of_ntfy_is_added_with_its_token(signed_in: Client, own_machine: None) -> None:
    data = {"ntfy-url": HOOK, "ntfy-token": "tk_secret", "ntfy-name": "My phone"}
    assert signed_in.post(f"{ALERTS}ntfy/", data).status_code == 302
    assert decrypt_destination(AlertChannel.objects.get()).token == "tk_secret"
    page = signed_in.get(ALERTS).content.decode()
    assert "My phone" in page and "tk_secret" not in page


def test_a_browser_is_added_under_its_name(signed_in: Client, own_machine: None) -> None:
    agent = "Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0"
    data = {"subscription": PushBrowser().subscription(f"https://{HOST}/push")}
    for _ in range(2):
        signed_in.post(f"{ALERTS}browser/", data, headers={"User-Agent": agent})
    assert [channel.name for channel in AlertChannel.objects.all()] == ["Firefox 128 (Linux)"]


def test_a_browser_that_two_people_use_alerts_who_added_it_last(alice: User, bob: User) -> None:
    browser = PushBrowser()
    for user in (alice, bob):
        add_browser(user, f"https://{HOST}/push", browser)
    assert AlertChannel.objects.get().user == bob


@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("http://10.1.2.3/x", "No server with a public address"),
        ("https://localhost/", "No server with a public address"),
        ("https://[::1]/", "No server with a public address"),
        ("https://169.254.169.254/latest/", "No server with a public address"),
        ("https://user:secret@example.org/", "No server with a public address"),
        ("ftp://example.org/", "begins with"),
        ("attic", "begins with"),
        ("https://nowhere.invalid/", "No server with a public address"),
        (f"https://{'x' * MAX_URL_CHARS}.org/", f"at most {MAX_URL_CHARS} characters"),
        ("", "required"),
    ],
)
def test_an_address_that_cannot_be_sent_to_is_refused_in_words(signed_in: Client, url: str, said: str) -> None:
    for what in ("webhook", "ntfy"):
        reply = signed_in.post(f"{ALERTS}{what}/", {f"{what}-url": url})
        assert reply.status_code == 422 and said in Page(reply.content.decode()).words
    browser = {"subscription": PushBrowser().subscription(url)}
    assert signed_in.post(f"{ALERTS}browser/", browser).status_code == 422
    assert not AlertChannel.objects.exists()


def test_what_is_said_of_a_name_does_not_tell_whether_it_is_one_inside_this_sites_network(signed_in: Client) -> None:
    inside, nowhere = (
        Page(signed_in.post(f"{ALERTS}webhook/", {"webhook-url": f"https://{name}/"}).content.decode()).words
        for name in ("localhost", "nowhere.invalid")
    )
    assert inside == nowhere


def test_addresses_are_looked_up_only_so_often_an_hour(
    signed_in: Client, own_machine: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A look-up may take seconds, in which nobody else is served in its place."""
    monkeypatch.setattr(throttle, "LOOK_UPS_PER_HOUR", 2)
    for what in ("webhook", "ntfy", "webhook"):
        reply = signed_in.post(f"{ALERTS}{what}/", {f"{what}-url": HOOK})
    assert reply.status_code == 302 and "too many addresses" in shown(signed_in)
    assert AlertChannel.objects.count() == 2


def test_a_site_with_https_sends_nothing_in_clear(signed_in: Client, own_machine: None, settings: Settings) -> None:
    settings.HTTPS = True
    reply = signed_in.post(f"{ALERTS}ntfy/", {"ntfy-url": f"http://{HOST}/t"})
    assert reply.status_code == 422 and "begins with https://." in Page(reply.content.decode()).words


def test_a_token_that_would_end_its_header_is_refused(signed_in: Client, own_machine: None) -> None:
    for token in ("a b", "a\x7fb", "tökén"):
        assert signed_in.post(f"{ALERTS}ntfy/", {"ntfy-url": HOOK, "ntfy-token": token}).status_code == 422


def test_there_is_a_most_of_channels(signed_in: Client, alice: User, own_machine: None, settings: Settings) -> None:
    settings.ALERT_CHANNELS_MAX = 2
    for _ in range(2):
        add_webhook(alice, HOOK)
    reply = signed_in.post(f"{ALERTS}ntfy/", {"ntfy-url": HOOK})
    assert reply.status_code == 422 and AlertChannel.objects.count() == 2
    assert "You have 2 channels" in Page(reply.content.decode()).words


def test_what_a_channel_tells_is_chosen(signed_in: Client, alice: User) -> None:
    channel = add_webhook(alice, HOOK)
    data = {"alert_kinds": ["news", "silent"], "tells_end": "on"}
    assert signed_in.post(f"{ALERTS}{channel.pk}/choose/", data).status_code == 302
    channel.refresh_from_db()
    assert (channel.alert_kinds, channel.tells_end) == (["news", "silent"], True)
    boxes = page_of(signed_in, ALERTS).all("input", type="checkbox", name="alert_kinds")
    assert [box.attributes["value"] for box in boxes if "checked" in box.attributes] == ["silent", "news"]
    signed_in.post(f"{ALERTS}{channel.pk}/choose/", {"alert_kinds": ["silent", "moods"]})
    channel.refresh_from_db()
    assert channel.alert_kinds == ["news", "silent"]
    signed_in.post(f"{ALERTS}{channel.pk}/choose/", {})
    channel.refresh_from_db()
    assert (channel.alert_kinds, channel.tells_end) == ([], False)


# --- tests -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "said"),
    [
        ("200 OK", "The test was sent. The message was accepted (status 200)."),
        ("401 Unauthorized", "The test could not be sent. The server did not accept the token"),
        ("500 Oh", "The test was not accepted. The site will try again. The server reported an internal error"),
    ],
)
def test_a_test_says_what_came_of_it(
    signed_in: Client, alice: User, tls: ssl.SSLContext, status: str, said: str
) -> None:
    with Receiver(tls, status) as server:
        channel = add_ntfy(alice, server.url)
        signed_in.post(f"{ALERTS}{channel.pk}/test/")
        page = signed_in.get(ALERTS).content.decode()
        assert "is being sent" in page and 'hx-trigger="every 2s"' in page
        deliver.deliver_due()
        assert len(server.requests) == 1
    part = signed_in.get(ALERTS, headers={"HX-Request": "true"}).content.decode()
    assert said in Page(part).words
    if "tried again" not in said:
        assert "hx-trigger" not in part


def test_a_test_of_a_server_that_is_silent_says_so(
    signed_in: Client, alice: User, tls: ssl.SSLContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deliver, "SEND_LIMITS", FetchLimits(total_secs=0.3))
    with silent_server(tls) as server:
        channel = add_ntfy(alice, server.url)
        signed_in.post(f"{ALERTS}{channel.pk}/test/")
        deliver.deliver_due()
    assert "could not be reached, or did not answer in time" in shown(signed_in)


def test_a_page_left_open_while_no_worker_sends_does_not_ask_for_ever(signed_in: Client, alice: User) -> None:
    channels.ask_test(alice, add_ntfy(alice, HOOK).pk)
    assert "hx-trigger" in signed_in.get(ALERTS).content.decode()
    AlertMessage.objects.update(created_at=timezone.now() - WATCHED_FOR)
    page = signed_in.get(ALERTS).content.decode()
    assert "hx-trigger" not in page and "waiting to be sent" in Page(page).words


def test_two_clicks_are_one_test_and_there_is_a_most_of_the_day(signed_in: Client, alice: User) -> None:
    """Also after removing the channel and adding another."""
    for _ in range(channels.MAX_TESTS_PER_DAY):
        channel = add_webhook(alice, HOOK)
        for _ in range(2):
            signed_in.post(f"{ALERTS}{channel.pk}/test/")
        assert AlertMessage.objects.count() == 1
        channels.remove(alice, channel.pk)
    channel = add_webhook(alice, HOOK)
    signed_in.post(f"{ALERTS}{channel.pk}/test/")
    assert not AlertMessage.objects.exists() and "more tomorrow" in shown(signed_in)


def test_a_paused_channel_says_why_and_is_taken_into_use_again(
    signed_in: Client, alice: User, tls: ssl.SSLContext
) -> None:
    with Receiver(tls, "410 Gone") as server:
        channel = add_ntfy(alice, server.url)
        signed_in.post(f"{ALERTS}{channel.pk}/test/")
        deliver.deliver_due()
    words = shown(signed_in)
    assert "This channel is paused: nothing is sent to it." in words and "Send a test" not in words
    assert signed_in.post(f"{ALERTS}{channel.pk}/test/").status_code == 404
    signed_in.post(f"{ALERTS}{channel.pk}/resume/")
    channel.refresh_from_db()
    assert (channel.paused_at, channel.fault) == (None, "") and "Send a test" in shown(signed_in)


def test_what_was_left_out_is_said(signed_in: Client, alice: User) -> None:
    channel = add_webhook(alice, HOOK)
    now = timezone.now()
    AlertMessage.objects.create(channel=channel, kind="silent", title="x", outcome="left_out", finished_at=now)
    assert "1 message was left out in the last 24 hours" in shown(signed_in)


def test_the_page_costs_the_same_however_many_channels_there_are(signed_in: Client, alice: User) -> None:
    signed_in.get(ALERTS)
    add_webhook(alice, HOOK)
    few = statements(lambda: page_of(signed_in, ALERTS))
    for _ in range(8):
        add_webhook(alice, HOOK)
    assert statements(lambda: page_of(signed_in, ALERTS)) == few


@pytest.mark.parametrize("what", ["choose", "test", "resume", "remove"])
def test_nobody_else_has_a_hand_in_it(client: Client, alice: User, bob: User, what: str) -> None:
    channel = add_webhook(alice, HOOK)
    AlertChannel.objects.update(paused_at=timezone.now() if what == "resume" else None)
    before = AlertChannel.objects.values().get()
    client.force_login(bob)
    assert client.post(f"{ALERTS}{channel.pk}/{what}/").status_code == 404
    assert AlertChannel.objects.values().get() == before and not AlertMessage.objects.exists()


def test_adding_asks_for_the_password_again(client: Client, alice: User, own_machine: None) -> None:
    """Somebody who uses a browser that was left signed in must not have alerts sent elsewhere."""
    client.force_login(alice)
    reply = client.post(f"{ALERTS}ntfy/", {"ntfy-url": HOOK})
    assert reply.status_code == 302 and "reauthenticate" in reply.headers["Location"]
    assert not AlertChannel.objects.exists()
    client.post(reply.headers["Location"], {"password": "alice's secret"})
    assert "Confirm that it is you" in shown(client) and not AlertChannel.objects.exists()
    client.post(f"{ALERTS}ntfy/", {"ntfy-url": HOOK})
    assert decrypt_destination(AlertChannel.objects.get()).url == HOOK


@pytest.mark.parametrize("what", ["ntfy", "webhook", "browser"])
def test_what_was_entered_is_not_kept_while_the_password_is_asked(client: Client, alice: User, what: str) -> None:
    client.force_login(alice)
    browser = PushBrowser().subscription("https://push.example.org/secret-path")
    sent = {"subscription": browser, f"{what}-url": HOOK, f"{what}-token": "tk_secret"}
    client.post(f"{ALERTS}{what}/", sent)
    kept = json.dumps(dict(client.session.items()))
    assert [each for each in ("hook-of-alice", "tk_secret", "secret-path") if each in kept] == []


def test_a_form_that_is_sent_twice_adds_one_channel_and_shows_its_secret(signed_in: Client, own_machine: None) -> None:
    key = page_of(signed_in, ALERTS).one("input", name="webhook-form_key").attributes["value"]
    sent = {"webhook-url": HOOK, "webhook-form_key": key}
    for _ in range(2):
        reply = signed_in.post(f"{ALERTS}webhook/", sent)
    channel = AlertChannel.objects.get()
    assert Page(reply.content.decode()).one("code", id="webhook-secret").text == decrypt_destination(channel).key
    # A form that is displayed again adds another one.
    assert Page(reply.content.decode()).one("input", name="webhook-form_key").attributes["value"] != key
    signed_in.post(f"{ALERTS}webhook/", {"webhook-url": HOOK})
    assert AlertChannel.objects.count() == 2


def test_a_webhook_whose_address_cannot_be_read_any_more_gets_no_other_secret(
    signed_in: Client, alice: User, own_machine: None, settings: Settings
) -> None:
    channel = add_webhook(alice, HOOK)
    settings.ACCOUNT_KEY_SECRET = "another secret of at least thirty-two characters"
    reply = signed_in.post(f"{ALERTS}{channel.pk}/secret/", follow=True)
    assert "The stored address can no longer be read. Remove this channel and add it again." in reply.content.decode()
    assert AlertChannel.objects.get().destination == channel.destination


def test_a_webhook_gets_another_secret(signed_in: Client, alice: User, own_machine: None) -> None:
    channel = add_webhook(alice, HOOK)
    before = decrypt_destination(channel)
    reply = signed_in.post(f"{ALERTS}{channel.pk}/secret/")
    secret = Page(reply.content.decode()).one("code", id="webhook-secret").text
    channel.refresh_from_db()
    assert decrypt_destination(channel).key == secret != before.key and decrypt_destination(channel).url == HOOK
    assert secret not in signed_in.get(ALERTS).content.decode()
    assert signed_in.post(f"{ALERTS}{add_ntfy(alice, HOOK).pk}/secret/").status_code == 404


def test_another_secret_is_for_its_owner_after_the_password(client: Client, alice: User, bob: User) -> None:
    channel = add_webhook(alice, HOOK)
    before = bytes(channel.destination)
    client.force_login(alice)
    assert "reauthenticate" in client.post(f"{ALERTS}{channel.pk}/secret/").headers["Location"]
    sign_in_lately(client, bob)
    assert client.post(f"{ALERTS}{channel.pk}/secret/").status_code == 404
    channel.refresh_from_db()
    assert bytes(channel.destination) == before


def moved(old: str, new: str) -> int:
    """Return the status, for a service worker that has no login and no CSRF token."""
    sent = f'{{"old": {old}, "new": {new}}}'
    worker = Client(enforce_csrf_checks=True)
    return worker.post(f"{ALERTS}browser/moved/", sent, content_type="application/json").status_code


def test_a_browser_is_followed_to_its_new_address(alice: User, own_machine: None) -> None:
    browser, later = PushBrowser(), PushBrowser()
    old, new = browser.subscription(f"https://{HOST}/old"), later.subscription(f"https://{HOST}/new")
    channel = add_browser(alice, f"https://{HOST}/old", browser)
    AlertChannel.objects.update(paused_at=timezone.now(), fault="gone")
    assert moved(old, new) == 204
    channel.refresh_from_db()
    assert (decrypt_destination(channel).url, channel.paused_at, channel.fault) == (f"https://{HOST}/new", None, "")
    # It repeats the request if the answer was lost: then the old address is nobody's.
    assert moved(old, new) == 404 and AlertChannel.objects.count() == 1


def test_nobody_moves_a_browser_without_its_keys(alice: User, own_machine: None) -> None:
    address = f"https://{HOST}/old"
    channel = add_browser(alice, address, PushBrowser())
    stranger = PushBrowser()
    assert moved(stranger.subscription(address), stranger.subscription(f"https://{HOST}/new")) == 404
    channel.refresh_from_db()
    assert decrypt_destination(channel).url == address


def test_a_browser_is_not_followed_into_a_private_network(alice: User) -> None:
    browser = PushBrowser()
    channel = add_browser(alice, "https://9.9.9.9/old", browser)
    assert moved(browser.subscription("https://9.9.9.9/old"), browser.subscription("https://10.0.0.1/new")) == 422
    assert moved("[]", "null") == 400
    channel.refresh_from_db()
    assert decrypt_destination(channel).url == "https://9.9.9.9/old"


def test_a_copy_of_ones_data_has_channels_without_their_addresses(alice: User) -> None:
    channel = add_ntfy(alice, HOOK, "tk_secret")
    channels.ask_test(alice, channel.pk)
    documents = dict(copies.documents(alice))
    found = json.loads(json.dumps(documents["alerts.json"], default=str))
    assert found["channels"][0]["host"] == HOST and found["messages"][0]["kind"] == "test"
    text = json.dumps(found)
    assert "hook-of-alice" not in text and "tk_secret" not in text
    assert bytes(channel.destination).hex() not in text and bytes(channel.destination).decode() not in text


def test_the_service_worker_is_for_all_pages_and_asked_for_anew(client: Client) -> None:
    reply = client.get("/sw.js")
    assert reply.status_code == 200 and reply.headers["Content-Type"].startswith("text/javascript")
    assert reply.headers["Cache-Control"] == "no-cache" and b"showNotification" in reply.content
