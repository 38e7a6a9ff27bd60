"""Four real clients of two people: two on one machine, and one in a copy of a folder. All is booked once."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from contextlib import ExitStack
from decimal import Decimal
from functools import partial
from pathlib import Path

import pytest
from django.db.models import Sum
from django.utils import timezone

from accounting.models import Day
from credit.models import App, Result, ServerState
from portal.models import Host, User
from scheduler.submission.submit import submit
from tests.support.boinc_client import BoincClient
from tests.support.own_project import SHORT, Manage, ask_until, attach
from tests.support.site_process import Site
from tests.support.wait import wait_until

MICRO = 1_000_000
BOOK_SECS = 180
# Run time in seconds, and jobs that ended well
Work = tuple[Decimal, int]
NOTHING: Work = (Decimal(0), 0)


@pytest.fixture
def four(boinc_client: BoincClient, tmp_path: Path) -> Iterator[dict[str, BoincClient]]:
    """Clients by name. That of the copy has not been started: its folder is made from the original's."""
    with ExitStack() as stack:
        second = stack.enter_context(BoincClient(tmp_path / "second"))
        original = stack.enter_context(BoincClient(tmp_path / "original"))
        copy = BoincClient(tmp_path / "copy")
        stack.callback(copy.stop)
        yield {"first": boinc_client, "second": second, "original": original, "copy": copy}


def claimed(client: BoincClient) -> Work:
    """What the client said in its newest request to the account manager that it has done for the project."""
    seconds, jobs = (
        re.findall(rf"<{tag}>(.*?)</{tag}>", client.manager_request()) for tag in ("cpu_time", "njobs_success")
    )
    return (Decimal(seconds[0]), int(jobs[0])) if seconds else NOTHING


def record(client: BoincClient) -> Host:
    """The record whose id it sends to the account manager."""
    return Host.objects.get(token=re.findall(r"<opaque>\s*<host>(.*?)</host>", client.manager_request())[0])


def booked(client: BoincClient) -> Work:
    """What the history has of the client's record."""
    sums = Day.objects.filter(host=record(client)).aggregate(secs=Sum("cpu_time"), jobs=Sum("njobs_success"))
    return Decimal(sums["secs"] or 0) / MICRO, sums["jobs"] or 0


def njobs_done(client: BoincClient) -> int:
    """How many jobs the client has finished by its own log; a copied folder has those of the original too."""
    return sum(len(log.read_text().splitlines()) for log in client.directory.glob("job_log_*"))


def test_what_four_clients_report_is_booked_once_and_to_the_right_record(
    site: Site, manage: Manage, background: None, project: str, four: dict[str, BoincClient], bob: User
) -> None:
    waiting = Result.objects.filter(server_state=ServerState.UNSENT)
    defaults = {**SHORT, "min_quorum": 1, "target_nresults": 1}

    def compute(clients: list[BoincClient]) -> None:
        """Let each of these clients finish at least one more job, and report to the account manager."""
        before = [njobs_done(client) for client in clients]

        def are_done() -> bool:
            idle = [client for client, done in zip(clients, before, strict=True) if njobs_done(client) == done]
            if idle and not waiting.exists():
                lines = [{"command_line": f"{10**12 + Result.objects.count() + n} 20000"} for n in range(len(idle))]
                # Not by the command, whose process would be most of this test's time: clients ask for more jobs often.
                submit(App.objects.get(), defaults, lines, owner=None, name="", now=timezone.now())
            return not idle

        ask_until(are_done, "a job of each client", clients, project, site)
        for client in clients:
            client.sync_manager()

    first, second, original, copy = four.values()
    for client, email in {first: "alice", second: "alice", original: "bob"}.items():
        attach(client, site, f"{email}@example.org", project)
    compute([first, second, original])

    original.stop()
    # A client that stops has reported what it did, or not yet: here it has, so that the copy begins with no more.
    shutil.copytree(original.directory, copy.directory)
    before_copy = claimed(original)
    # The copy is ahead by some requests, so that the project takes the copy for the client that it knows.
    copy.__enter__()
    before = copy.log().count("Scheduler request completed")
    ask_until(lambda: copy.log().count("Scheduler request completed") >= before + 3, "requests", [copy], project, site)
    original.start()
    ask_until(lambda: Host.objects.filter(owner=bob).count() == 2, "two records", [original, copy], project, site)
    compute([*four.values()])

    # Each record has what its client reported; the one that was made for a copy, what that did since it was copied.
    older = Host.objects.filter(owner=bob).earliest("created_at")

    def agree(client: BoincClient) -> bool:
        client.sync_manager()
        secs, njobs = claimed(client)
        is_newer = client in (original, copy) and record(client) != older
        own = (secs - before_copy[0], njobs - before_copy[1]) if is_newer else (secs, njobs)
        return booked(client) == own

    for name, client in four.items():
        wait_until(partial(agree, client), f"the books of the {name} client", BOOK_SECS)
    assert len({record(client).pk for client in four.values()}) == Host.objects.count() == 4
    assert (
        sum(claimed(client)[1] for client in four.values()) - before_copy[1]
        == Day.objects.aggregate(n=Sum("njobs_success"))["n"]
    )
    manage("check_ledger")
