"""What a process answers leaves nothing in its memory: a leak of one object for each request would be seen."""

from __future__ import annotations

import asyncio
import gc
import logging

import pytest

from portal.clients.factory import make_application
from tests.support import asgi_exchange
from tests.support.asgi_exchange import Asked, post
from tests.support.upload_requests import ADDRESS, size_query

NREQUESTS = 200

ASKED = {
    "a faulty request": post(b"<acct_mgr_request><name>nobody@example.org</name>"),
    "an unknown key": post(b"<scheduler_request><authenticator>1_none</authenticator>", "/project/scheduler"),
    "an unknown file": post(size_query("none_0"), ADDRESS),
    "a page": Asked("GET", "/account/login/"),
    "no page": Asked("GET", "/nothing/"),
}


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("asked", ASKED.values(), ids=ASKED)
def test_requests_leave_no_objects_behind(asked: Asked, caplog: pytest.LogCaptureFixture) -> None:
    # The fixture keeps each line of the log until the test ends.
    caplog.set_level(logging.WARNING)

    async def nobjects_after(nrequests: int) -> int:
        for _ in range(nrequests):
            # A task each, as the server has it.
            await asyncio.create_task(asgi_exchange.exchange(application, asked))
        gc.collect()
        return len(gc.get_objects())

    async def work() -> int:
        # What the first requests load stays.
        before = await nobjects_after(NREQUESTS)
        after = await nobjects_after(NREQUESTS)
        await application._batcher.close()
        return after - before

    application = make_application()
    assert asyncio.run(work()) < NREQUESTS // 2
