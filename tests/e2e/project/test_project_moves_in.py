"""A project of BOINC's server moves here while a real client computes a task of it: its volunteer notices nothing.

The cut-over is that of docs/how-to/move-a-project-here.md, with nginx in front, which answers until the site does.
"""

from __future__ import annotations

import hashlib
import re
import time
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from accounting.models import Project
from credit.models import Result, ServerState, UserCredit, ValidateState
from extras.moving_in.tests.old_project import OldProject
from extras.moving_in.tests.old_server import HOST, KEY, PROGRAM, USER, OldServer, text_of
from extras.moving_in.tests.old_work import VERSION, OldWork
from extras.moving_in.tests.small_project import PASSWORD, php_hash, sent_for
from portal.models import Host
from scheduler.models import FormerOutput
from tests.support.boinc_client import BoincClient
from tests.support.nginx_deployment import DEPLOY, Deployment
from tests.support.own_project import Manage, ask_until
from tests.support.site_process import Site, celery_worker
from tests.support.validator_runs import differences
from tests.support.wait import wait_until

EMAIL = f"user{USER}@example.org"
BEFORE = 7000.0
TASK_SECS = 40
FORMER_PATHS = "/fold/, /fold_cgi/cgi, /fold_cgi/file_upload_handler"


def former_addresses() -> dict[str, str]:
    """The lines of deploy/nginx.conf for a project that was at /fold/, put into force."""
    lines = re.findall(r"^    # (rewrite .*;)$", (DEPLOY / "nginx.conf").read_text(), re.M)
    assert len(lines) == 3
    return {f"# {line}": line for line in lines}


def fill(project: OldProject, request: str) -> None:
    """What BOINC's server knows by the request that the client sent last: its owner, its computer, its records."""
    now = int(time.time())
    credit: dict[str, Any] = {"total_credit": BEFORE, "expavg_credit": 70.0, "expavg_time": float(now)}
    project.user(USER, passwd_hash=php_hash(PASSWORD, EMAIL), **credit)
    cpid = hashlib.md5(f"{text_of(request, 'host_cpid')}{EMAIL}".encode()).hexdigest()
    values = {name: text_of(request, name) for name in ("domain_name", "p_vendor", "p_model", "os_name", "os_version")}
    project.add(
        "host",
        id=HOST,
        userid=USER,
        rpc_seqno=int(text_of(request, "rpc_seqno")),
        rpc_time=now,
        p_ncpus=1,
        p_fpops=1e9,
        host_cpid=cpid,
        **values,
        **credit,
    )
    record = {"pfc_n": 30.0, "pfc_avg": 0.5, "et_n": 30.0, "et_avg": 1e-9, "consecutive_valid": 30}
    project.add("host_app_version", host_id=HOST, app_version_id=VERSION, max_jobs_per_day=400, **record)


def signed_in_home(site: Site) -> str:
    """What the volunteer sees after signing in with the password of before."""
    browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
    form = browser.open(f"{site.url}account/login/").read().decode()
    token = re.search(r'name="csrfmiddlewaretoken" value="(\w+)"', form)
    assert token is not None
    fields = {"login": EMAIL, "password": PASSWORD, "csrfmiddlewaretoken": token[1]}
    with browser.open(f"{site.url}account/login/", urllib.parse.urlencode(fields).encode()) as reply:
        assert reply.url == f"{site.url}home/"
        return str(reply.read().decode())


def assert_that_the_client_goes_on(client: BoincClient, url: str, total_credit: float) -> None:
    """It has kept its project, its number and its task, and shows the total."""
    client.update_project(url)
    state = client.directory / "client_state.xml"
    total = f"<user_total_credit>{total_credit:.6f}"
    wait_until(lambda: total in state.read_text(), "the total to be shown", 60)
    assert client.project_urls() == [url]
    assert f"<hostid>{HOST}</hostid>" in state.read_text()
    assert Host.objects.count() == 1
    log = client.log()
    for trouble in ("Detaching", "Resetting", "wrong URL", "signature", "Upload refused", "giving up"):
        assert trouble not in log, trouble


