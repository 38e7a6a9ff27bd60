"""Debian's BOINC client, attached to an account manager as Science United is, then to this site at the same address."""

from __future__ import annotations

import hashlib
import re
import time
from decimal import Decimal
from pathlib import Path

from accounting.engine.amounts import MICRO
from accounting.ledger.check import differences
from accounting.models import HostProject
from extras.moving_in.engine.amounts import KINDS
from extras.moving_in.tests.old_science_united import ScienceUnited
from extras.moving_in.tests.stub_manager import HOST_NUMBER, StubManager, first
from portal.models import ClientKey, Host
from portal.wire import signing
from portal.wire.credentials import client_password_hash, key_hash
from tests.e2e.conftest import boinc_client, site_var_dir
from tests.support.boinc_client import BoincClient
from tests.support.mini_project import Job, MiniProject
from tests.support.own_project import Manage
from tests.support.site_process import Site
from tests.support.wait import wait_until

__all__ = ["boinc_client", "site_var_dir"]
EMAIL, PASSWORD = "user7@example.org", "many small stones"
STRONG = "0123456789abcdef0123456789abcdef"
JOB_SECS = 4.0
_THEIR_NAMES = {"njobs_fail": "njobs_error"}


def totals(request: str) -> dict[str, Decimal]:
    """Of the only project in a request, by Science United's names."""
    section = re.search(r"<project>.*?</project>", request, re.DOTALL)
    assert section is not None
    return {kind: Decimal(first(section[0], _THEIR_NAMES.get(kind, kind))) for kind in KINDS}


def fill(old: ScienceUnited, request: str, project: MiniProject, at: int, key: signing.PrivateKey) -> None:
    """The database as Science United has it after this request."""
    old.user(7, email_addr=EMAIL, authenticator=STRONG, passwd_hash=client_password_hash(PASSWORD, EMAIL))
    old.project(
        3, project.name, url=project.url, authenticator=project.account_key,
        url_signature=signing.sign(project.url.encode(), key),
    )  # fmt: skip
    said = {name: first(request, name) for name in ("domain_name", "host_cpid", "p_vendor", "p_model", "os_name")}
    old.computer(HOST_NUMBER, 7, rpc_time=at, p_ncpus=1, p_fpops=float(first(request, "p_fpops")), **said)
    old.add(
        "su_host_project", host_id=HOST_NUMBER, project_id=3, active=1, last_rpc=at,
        project_host_id=int(first(request, "hostid")), **totals(request),
    )  # fmt: skip


def test_a_real_client_goes_on_without_a_message(
    transactional_db: None,
    science_united: ScienceUnited,
    site_var_dir: Path,
    boinc_client: BoincClient,
    tmp_path: Path,
) -> None:
    key = signing.parse_private_key((site_var_dir / "am_signing_private").read_text())
    weak = f"7_{hashlib.md5(b'shared', usedforsecurity=False).hexdigest()}"
    login = EMAIL, client_password_hash(PASSWORD, EMAIL)
    with MiniProject(job_secs=(JOB_SECS,), account_key=weak) as project:
        with StubManager(login, STRONG, key, project.url, project.account_key) as manager:
            boinc_client.attach_manager(manager.url, EMAIL, PASSWORD)
            wait_until(lambda: project.jobs[0].report, "the first job to be reported", 240)
            boinc_client.sync_manager()
            before, moved_at = manager.requests[-1], time.time()
            assert f"<host_id>{HOST_NUMBER}</host_id>" in before and totals(before)["njobs_success"] == 1
        project.jobs.append(Job("primes_1", JOB_SECS))
        fill(science_united, before, project, int(moved_at), key)
        log = boinc_client.log()
        with Site(site_var_dir, tmp_path / "site.log", PORT=str(manager.port)) as site:
            options = tmp_path / "my.cnf"
            options.write_text(f"[client]\nsocket={science_united.server.socket}\nuser=root\n")
            keys = {"CODE_SIGNING_KEY": "none", "CODE_SIGNING_KEY_PUBLIC": "none"}
            Manage(site, **keys)("import_science_united", science_united.name, "--defaults-file", str(options))
            boinc_client.update_project(project.url)
            wait_until(lambda: project.jobs[1].report, "the second job to be reported", 240)
            # A client counts the last interval of a job twice: let so much time have passed.
            wait_until(lambda: time.time() > moved_at + 2 * JOB_SECS + 12, "the allowance", 60)
            boinc_client.sync_manager()
            after = boinc_client.manager_request()
            host = Host.objects.get(former_number=HOST_NUMBER)
            assert f"<host_id>{HOST_NUMBER}</host_id>" in after and first(after, "authenticator") == STRONG
            boinc_client.sync_manager()
            again = boinc_client.manager_request()
        new = boinc_client.log().removeprefix(log)
    assert boinc_client.project_urls() == [project.url]
    words = ("Message from account manager", "Account manager:", "Inconsistent", "Detach", "Bad signature", "failed")
    for word in words:
        assert word not in new, new
    # It has a key and an id of its own from then on.
    assert first(again, "opaque") == f"<host>{host.token}</host>"
    assert ClientKey.objects.get(key_hash=key_hash(first(again, "authenticator"))).host == host
    row = HostProject.objects.get(host=host)
    grown = {kind: totals(after)[kind] - totals(before)[kind] for kind in KINDS}
    # What was credited at both contacts here; nothing was done between these.
    assert row.credited == [int(grown[kind] * (MICRO if "njobs" not in kind else 1)) for kind in KINDS]
    assert grown["njobs_success"] == 1 and grown["cpu_time"] >= Decimal(JOB_SECS)
    assert list(differences()) == []
