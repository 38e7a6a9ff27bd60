"""Alerts in a browser: the page's script and the service worker, as far as they go without a push service.

Chromium subscribes at a push service on the internet, which tests do not reach, and its headless shell shows no
notifications. So the script is given what a push service would give, and what the worker shows is recorded. What the
site sends to push services is tested in extras/alerts/tests/test_deliver.py.
"""

from __future__ import annotations

from playwright.sync_api import Page, expect

from extras.alerts.destinations import decrypt_destination
from extras.alerts.models import AlertChannel
from portal.models import User
from tests.support.browser_visitor import sign_in
from tests.support.push_browser import PushBrowser
from tests.support.site_process import Site

SUBSCRIBED = """
  Notification.requestPermission = async () => "granted";
  PushManager.prototype.subscribe = async (options) => {
    window.name = `${options.userVisibleOnly} ${options.applicationServerKey.length}`;
    return { toJSON: () => (SUBSCRIPTION) };
  };
"""
PUSHED = '{"title": "A computer is silent", "body": "attic", "url": "/computers/1/", "tag": "msg_1"}'
RECORD = "ServiceWorkerRegistration.prototype.showNotification = async (...shown) => { self.shown = shown; }"
SHOWN = """async () => {
  while (!self.shown) await new Promise((done) => setTimeout(done, 50));
  return [self.shown[0], self.shown[1].body, self.shown[1].tag, self.shown[1].data.url];
}"""


def test_a_click_subscribes_this_browser_and_the_service_worker_shows_what_is_pushed(
    page: Page, site: Site, alice: User
) -> None:
    # Nothing is sent there: no worker runs.
    subscription = PushBrowser().subscription("https://9.9.9.9/push")
    page.add_init_script(SUBSCRIBED.replace("(SUBSCRIPTION)", f"({subscription})"))
    sign_in(page.context, site, alice)
    devtools = page.context.new_cdp_session(page)
    registered: list[str] = []
    devtools.on(
        "ServiceWorker.workerRegistrationUpdated",
        lambda event: registered.extend(each["registrationId"] for each in event["registrations"]),
    )
    devtools.send("ServiceWorker.enable")

    page.goto("/account/alerts/")
    page.get_by_role("button", name="Show alerts in this browser").click()
    expect(page.get_by_text("Added. Send a test")).to_be_visible()
    expect(page.get_by_role("heading", name="Chrome")).to_be_visible()
    assert page.evaluate("window.name") == "true 65"

    assert page.evaluate("navigator.serviceWorker.ready.then((worker) => worker.scope)") == site.url
    (worker,) = page.context.service_workers
    worker.evaluate(RECORD)
    message = {"origin": site.url.rstrip("/"), "registrationId": registered[-1], "data": PUSHED}
    devtools.send("ServiceWorker.deliverPushMessage", message)
    assert worker.evaluate(SHOWN) == ["A computer is silent", "attic", "msg_1", "/computers/1/"]

    later = PushBrowser().subscription("https://9.9.9.9/later")
    worker.evaluate(f"follow({{ newSubscription: {later} }})")
    assert decrypt_destination(AlertChannel.objects.get()).url == "https://9.9.9.9/later"
    worker.evaluate(f"follow({{ newSubscription: {subscription} }})")
    assert decrypt_destination(AlertChannel.objects.get()).url == "https://9.9.9.9/push"