def assert_that_its_owner_can_sign_in(site: Site, url: str, total_credit: float) -> None:
    """With the old password, on the web and in the Manager; and others still read the total by the old key."""
    assert f"Volunteer {USER}" in signed_in_home(site)
    query = f"email_addr={EMAIL}&passwd_hash={sent_for(PASSWORD, EMAIL)}"
    with urllib.request.urlopen(f"{url}lookup_account.php?{query}") as answer:
        assert re.search(rb"<authenticator>\w{32}</authenticator>", answer.read())
    with urllib.request.urlopen(f"{url}show_user.php?format=xml&userid={USER}&auth={KEY}") as answer:
        shown = re.search(r"<total_credit>(.*?)<", answer.read().decode())
        assert shown is not None and float(shown[1]) == pytest.approx(total_credit, abs=1e-5)


@pytest.mark.django_db(transaction=True)
def test_a_client_goes_on_after_its_project_moved_here(
    old_project: OldProject,
    boinc_client: BoincClient,
    site_var_dir: Path,
    site_settings: dict[str, str],
    tmp_path: Path,
) -> None:
    # Where the commands put them.
    places = {"FILES_DIR": str(site_var_dir / "files"), "UPLOADS_DIR": str(site_var_dir / "uploads")}
    settings = {**site_settings, **places, "FORMER_PATHS": FORMER_PATHS}
    here = Deployment(site_var_dir, tmp_path, former_addresses(), **settings)
    port = here.address[1]
    work = OldWork(old_project, tmp_path / "fold", url=f"{here.url}fold/")
    work.make(PROGRAM.encode(), pfc_n=100.0, pfc_avg=0.5, pfc_scale=1.0)
    sizes = {"min_quorum": 1, "rsc_fpops_est": 2e10, "rsc_fpops_bound": 1e14}
    for number, secs in ((1, TASK_SECS), (2, 1)):
        work.workunit(number, f"{secs}\n".encode(), "in out", **sizes)
    first = work.sent(101, 1, HOST, USER, sent_time=int(time.time()))
    second = work.result(102, 2)

    with OldServer(work, port, [first]) as old_server:
        boinc_client.command("--project_attach", work.url, KEY)
        wait_until(lambda: "EXECUTING" in boinc_client.command("--get_tasks"), "the task to run", 90)
    fill(old_project, old_server.requests[-1])

    (tmp_path / "mariadb.cnf").write_text(f"[client]\nsocket={old_project.server.socket}\nuser=root\n")
    site = Site(site_var_dir, tmp_path / "site.log", PORT=str(port), **settings)
    manage = Manage(site)
    manage("prepare")
    orders = [old_project.name, "--defaults-file", str(tmp_path / "mariadb.cnf"), "--project-folder", str(work.folder)]
    said = manage("import_boinc", *orders)
    assert FORMER_PATHS in said
    assert differences() == []
    with here, celery_worker(site.environment, tmp_path / "worker.log", "--beat"):
        here.clients.stop()
        boinc_client.command("--project", work.url, "update")
        wait_until(lambda: "The server is being restarted" in boinc_client.log(), "the client to be told", 60)
        here.clients.start()
        project = Project.objects.get(is_own=True)
        assert project.master_url == work.url
        valid = Result.objects.filter(validate_state=ValidateState.VALID)
        ask_until(lambda: valid.count() == 2, "both tasks to be validated", [boinc_client], work.url, site)
        assert valid.get(name=first).host_id == valid.get(name=second).host_id == HOST
        assert Result.objects.exclude(server_state=ServerState.OVER).count() == 0
        # Under the name and by the certificate that the old server gave; the next one by ours
        former = FormerOutput.objects.get()
        assert (former.result.name, former.name) == (first, f"{first}_r1193428123_0") and former.key is not None
        granted = sum(result.granted_credit or 0.0 for result in valid)
        assert granted > 0
        credit = UserCredit.objects.get(user=USER)
        assert credit.total_credit == pytest.approx(BEFORE + granted, abs=1e-6)
        # A minute later the average of before has lost next to nothing.
        assert credit.expavg_credit == pytest.approx(70 + granted * 0.1, abs=granted * 0.1 + 0.1)
        assert differences() == []

        assert_that_the_client_goes_on(boinc_client, work.url, credit.total_credit)
        assert_that_its_owner_can_sign_in(site, work.url, credit.total_credit)
