"""The import of a BOINC project, of which this is a hundredth: 10,000 people, 50,000 computers and 200,000
results, on a MariaDB server.

Half of the computers' rows were merged into others, as in most old databases. Rows a second by step, the most memory,
and the minutes that 1,000,000 people, 5,000,000 computers and 20,000,000 results would take at this rate.
"""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path
from typing import Any, Final

from django.db import connection
from django.utils import timezone

from extras.moving_in.boinc import steps
from extras.moving_in.engine.tally import Tally
from extras.moving_in.machinery import run
from extras.moving_in.machinery.steps import Context
from extras.moving_in.models import ImportStep
from extras.moving_in.source import Source
from extras.moving_in.tests.old_project import OldProject
from extras.moving_in.tests.old_work import APP, VERSION, OldWork
from tools.benchmarks.harness import cpu, mariadb
from tools.benchmarks.harness.server import most_memory_kb

PEOPLE: Final = int(os.environ.get("IMPORT_PEOPLE", "10000"))
HOSTS_EACH: Final = 5
WHOLE_PEOPLE: Final = 1_000_000
_PREFERENCES: Final = (
    "<global_preferences>\\n<mod_time>1690000000</mod_time>\\n<max_ncpus_pct>75</max_ncpus_pct>\\n</global_preferences>"
)
_FILL: Final = f"""
INSERT INTO user (id, create_time, email_addr, name, authenticator, country, total_credit, expavg_credit, expavg_time,
       global_prefs, teamid, cross_project_id, passwd_hash)
SELECT seq, 1500000000 + seq, concat('volunteer', seq, '@example.org'), concat('Volunteer ', seq), md5(seq), 'Germany',
       seq * 10, seq / 10, 1700000000, if(seq % 5 = 0, '{_PREFERENCES}', ''), if(seq % 3 = 0, 1 + seq % 100, 0),
       md5(concat('c', seq)),
       if(seq % 10 = 0, md5(seq + 1), concat('$2y$10$', substr(concat(md5(seq), md5(seq + 7)), 1, 53)))
  FROM seq_1_to_PEOPLE;
INSERT INTO team (id, create_time, userid, name, type, description, total_credit)
SELECT seq, 1500000000, seq, concat('Team ', seq), 1, '<p>A team</p>', seq * 1e6 FROM seq_1_to_100;
INSERT INTO team_delta SELECT id, teamid, create_time + 1000, 1, total_credit / 2 FROM user WHERE teamid > 0;
INSERT INTO host (id, create_time, userid, rpc_seqno, rpc_time, total_credit, expavg_credit, expavg_time, domain_name,
       serialnum, on_frac, active_frac, duration_correction_factor, p_ncpus, p_vendor, p_model, p_fpops, p_iops,
       os_name, os_version, m_nbytes, d_total, host_cpid)
SELECT seq, 1500000000 + seq, if(seq % 2, 1 + seq % PEOPLE, 0), if(seq % 2, seq % 3000, seq + 1), 1690000000, seq,
       seq / 100, 1690000000, concat('machine', seq),
       '[BOINC|8.2.4][CUDA|NVIDIA GeForce RTX 2070|1|8191MB|53104|300]', 0.9, 0.9, 1, 12, 'GenuineIntel',
       'Intel(R) Core(TM) i7-8700K CPU @ 3.70GHz [Family 6 Model 158 Stepping 10]', 4e9, 1e10,
       'Linux Debian', 'Debian GNU/Linux 12 [6.1.0|libc 2.36]', 16e9, 5e11, md5(concat('h', seq))
  FROM seq_1_to_HOSTS;
INSERT INTO workunit (id, create_time, appid, name, xml_doc, rsc_fpops_est, rsc_fpops_bound, rsc_memory_bound,
       rsc_disk_bound, delay_bound, canonical_resultid, canonical_credit, transition_time, assimilate_state,
       file_delete_state, min_quorum, target_nresults)
SELECT seq, 1600000000 + seq, {APP}, concat('fold_wu_', seq),
       '<workunit>\n<command_line>\n--seed 7\n</command_line>\n</workunit>',
       2e12, 2e15, 1e8, 1e8, 604800, 2 * seq, 12.5, 2147483647, 2, 2, 2, 2
  FROM seq_1_to_WORKUNITS;
INSERT INTO result (id, create_time, workunitid, server_state, outcome, client_state, hostid, userid, report_deadline,
       sent_time, received_time, name, cpu_time, elapsed_time, xml_doc_in, xml_doc_out, stderr_out, file_delete_state,
       validate_state, claimed_credit, granted_credit, appid, app_version_id, app_version_num, flops_estimate)
SELECT seq, 1600000000 + seq, (seq + 1) div 2, 5, 1, 5, 1 + 2 * (seq % (HOSTS div 2)), 1 + seq % PEOPLE, 1601000000,
       1600001000, 1600090000, concat('fold_wu_', (seq + 1) div 2, '_', seq % 2), 3600, 3700, '<result></result>', '',
       '<core_client_version>8.2.4</core_client_version>', 2, 1, 12.4, 12.5, {APP}, {VERSION}, 105, 4e9
  FROM seq_1_to_RESULTS;
ANALYZE TABLE user, host, team, workunit, result
"""


