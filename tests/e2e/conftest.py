"""What end-to-end tests start from: the running site, a browser on it, and a real BOINC client.

Where Chromium, nginx or the BOINC client is missing, the tests that need it are skipped with that reason; with
REQUIRE_E2E=1 they fail instead.
"""

import os
from collections.abc import Generator, Iterator
from itertools import islice
from pathlib import Path

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Error, Page, expect, sync_playwright

from accounting.models import Project
from tests.support import site_process as site_module
from tests.support.boinc_client import BOINC, BOINCCMD, BoincClient
from tests.support.keyword_projects import make_four_projects
from tests.support.needs import need
from tests.support.nginx_deployment import NGINX
from tests.support.site_process import SharedSite, Site

CHROMIUM = "/usr/bin/chromium-headless-shell"
# Root needs the first, a small /dev/shm the second; the others keep the browser quiet and off the internet.
CHROMIUM_OPTIONS = [
    "--no-sandbox",
    "--disable-dev-shm-usage",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
PAGE_TIMEOUT_SECS = 15
LOG_NCHARS = 8_000


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run what is in this folder first: these tests are the longest, and others run while they wait.

    Each test process begins with an equal part of the list, so every second part begins with its share of them. If all
    were in one part, a single process would still be busy with them when the others have ended.
    """
    folder = Path(__file__).parent
    longest = [item for item in items if item.path.is_relative_to(folder)]
    others = iter([item for item in items if not item.path.is_relative_to(folder)])
    modules = list(dict.fromkeys(item.path for item in longest))
    nshares = max(1, int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")) // 2)
    ordered: list[pytest.Item] = []
    for share in range(nshares):
        begin = len(items) * share // nshares
        ordered += islice(others, max(0, begin - len(ordered)))
        ordered += [item for item in longest if modules.index(item.path) % nshares == share]
    items[:] = [*ordered, *others]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A test that failed shows the end of what the programs it started have logged."""
    report = yield
    folder = getattr(item, "funcargs", {}).get("tmp_path")
    if report.failed and folder is not None:
        for path in sorted(folder.glob("*log*")):
            if path.is_file():
                report.sections.append((str(path.name), path.read_text(errors="replace")[-LOG_NCHARS:]))
    return report


@pytest.fixture(scope="session")
def site_var_dir(django_db_setup: None, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The data folder of the sites of this test run: signing key, static files, e-mails."""
    var_dir = tmp_path_factory.mktemp("site")
    site_module.prepare(var_dir)
    return var_dir


@pytest.fixture(autouse=True)
def no_mail_of_another_test(request: pytest.FixtureRequest) -> None:
    """All sites of a test process have one folder of mails, and many tests have an Alice."""
    if "site_var_dir" in request.fixturenames:
        for mails in (request.getfixturevalue("site_var_dir") / "mail").glob("*.log"):
            mails.unlink()


@pytest.fixture(scope="session")
def shared_site(site_var_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[SharedSite, Path]]:
    """One site for all tests of a test process, as starting it takes longer than most of them; and its log."""
    log = tmp_path_factory.mktemp("shared") / "site.log"
    with SharedSite(site_var_dir, log, DEMO_ACCOUNT="demo@example.org") as running:
        yield running, log


@pytest.fixture
def site_settings() -> dict[str, str]:
    """What a test's site has that others have not: read while it runs, as those that are read at its start stay."""
    return {}


@pytest.fixture
def site(
    transactional_db: None, shared_site: tuple[SharedSite, Path], site_settings: dict[str, str], tmp_path: Path
) -> Site:
    """The real site on the test's database, which it sees as the test commits to it."""
    running, log = shared_site
    # For the report of a test that fails
    (tmp_path / "site.log").symlink_to(log)
    running.change(**site_settings)
    return running


@pytest.fixture
def four_projects(site: Site) -> dict[str, Project]:
    """Four projects with different keywords, by name."""
    return make_four_projects()


@pytest.fixture
def worker(site: Site, tmp_path: Path) -> Iterator[None]:
    """A Celery worker on the site's database and queues."""
    queues = ("--queues", "celery,requested")
    with site_module.celery_worker(site.environment, tmp_path / "worker.log", *queues):
        yield


@pytest.fixture
def boinc_client(tmp_path: Path) -> Iterator[BoincClient]:
    """A real BOINC client, attached to nothing yet."""
    need(BOINC, BOINCCMD)
    with BoincClient(tmp_path / "client") as client:
        yield client


@pytest.fixture(scope="session")
def chromium() -> str:
    """The browser, for tests of programs that start it themselves."""
    need(CHROMIUM)
    return CHROMIUM


@pytest.fixture(scope="session")
def nginx() -> str:
    """Debian's nginx."""
    need(NGINX)
    return NGINX


# Not for longer than a module: while Playwright is up, nothing else may run an event loop in this process.
@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    need(CHROMIUM)
    with sync_playwright() as playwright:
        expect.set_options(timeout=PAGE_TIMEOUT_SECS * 1000)
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=CHROMIUM_OPTIONS)
        yield chromium
        chromium.close()


@pytest.fixture
def page(browser: Browser, site: Site) -> Iterator[Page]:
    """A fresh browser profile with relative addresses on the site; errors in its console fail the test."""
    errors: list[str] = []

    def on_console(message: ConsoleMessage) -> None:
        # A form that comes back with its errors is no fault of a page.
        if message.type == "error" and "status of 422" not in message.text:
            errors.append(f"{message.text} ({message.location.get('url', '')})")

    def on_page_error(error: Error) -> None:
        errors.append(str(error))

    context = browser.new_context(base_url=site.url, viewport={"width": 1280, "height": 900}, locale="en-GB")
    context.set_default_timeout(PAGE_TIMEOUT_SECS * 1000)
    page = context.new_page()
    page.on("console", on_console)
    page.on("pageerror", on_page_error)
    yield page
    context.close()
    assert not errors, "\n".join(["errors in the browser:", *errors])
