"""The import of a BOINC project, of which this is a hundredth: 10,000 people and 50,000 computers, on a MariaDB server.

Half of the computers' rows were merged into others, as in most old databases. Rows a second by step, the most memory,
and the minutes that 1,000,000 people and 5,000,000 computers would take at this rate.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any, Final

from django.conf import settings

from extras.moving_in.engine.tally import Tally
from extras.moving_in.models import ImportStep
from tools.benchmarks.harness import mariadb
from tools.benchmarks.harness.server import most_memory_kb

PEOPLE: Final = int(os.environ.get("IMPORT_PEOPLE", "10000"))
HOSTS_EACH: Final = 5
WHOLE_PEOPLE: Final = 1_000_000
_SCHEMA: Final = settings.BASE_DIR / "extras" / "moving_in" / "tests" / "schema.sql"
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
ANALYZE TABLE user, host, team
"""


def measure() -> dict[str, Any]:
    """By step, the rows, seconds and rows a second."""
    if not mariadb.is_installed():
        return {"skipped": "mariadb-server is not installed"}
    with mariadb.server() as server, tempfile.TemporaryDirectory() as name:
        server.run("CREATE DATABASE project")
        server.run(_SCHEMA.read_text(), "project")
        server.run(_FILL.replace("PEOPLE", str(PEOPLE)).replace("HOSTS", str(PEOPLE * HOSTS_EACH)), "project")
        options = Path(name, "my.cnf")
        options.write_text(f"[client]\nuser=root\nsocket={server.socket}\n")
        arguments = f'import_boinc", "project", "--defaults-file={options}'
        first, megabytes = _timed(arguments)
        again, _ = _timed(arguments)
    return {
        **first,
        "megabytes": megabytes,
        "minutes for a million people": round(_secs(first) * WHOLE_PEOPLE / PEOPLE / 60, 1),
        "minutes for what changed": round(_secs(again) * WHOLE_PEOPLE / PEOPLE / 60, 1),
    }


def _timed(command: str) -> tuple[dict[str, dict[str, float]], int]:
    megabytes = round(most_memory_kb(command) / 1024)
    steps = {row.name: Tally.of_json(row.tally) for row in ImportStep.objects.order_by("pk")}
    rates = {
        name: {"rows": tally.nread, "secs": round(tally.secs, 2), "rate": round(tally.nread / max(tally.secs, 1e-3))}
        for name, tally in steps.items()
        if tally.nread
    }
    return rates, megabytes


def _secs(steps: dict[str, dict[str, float]]) -> float:
    return sum(step["secs"] for step in steps.values())
