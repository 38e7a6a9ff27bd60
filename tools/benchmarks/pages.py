"""The bytes that a browser loads for the demo's pages, and the time to the largest paint, on a slow computer."""

from __future__ import annotations

import sys
from typing import Any, Final

from django.core.management import call_command
from django.core.management.base import OutputWrapper
from playwright.sync_api import Browser, BrowserContext

from portal.dev.demo_login import OPERATOR, VOLUNTEER, Login
from portal.models import User
from tools.benchmarks.harness.server import server
from tools.demo import site as demo_site
from tools.screenshots.browser import chromium, is_installed, sign_in

SLOWER: Final = 4
"""The factor by which Chromium's developer tools slow the processor down for a phone of middling speed."""
TRIES: Final = 3
PAGES: Final[dict[Login, dict[str, str]]] = {
    VOLUNTEER: {"home": "home/", "history": "history/", "computers": "computers/", "tasks": "tasks/"},
    OPERATOR: {"dashboard": "admin/", "people": "admin/portal/user/"},
}
_LCP: Final = """
() => new Promise(found => {
  let latest = 0;
  new PerformanceObserver(list => { for (const entry of list.getEntries()) latest = entry.startTime; })
    .observe({type: "largest-contentful-paint", buffered: true});
  setTimeout(() => found(latest), 500);
})"""


def measure() -> dict[str, Any]:
    """Measure each page's kB on the wire with an empty cache, and milliseconds to the largest paint, as medians."""
    if not is_installed():
        return {"skipped": "Chromium is not installed"}
    call_command("prepare", demo=True, verbosity=0)
    if not User.objects.filter(email=VOLUNTEER.email).exists():
        demo_site.make(OutputWrapper(sys.stdout))
    with server() as port, chromium() as browser:
        url = f"http://127.0.0.1:{port}/"
        figures = {"landing": _page(browser, None, url)}
        for login, pages in PAGES.items():
            signed_in = browser.new_context()
            sign_in(signed_in.new_page(), url, *login)
            for name, path in pages.items():
                figures[name] = _page(browser, signed_in, f"{url}{path}")
        return figures


def _page(browser: Browser, signed_in: BrowserContext | None, address: str) -> dict[str, float]:
    visits = [visit(browser, signed_in, address) for _ in range(TRIES)]
    times = sorted(lcp for lcp, _ in visits)
    return {"lcp_ms": round(times[TRIES // 2]), "kB": round(max(nbytes for _, nbytes in visits) / 1000, 1)}


def visit(browser: Browser, signed_in: BrowserContext | None, address: str) -> tuple[float, float]:
    """Return milliseconds to the largest paint, and bytes on the wire, of a first visit: the cache is empty."""
    context = browser.new_context(storage_state=signed_in.storage_state() if signed_in else None)
    try:
        page = context.new_page()
        tools = context.new_cdp_session(page)
        tools.send("Network.enable")
        tools.send("Emulation.setCPUThrottlingRate", {"rate": SLOWER})
        loaded: list[float] = []
        tools.on("Network.loadingFinished", lambda event: loaded.append(event["encodedDataLength"]))
        page.goto(address, wait_until="networkidle")
        return page.evaluate(_LCP), sum(loaded)
    finally:
        context.close()
