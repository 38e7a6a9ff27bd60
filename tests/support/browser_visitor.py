"""A volunteer in the browser: signed in, with computers and some days of work."""

from __future__ import annotations

import datetime as dt
import time

from django.conf import settings
from django.contrib.auth import BACKEND_SESSION_KEY, HASH_SESSION_KEY, SESSION_KEY
from django.utils import timezone
from playwright.sync_api import BrowserContext, Page

from portal.models import User
from portal.sign_in.sessions import SessionStore
from tests.support.accounting_factories import credit, make_host, make_note, make_project
from tests.support.site_process import Site

CREDIT, SEC = 1_000_000, 1_000_000


def sign_in(context: BrowserContext, site: Site, user: User) -> None:
    """Give the browser a session of the user; signing in by the form has tests of its own."""
    session = SessionStore()
    session[SESSION_KEY] = str(user.pk)
    session[BACKEND_SESSION_KEY] = settings.AUTHENTICATION_BACKENDS[0]
    session[HASH_SESSION_KEY] = user.get_session_auth_hash()
    # As after a login a moment ago: the site does not ask for the password again.
    session["account_authentication_methods"] = [{"method": "password", "at": time.time()}]
    session["account_authentication_methods_user"] = str(user.pk)
    session.save()
    assert session.session_key
    context.add_cookies([{"name": settings.SESSION_COOKIE_NAME, "value": session.session_key, "url": site.url}])


def give_work(user: User) -> None:
    """Ten days of two computers at two projects: 10 and 20 credits a day, an hour of CPU each, a job each."""
    now = timezone.now()
    alpha, beta = make_project("Alpha", colour=0), make_project("Beta", colour=1)
    studio = make_host(user, "studio", last=str(now.date()), p_fpops=4e9)
    attic = make_host(user, "attic", last=str(now.date() - dt.timedelta(days=5)), p_fpops=2e9)
    for back in range(10):
        day = str(now.date() - dt.timedelta(days=back))
        credit(studio, alpha, day, (10 * CREDIT, 0, 3600 * SEC, 0, 1, 0))
        credit(attic, beta, day, (0, 20 * CREDIT, 3600 * SEC, 0, 0, 1), flags=1 if back == 3 else 0)
    make_note(attic, "dropped", str(now.date()), detail="cpu_ec", amount=5 * CREDIT)


def colours(page: Page, canvas: str) -> int:
    """How many different colours the canvas of this selector has: one where nothing is drawn."""
    # By then its scripts have run.
    page.wait_for_load_state()
    return int(
        page.locator(canvas).evaluate(
            """canvas => {
              const data = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
              return new Set(new Uint32Array(data.buffer)).size;
            }"""
        )
    )
