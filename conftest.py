"""Named people and small factories that all tests share."""

from __future__ import annotations

import gc
import os
import re
import subprocess
import sys
from collections.abc import Generator, Iterator
from pathlib import Path

# Tests run in one process with a browser's event loop beside Django's synchronous ORM.
os.environ.setdefault("DJANGO_ALLOW_ASYNC_UNSAFE", "true")
# The emulator runs by its compiled kernel if `make test` has made it: compiling takes a minute.
os.environ.setdefault("NUMBA_CACHE_DIR", str(Path(__file__).parent / "var" / "emulator_kernel"))

import pytest
from django.conf import settings
from django.contrib.auth.models import Permission
from django.core.cache import cache
from django.template import Context, Template
from django.test import Client, TransactionTestCase
from django.test import utils as django_test_utils
from django.test.signals import template_rendered
from hypothesis import HealthCheck
from hypothesis import settings as hypothesis_settings
from pytest_django import DjangoDbBlocker, Settings

from credit.models import App, AppVersion
from portal.languages.compiling import compile_stale
from portal.models import Host, User
from tests.support.credit_factories import make_app, make_version
from tests.support.database import backend, commit_without_waiting, empty_tables, end_other_sessions, use_template
from tests.support.s3_server import S3Server
from tests.support.sessions import sign_in_lately

pytest_plugins = ("tests.support.rings", "tests.support.costs")

# A busy machine is no failure: no test of ours asserts how long something takes.
hypothesis_settings.register_profile("site", deadline=None, suppress_health_check=[HealthCheck.too_slow])
hypothesis_settings.load_profile("site")


def pytest_configure() -> None:
    """Compiled texts, cheap password hashes, static files without a manifest, a cache and a queue per test process."""
    compile_stale()
    worker = int(re.sub(r"\D", "", os.environ.get("PYTEST_XDIST_WORKER", "")) or 0)
    location = str(settings.CACHES["default"]["LOCATION"])
    settings.CACHES["default"]["LOCATION"] = re.sub(r"db=\d+", f"db={10 + worker % 6}", location)
    # A worker of one test process must not take what belongs to another's database.
    settings.BROKER_URL = re.sub(r"virtual_host=\d+", f"virtual_host={4 + worker % 6}", settings.BROKER_URL)
    settings.CELERY_BROKER_URL = settings.BROKER_URL
    # Tests attach dozens of computers to an account, and let them ask for jobs all the time.
    settings.NEW_HOSTS_PER_DAY = 100_000
    settings.MIN_SENDWORK_INTERVAL_SECS = 0
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
    storages: dict[str, dict[str, object]] = settings.STORAGES
    storages["staticfiles"]["BACKEND"] = "django.contrib.staticfiles.storage.StaticFilesStorage"
    # Nothing is collected for tests: look for files when they are asked for.
    settings.WHITENOISE_AUTOREFRESH = True
    for_all_tests = pytest.MonkeyPatch()
    for_all_tests.setattr(TransactionTestCase, "_fixture_teardown", empty_tables)
    for_all_tests.setattr(django_test_utils, "instrumented_test_render", _render_and_tell)


def _render_and_tell(template: Template, context: Context) -> str:
    """Tell the test client of a page's context, but not of those of its hundred included parts, as Django's own does.

    Each is copied for `response.context`, which took a tenth of the time of a page.
    """
    if context.template is template:
        template_rendered.send(sender=template, template=template, context=context)
    return template.nodelist.render(context)


def pytest_sessionstart(session: pytest.Session) -> None:
    """Make the database that those of the test processes are copied from, while they collect: else all wait for it."""
    config = session.config
    if config.getoption("numprocesses") and not hasattr(config, "workerinput") and not config.getoption("collectonly"):
        process = subprocess.Popen([sys.executable, "-m", "tests.support.database"], cwd=config.rootpath)

        def wait() -> None:
            process.wait()

        config.add_cleanup(wait)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """What is imported and collected stays: the garbage collector, which took a tenth of the time, is kept off it."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(20_000, 20, 50)
        gc.enable()


@pytest.fixture(scope="session")
def django_db_modify_db_settings(
    django_db_modify_db_settings_parallel_suffix: None, django_db_blocker: DjangoDbBlocker
) -> None:
    """A pool that was opened before the test database was made leads to the site's own database."""
    backend().close_pool()
    with django_db_blocker.unblock():
        use_template()


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    with django_db_blocker.unblock():
        commit_without_waiting()
    yield
    with django_db_blocker.unblock():
        end_other_sessions()


@pytest.fixture(autouse=True)
def _empty_cache() -> Iterator[None]:
    yield
    cache.clear()


@pytest.fixture(scope="session")
def s3_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    """An S3 server for all tests of a test process, each with a bucket of its own: starting one takes seconds."""
    with S3Server(tmp_path_factory.mktemp("s3")) as server:
        yield server


@pytest.fixture
def registered_functions(request: pytest.FixtureRequest, settings: Settings) -> None:
    """Apps may name the functions of the test's own module."""
    functions = [name for name, each in vars(request.module).items() if callable(each)]
    settings.APP_FUNCTIONS = [f"{request.module.__name__}.{name}" for name in functions]


@pytest.fixture
def alice(db: None) -> User:
    """A volunteer, the owner in most tests; her password is "alice's secret"."""
    return User.objects.create_user("alice@example.org", "alice's secret", name="Alice")


@pytest.fixture
def submitter(alice: User) -> User:
    """Alice, whom an operator has allowed to submit jobs."""
    alice.user_permissions.add(Permission.objects.get(codename="add_batch"))
    return User.objects.get(pk=alice.pk)


@pytest.fixture
def signed_in(client: Client, alice: User) -> Client:
    """Alice's browser, where she has just signed in."""
    sign_in_lately(client, alice)
    return client


@pytest.fixture
def bob(db: None) -> User:
    """Another volunteer, who must never see or change what is Alice's."""
    return User.objects.create_user("bob@example.org", "bob's secret", name="Bob")


@pytest.fixture
def operator(db: None) -> User:
    """Somebody who runs the site."""
    return User.objects.create_superuser("operator@example.org", "operator's secret", name="Operator")


@pytest.fixture
def desk(client: Client, operator: User) -> Client:
    """The operator's browser, where they have just signed in."""
    sign_in_lately(client, operator)
    return client


@pytest.fixture
def app(db: None) -> App:
    """An app of the site's own project, without versions."""
    return make_app()


@pytest.fixture
def version(app: App) -> AppVersion:
    """A version of it for Linux."""
    return make_version(app)


@pytest.fixture
def studio(alice: User) -> Host:
    """Alice's computer."""
    return Host.objects.create(owner=alice, domain_name="studio", host_cpid="a" * 32, ncpus=4, p_fpops=4e9)