def measure() -> dict[str, Any]:
    """Measure by step the rows, seconds and rows a second; then the processor time of all three processes, and the
    memory.
    """
    if not mariadb.is_installed():
        return {"skipped": "mariadb-server is not installed"}
    with mariadb.server() as server, tempfile.TemporaryDirectory() as name:
        _fill(server, Path(name))
        before = _used_secs(server)
        _import(server, Path(name))
        used = {name: round(secs - before[name], 2) for name, secs in _used_secs(server).items()}
        by_step = _by_step()
        options = Path(name, "my.cnf")
        options.write_text(f"[client]\nuser=root\nsocket={server.socket}\n")
        megabytes = round(
            most_memory_kb(f'import_boinc", "project", "--defaults-file={options}", "--project-folder={name}/fold')
            / 1024
        )
    times = WHOLE_PEOPLE / PEOPLE / 60
    return {
        **by_step,
        "processor secs": used,
        "for a million people": {
            "minutes": round(sum(step["secs"] for step in by_step.values()) * times, 1),
            "processor_minutes": round(sum(used.values()) * times, 1),
        },
        "what changed": {"minutes": round(sum(step["secs"] for step in _by_step().values()) * times, 1)},
        "megabytes": megabytes,
    }


def _fill(server: mariadb.MariaDB, folder: Path) -> None:
    project = OldProject.create(server, "project")
    OldWork(project, folder / "fold").make()
    statements = _FILL
    numbers = {"PEOPLE": PEOPLE, "HOSTS": PEOPLE * HOSTS_EACH, "WORKUNITS": PEOPLE * 10, "RESULTS": PEOPLE * 20}
    for word, number in numbers.items():
        statements = statements.replace(word, str(number))
    project.run(statements)
    project.close()


def _import(server: mariadb.MariaDB, folder: Path) -> None:
    source = Source("project", unix_socket=str(server.socket), user="root")
    context = Context(source, timezone.now(), folder / "fold")
    run.carry_out(steps.SOURCE, steps.steps(), context, lambda _line: None)
    source.close()


def _by_step() -> dict[str, dict[str, float]]:
    tallies = {row.name: Tally.of_json(row.tally) for row in ImportStep.objects.order_by("pk")}
    return {
        name: {"rows": tally.nread, "secs": round(tally.secs, 2), "rate": round(tally.nread / max(tally.secs, 1e-3))}
        for name, tally in tallies.items()
        if tally.nread
    }


def _used_secs(server: mariadb.MariaDB) -> dict[str, float]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        ((backend,),) = cursor.fetchall()
    return {
        "import": time.process_time(),
        "postgresql": cpu.whole_secs_of(backend),
        "mariadb": cpu.whole_secs_of(server.pid),
    }
