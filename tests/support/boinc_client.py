"""The real, unmodified BOINC client of the system, started in a fresh directory for one test.

It talks to loopback addresses only, measures nothing and suspends for nobody (BOINC protocol, test setup that
works). It runs under the guard, so that neither it nor its jobs outlive the test.
"""

import re
import secrets
import subprocess
from pathlib import Path
from typing import Self

from tests.support.guarded_program import GuardedProgram
from tools.benchmarks.harness.server import free_port

BOINC = "/usr/bin/boinc"
BOINCCMD = "/usr/bin/boinccmd"
# All that a client's environment holds, besides its home: no proxy, nothing of the person who runs the tests.
BASE_ENVIRONMENT = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"}

OPTIONS = ("--no_gpus", "--no_info_fetch", "--allow_multiple_clients", "--skip_cpu_benchmarks")
CC_CONFIG = """\
<cc_config>
  <log_flags><sched_op_debug>1</sched_op_debug><task_debug>1</task_debug></log_flags>
  <options>
    <ncpus>1</ncpus>
    <no_gpus>1</no_gpus>
    <no_alt_platform>1</no_alt_platform>
    <no_info_fetch>1</no_info_fetch>
    <dont_contact_ref_site>1</dont_contact_ref_site>
    <skip_cpu_benchmarks>1</skip_cpu_benchmarks>
    <report_results_immediately>1</report_results_immediately>
  </options>
</cc_config>
"""
# Addresses of BOINC's own servers, replaced by a loopback port where nobody listens.
NVC_CONFIG = """\
<nvc_config>
  <client_version_check_url>http://127.0.0.1:9/</client_version_check_url>
  <client_download_url>http://127.0.0.1:9/</client_download_url>
  <network_test_url>http://127.0.0.1:9/</network_test_url>
</nvc_config>
"""
# Other load on the machine must not suspend jobs.
GLOBAL_PREFERENCES = """\
<global_preferences>
  <run_if_user_active>1</run_if_user_active>
  <suspend_cpu_usage>0</suspend_cpu_usage>
  <work_buf_min_days>0.001</work_buf_min_days>
  <work_buf_additional_days>0</work_buf_additional_days>
</global_preferences>
"""


class BoincClient(GuardedProgram):
    """A running client; use it as a context manager. `directory` must be empty or not exist."""

    answer_secs = 30.0

    def __init__(self, directory: Path, ncpus: int = 1) -> None:
        self.directory = directory
        self._ncpus = ncpus
        self._port = free_port()
        self._password = secrets.token_hex(8)
        command = [BOINC, "--dir", str(directory), "--gui_rpc_port", str(self._port), *OPTIONS]
        environment = BASE_ENVIRONMENT | {"HOME": str(directory)}
        super().__init__("the BOINC client", command, directory / "client.log", environment, directory)

    def __enter__(self) -> Self:
        self.directory.mkdir(parents=True, exist_ok=True)
        for name, text in {
            "cc_config.xml": CC_CONFIG.replace("<ncpus>1</ncpus>", f"<ncpus>{self._ncpus}</ncpus>"),
            "nvc_config.xml": NVC_CONFIG,
            "global_prefs_override.xml": GLOBAL_PREFERENCES,
            "gui_rpc_auth.cfg": self._password,
        }.items():
            (self.directory / name).write_text(text)
        return super().__enter__()

    def command(self, *arguments: str, timeout_secs: float = 30) -> str:
        """Run `boinccmd` and return what it printed; AssertionError if it has not ended in time.

        It ends with 0 even where the account manager refused, so the text is what counts.
        """
        try:
            run = subprocess.run(
                [BOINCCMD, "--host", f"127.0.0.1:{self._port}", "--passwd", self._password, *arguments],
                cwd=self.directory,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                timeout=timeout_secs,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise AssertionError(
                f"boinccmd {arguments[:2]} has not ended after {timeout_secs:g} s\n{self.log()}"
            ) from error
        return run.stdout.decode(errors="replace")

    def attach_manager(self, url: str, login: str, password: str) -> str:
        """Attach to an account manager and return boinccmd's answer."""
        return self.command("--acct_mgr", "attach", url, login, password, timeout_secs=60)

    def sync_manager(self) -> str:
        """Let the client call its account manager now and return boinccmd's answer."""
        return self.command("--acct_mgr", "sync", timeout_secs=60)

    def project_urls(self) -> list[str]:
        """Return the master URLs of the attached projects, in the client's order."""
        return re.findall(r"^\s*master URL: (\S+)$", self.command("--get_project_status"), re.MULTILINE)

    def task_names(self) -> list[str]:
        """Return the names of the tasks that the client has, reported ones not counted."""
        return re.findall(r"^\s*name: (\S+)$", self.command("--get_tasks"), re.MULTILINE)

    def update_project(self, url: str) -> str:
        """Let the client contact a project's scheduler now and return boinccmd's answer."""
        return self.command("--project", url, "update")

    def resource_shares(self) -> dict[str, float]:
        """Return the resource share in force for each attached project, by master URL."""
        status = self.command("--get_project_status")
        found = re.findall(r"^\s*master URL: (\S+)$.*?^\s*resource share: (\S+)$", status, re.MULTILINE | re.DOTALL)
        return {url: float(share) for url, share in found}

    def manager_request(self) -> str:
        """Return the newest request to the account manager, as the client keeps it in its directory."""
        return (self.directory / "acct_mgr_request.xml").read_text(errors="replace")

    def answers(self) -> bool:
        return "domain name" in self.command("--get_host_info")
