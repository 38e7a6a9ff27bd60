"""Take the pictures of README.md from the running demo: python -m tools.screenshots.take http://127.0.0.1:8000/

Light, 1,200 pixels wide. Take them again when a page has changed its appearance.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Final

from playwright.sync_api import Page, ViewportSize

from portal.dev.demo_login import VOLUNTEER
from tools.screenshots.browser import chromium, sign_in

FOLDER: Final = Path(__file__).resolve().parents[2] / "docs" / "images"
SIZE: Final[ViewportSize] = {"width": 1200, "height": 900}
RUN_MILLISECS: Final = 180_000
# No news in the footer.
_HIDDEN: Final = ".site-foot { display: none !important }"


def take(url: str, folder: Path = FOLDER) -> list[Path]:
    """Take all pictures of the site at ``url``, which ends with a slash; return their files."""
    folder.mkdir(parents=True, exist_ok=True)
    with chromium() as browser:
        context = browser.new_context(viewport=SIZE, color_scheme="light", locale="en-GB", bypass_csp=True)
        page = context.new_page()
        taken = [_take(page, url, folder / "landing.png")]
        sign_in(page, url, *VOLUNTEER)
        taken.append(_take(page, f"{url}home/", folder / "home.png"))
        taken.append(_take(page, f"{url}history/", folder / "history.png"))
        for name, way in (("credit", _to_credit), ("emulator", _to_emulation)):
            if address := way(page, url):
                taken.append(_take(page, address, folder / f"{name}.png"))
    return taken


def _take(page: Page, address: str, file: Path) -> Path:
    page.goto(address)
    page.wait_for_load_state("networkidle")
    page.add_style_tag(content=_HIDDEN)
    page.screenshot(path=file)
    return file


def _to_credit(page: Page, url: str) -> str:
    """Return the page of the latest task with granted credit; empty without one."""
    page.goto(f"{url}tasks/?state=valid")
    link = page.locator(".task-table tbody th a").first
    return f"{url.rstrip('/')}{link.get_attribute('href')}" if link.count() else ""


def _to_emulation(page: Page, url: str) -> str:
    """Return the page of a run for the volunteer's first computer, which takes some seconds."""
    page.goto(f"{url}emulator/")
    page.locator("form[action*='/emulator/'] button").first.click()
    page.get_by_role("button", name="Run", exact=True).click()
    page.locator("[data-timeline][data-drawn]").wait_for(timeout=RUN_MILLISECS)
    return page.url


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("Give the address of a running demo: python -m tools.screenshots.take http://127.0.0.1:8000/")
    for file in take(sys.argv[1].rstrip("/") + "/"):
        sys.stdout.write(f"{file.stat().st_size / 1000:6.0f} kB  {file}\n")
