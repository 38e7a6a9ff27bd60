"""Chromium for measurements and screenshots, signed in as the demo volunteer. Needs what requirements-dev.in names."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from playwright.sync_api import Browser, Page, sync_playwright

PROGRAM: Final = "/usr/bin/chromium-headless-shell"
# Root needs the first, a small /dev/shm the second; the last keeps the browser off the internet.
OPTIONS: Final = ("--no-sandbox", "--disable-dev-shm-usage", "--disable-background-networking")


def is_installed() -> bool:
    return os.access(PROGRAM, os.X_OK)


@contextmanager
def chromium() -> Iterator[Browser]:
    """Open a headless browser that ends with the block."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=PROGRAM, args=list(OPTIONS))
        try:
            yield browser
        finally:
            browser.close()


def sign_in(page: Page, url: str, email: str, password: str) -> None:
    """Sign in by the form of the site at ``url``, which ends with a slash."""
    page.goto(f"{url}account/login/")
    page.fill("input[name=login]", email)
    page.fill("input[name=password]", password)
    page.locator("form:has(input[name=password]) button").first.click()
    page.wait_for_url(f"{url}home/")
