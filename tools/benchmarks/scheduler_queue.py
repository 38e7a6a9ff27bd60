"""A project for measurements: an app, computers with keys, and a number of waiting jobs."""

from __future__ import annotations

import datetime as dt
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from django.db import connection
from django.utils import timezone

from credit.engine.states import AssimilateState, FileDeleteState, Outcome, ServerState, ValidateState
from credit.models import App, AppVersion, Platform
from portal.models import ClientKey, Host, User
from portal.wire import credentials
from scheduler.models import StoredFile, VersionFile
from scheduler.programs import code_signing
from scheduler.programs.catalogue import KEPT_SECS
from tools.benchmarks.harness.database import execute

HOSTS: Final = 2000
JOBS_PER_RPC: Final = 2
KEY_AGE: Final = dt.timedelta(days=30)
FASTEST: Final = 2_000
"""Approximate jobs sent per second; the floor sends twice as many."""
PLATFORM: Final = "x86_64-pc-linux-gnu"
FEATURES: Final = (
    "fpu vme de pse tsc msr pae mce cx8 apic sep mtrr pge mca cmov pat pse36 clflush mmx fxsr sse sse2 " * 9
)

_FILL: Final = f"""
WITH w AS (
  INSERT INTO credit_workunit (app_id, name, created_at, priority, fpops_est, fpops_bound, memory_bound_bytes,
         disk_bound_bytes, delay_bound_secs, min_quorum, target_nresults, max_error_results, max_total_results,
         max_success_results, command_line, input_files, output_files, need_validate, error_mask, assimilate_state,
         file_delete_state)
  SELECT %(app)s, %(prefix)s || n, now(), 0, 1e13, 1e15, 1e8, 1e8, 604800, 2, 2, 3, 10, 6, 'in out',
         jsonb_build_array(jsonb_build_object('name', %(prefix)s || n || '_in', 'open_name', 'in', 'nbytes', 3,
                                              'md5', md5('x'))),
         '[{{"open_name": "out", "max_nbytes": 100000}}]', false, 0, {AssimilateState.INIT},
         {FileDeleteState.INIT}
    FROM generate_series(1, %(njobs)s / 2) n
  RETURNING id, name)
INSERT INTO credit_result (workunit_id, app_id, name, priority, created_at, server_state, outcome, validate_state,
       file_delete_state, processor_type, is_runtime_outlier, stderr_text, report_faults, outputs,
       partial_elapsed_secs, partial_credit, queue_shift)
SELECT w.id, %(app)s, w.name || '_' || copy, 0, now(), {ServerState.UNSENT}, {Outcome.INIT},
       {ValidateState.INIT}, {FileDeleteState.INIT}, 'CPU', false, '', '[]', '[]', 0, 0,
       floor(random() * %(njobs)s)::bigint - row_number() OVER (ORDER BY w.id, copy)
  FROM w CROSS JOIN generate_series(0, 1) copy ORDER BY w.id, copy
"""
_REPORT: Final = f"""
UPDATE credit_result
   SET server_state = {ServerState.OVER}, outcome = {Outcome.SUCCESS}, received_at = now(), elapsed_secs = 3600,
       cpu_secs = 3600
 WHERE server_state = {ServerState.IN_PROGRESS}
"""


@dataclass(slots=True)
class QueueMember:
    """A computer of the fleet: its state and its messages."""

    key: str
    host_id: int
    code_key: str
    ncpus: int = 8
    sent: int = 0
    jobs: list[bytes] = field(default_factory=list)
    # Its message without the number of its request and its jobs, built once: sending it should cost little.
    says: tuple[bytes, bytes] = field(init=False)

    def __post_init__(self) -> None:
        before, after = self._head().split(b"@")
        self.says = before, after

    def request(self) -> bytes:
        """Two idle processors ask for a job each."""
        self.sent += 1
        others = b"".join(
            [
                b"    <other_result>\n        <name>%b</name>\n        <app_version>0</app_version>\n"
                b"    </other_result>\n" % name
                for name in self.jobs
            ]
        )
        return b"%b%d%b%b</other_results>\n</scheduler_request>\n" % (self.says[0], self.sent, self.says[1], others)

    def read(self, reply: bytes) -> int:
        """Return the number of jobs in the reply."""
        new = [result[: result.index(b"<")] for result in reply.split(b"<result>\n<name>")[1:]]
        self.jobs += new
        return len(new)

    def _head(self) -> bytes:
        return f"""<scheduler_request>
    <authenticator>{self.key}</authenticator>
    <hostid>{self.host_id}</hostid>
    <rpc_seqno>@</rpc_seqno>
    <core_client_major_version>7</core_client_major_version>
    <core_client_minor_version>20</core_client_minor_version>
    <core_client_release>5</core_client_release>
    <work_req_seconds>1.000000</work_req_seconds>
    <cpu_req_secs>1.000000</cpu_req_secs>
    <cpu_req_instances>{JOBS_PER_RPC}</cpu_req_instances>
    <estimated_delay>0.000000</estimated_delay>
    <platform_name>{PLATFORM}</platform_name>
    <code_sign_key>
{self.code_key}
</code_sign_key>
<working_global_preferences>
<global_preferences>
{"   <work_buf_min_days>0.001000</work_buf_min_days>" * 40}
</global_preferences>
</working_global_preferences>
<time_stats>
    <on_frac>0.999988</on_frac>
    <connected_frac>-1.000000</connected_frac>
    <active_frac>1.000000</active_frac>
    <gpu_active_frac>1.000000</gpu_active_frac>
    <now>1795248581.085161</now>
</time_stats>
<host_info>
    <timezone>0</timezone>
    <domain_name>host{self.host_id}</domain_name>
    <host_cpid>{self.host_id:032x}</host_cpid>
    <p_ncpus>{self.ncpus}</p_ncpus>
    <p_vendor>GenuineIntel</p_vendor>
    <p_model>Test CPU</p_model>
    <p_features>{FEATURES}</p_features>
    <p_fpops>4000000000.000000</p_fpops>
    <p_iops>4000000000.000000</p_iops>
    <m_nbytes>25276514304.000000</m_nbytes>
    <d_total>270553174016.000000</d_total>
    <d_free>81025441792.000000</d_free>
    <os_name>Linux Debian</os_name>
</host_info>
<app_versions>
</app_versions>
<other_results>
""".encode()


