"""Two real clients: one is blocked and reads why, the other computes what asks for an older version; then what is for
the first one alone.
"""

from __future__ import annotations

import shutil
from pathlib import Path

from django.utils import timezone

from credit.models import App, AppVersion, Result, ServerState, ValidateState, Workunit
from portal.models import Host, User
from scheduler.models import HostRecord, WorkBlock
from scheduler.submission.submit import submit
from tests.support.boinc_client import BoincClient
from tests.support.own_project import SHORT, Manage, ask_until, attach
from tests.support.site_process import CHECKOUT, Site

REASON = "its memory makes errors; test it, and write to us"


def test_each_computer_gets_what_is_for_it(
    site: Site,
    manage: Manage,
    background: None,
    project: str,
    clients: dict[str, BoincClient],
    alice: User,
    bob: User,
    tmp_path: Path,
) -> None:
    older = AppVersion.objects.get()
    newer = tmp_path / "newer"
    shutil.copytree(CHECKOUT / "scheduler" / "examples" / "collatz", newer)
    description = newer / "version.toml"
    description.write_text(
        description.read_text().replace(f"version_num = {older.version_num}", f"version_num = {older.version_num + 1}")
    )
    manage("release_app_version", str(newer))
    for name, client in clients.items():
        attach(client, site, f"{name}@example.org", project)
    ask_until(lambda: HostRecord.objects.count() == 2, "both computers", clients.values(), project, site)
    hosts = {host.owner_id: host for host in Host.objects.all()}

    block = WorkBlock.objects.create(host=hosts[alice.pk], reason=REASON)
    jobs = [
        {"command_line": "1000000 2000", "target_host": hosts[alice.pk].pk},
        {"command_line": "2000000 2000", "app_version_num": older.version_num, "min_quorum": 1},
        {"command_line": "3000000 2000", "min_quorum": 1},
    ]
    batch, _ = submit(App.objects.get(), SHORT, jobs, owner=None, now=timezone.now())
    targeted, pinned, free = Workunit.objects.filter(batch=batch).order_by("pk")

    def are_valid(*workunits: Workunit) -> bool:
        results = Result.objects.filter(workunit__in=workunits, validate_state=ValidateState.VALID)
        return results.count() == len(workunits)

    def alice_has_read_it() -> bool:
        return REASON in clients["alice"].log()

    ask_until(lambda: are_valid(pinned, free) and alice_has_read_it(), "Bob's jobs", clients.values(), project, site)
    done = Result.objects.filter(workunit__in=[pinned, free]).order_by("workunit_id")
    assert [(result.host_id, result.app_version.version_num) for result in done if result.app_version] == [
        (hosts[bob.pk].pk, older.version_num),
        (hosts[bob.pk].pk, older.version_num + 1),
    ]
    assert targeted.results.get().server_state == ServerState.UNSENT

    block.delete()
    ask_until(lambda: are_valid(targeted), "Alice's job", clients.values(), project, site)
    assert targeted.results.get().host_id == hosts[alice.pk].pk