def create() -> tuple[App, list[QueueMember]]:
    """Create an app with a version, and computers of the same number of volunteers."""
    code_signing.make_if_missing()
    app = App.objects.create(name="bench", user_friendly_name="Bench", max_jobs_per_day_init=10_000)
    platform = Platform.objects.create(name=PLATFORM)
    version = AppVersion.objects.create(app=app, platform=platform, version_num=100)
    file = StoredFile.objects.create(
        name="bench_100", path="bench_100", nbytes=423, md5="d" * 32, signature="ab" * 64 + "\n.\n", is_executable=True
    )
    VersionFile.objects.create(app_version=version, file=file, is_main_program=True)
    users = User.objects.bulk_create(
        User(email=f"cruncher{number}@example.org", name=f"Cruncher {number}") for number in range(HOSTS)
    )
    hosts = Host.objects.bulk_create(Host(owner=user, domain_name=f"host{user.pk}") for user in users)
    clear = [credentials.new_client_key() for _ in hosts]
    ClientKey.objects.bulk_create(
        ClientKey(
            user=host.owner,
            host=host,
            origin=ClientKey.Origin.ATTACH,
            key_hash=credentials.key_hash(key),
            hint=key[:6],
            # Like most, which are old: brand-new keys share a tie, which keeps copies from all others.
            created_at=timezone.now() - KEY_AGE,
            last_used_at=timezone.now(),
        )
        for host, key in zip(hosts, clear, strict=True)
    )
    code_key = code_signing.code_signing_key_text()
    return app, [QueueMember(key, host.pk, code_key) for host, key in zip(hosts, clear, strict=True)]


def fill(app: App, njobs: int) -> None:
    """Make exactly this many jobs wait, and no others exist or be kept ready."""
    execute("TRUNCATE credit_result, credit_workunit CASCADE")
    # The site's processes cannot be notified, but drop their ready jobs at this age.
    time.sleep(KEPT_SECS)
    add(app, njobs)
    _vacuum()


def take_back(members: list[QueueMember]) -> None:
    """Mark the sent jobs as done and reported."""
    execute(_REPORT)
    for member in members:
        member.jobs.clear()
    _vacuum()


def add(app: App, njobs: int) -> None:
    """Add jobs at the end of the queue, as copies of half as many workunits."""
    execute(_FILL, app=app.pk, prefix=f"wu{time.monotonic_ns()}_", njobs=njobs)


@contextmanager
def held(add: Callable[[int], None], count_sent: Callable[[], int], njobs: int) -> Iterator[None]:
    """Replace sent jobs, at the end, and as often before as a tenth of ``njobs`` may be gone.

    A separate thread does it; its error is raised at the end.
    """
    over = threading.Event()
    nsent_before = count_sent()

    def top_up() -> None:
        nadded, is_over = nsent_before, False
        try:
            while not is_over:
                is_over = over.wait(0.1 * njobs / FASTEST)
                nsent = count_sent()
                add(nsent - nadded)
                nadded = nsent
        finally:
            connection.close()

    with ThreadPoolExecutor(1) as thread:
        done = thread.submit(top_up)
        try:
            yield
        finally:
            over.set()
        done.result()


def settle() -> None:
    """Flush what filling has left to write: a real queue of this length was not filled just before."""
    execute("CHECKPOINT")


def _vacuum() -> None:
    execute("VACUUM ANALYZE credit_result", "VACUUM ANALYZE credit_workunit")
