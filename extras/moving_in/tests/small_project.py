"""Three years of a small project's people, teams and computers, with the odd rows that old databases have."""

from __future__ import annotations

import hashlib
from typing import Final

import bcrypt

from extras.moving_in.tests.old_project import T0, OldProject

DAY: Final = 86_400
NPEOPLE: Final = 60
"""Of the usual ones, who have the numbers 1 to 60; odd ones follow from 101, and computers have ten times the number
of their owner, and the next."""
PASSWORD: Final = "a password of 2019"
PREFERENCES: Final = (
    b"<global_preferences>\n<mod_time>1690000000</mod_time>\n<run_on_batteries/>\n<max_ncpus_pct>75</max_ncpus_pct>\n"
    b'<venue name="home">\n<max_ncpus_pct>50</max_ncpus_pct>\n</venue>\n</global_preferences>\n'
)


def sent_for(password: str, email: str) -> str:
    """What a client sends for a password."""
    return hashlib.md5((password + email.lower()).encode()).hexdigest()


def php_hash(password: str, email: str) -> str:
    """As PHP's password_hash stores it, at the lowest cost that there is."""
    hashed = bcrypt.hashpw(sent_for(password, email).encode(), bcrypt.gensalt(4))
    return "$2y$" + hashed.decode().removeprefix("$2b$")


def fill(project: OldProject) -> None:
    _teams(project)
    for number in range(1, NPEOPLE + 1):
        _usual(project, number)
    _odd_people(project)
    _odd_computers(project)
    _consents(project)


def _teams(project: OldProject) -> None:
    usual = {"name_lc": b"", "country": b"Germany", "expavg_time": T0}
    project.add("team", id=1, userid=1, name=b"Alpine folders", type=1, url=b"alpine.example.org", total_credit=9e5,
                description=b"<p>We fold.</p><br>Join &amp; fold", **usual)  # fmt: skip
    project.add("team", id=2, userid=99_999, name=b"alpine FOLDERS", type=9, total_credit=100.0, **usual)
    project.add("team", id=3, userid=2, name="Münchner Kreis".encode(), type=12, total_credit=1e5, joinable=0, **usual)


def _usual(project: OldProject, number: int) -> None:
    """In a team each third; three quarters with a computer, some with two."""
    email = f"user{number}@example.org"
    total, team = 1000.0 * number, 1 if number % 3 == 0 else 0
    project.user(
        number,
        create_time=T0 - 3 * 365 * DAY + number * DAY,
        passwd_hash=php_hash(PASSWORD, email) if number % 5 else sent_for(PASSWORD, email),
        total_credit=total,
        expavg_credit=total / 100,
        expavg_time=T0 - number * 3600,
        teamid=team,
        global_prefs=PREFERENCES if number % 4 == 0 else b"",
        project_prefs=b"<project_preferences><max_jobs>4</max_jobs></project_preferences>" if number < 5 else b"",
        send_email=number % 2,
        show_hosts=number % 2,
    )
    if team:
        project.add(
            "team_delta", userid=number, teamid=team, timestamp=T0 - 100 * DAY, joining=1, total_credit=total / 2
        )
    for computer in range(number % 4 and 1 + number % 2):
        host(project, number * 10 + computer, number, total_credit=total / 3)


def host(project: OldProject, number: int, owner: int, **values: object) -> int:
    """A computer with the usual values."""
    usual: dict[str, object] = {
        "id": number,
        "userid": owner,
        "rpc_time": T0 - number * 60,
        "rpc_seqno": number % 500,
        "domain_name": f"machine-{number}",
        "serialnum": "[BOINC|8.2.4][CUDA|NVIDIA GeForce RTX 2070|1|8191MB|53104|300][vbox|7.0.12|1|1]",
        "p_vendor": "GenuineIntel",
        "p_model": "Intel(R) Core(TM) i7-8700K CPU @ 3.70GHz [Family 6 Model 158 Stepping 10]",
        "p_ncpus": 12,
        "p_fpops": 4.1e9,
        "p_iops": 1.2e10,
        "os_name": "Linux Debian",
        "os_version": "Debian GNU/Linux 12 [6.1.0|libc 2.36]",
        "m_nbytes": 16e9,
        "d_total": 5e11,
        "on_frac": 0.9,
        "active_frac": 0.95,
        "connected_frac": -1,
        "gpu_active_frac": 0.8,
        "duration_correction_factor": 1,
        "expavg_credit": 5.0,
        "expavg_time": T0 - 3600,
        "host_cpid": hashlib.md5(f"client {number} user{owner}@example.org".encode()).hexdigest(),
    }
    return project.add("host", **(usual | values))


def _odd_people(project: OldProject) -> None:
    # The same address by case: 102's computer reported last.
    project.user(101, email_addr="Twice@Example.org", passwd_hash=php_hash(PASSWORD, "twice@example.org"))
    project.user(102, email_addr="twice@example.org", passwd_hash=php_hash(PASSWORD, "twice@example.org"))
    host(project, 1010, 101, rpc_time=T0 - 50 * DAY)
    host(project, 1020, 102, rpc_time=T0)
    project.user(103, email_addr="no address", name=b"")
    project.user(104, name="José".encode(), country=b"Spain")
    # UTF-8 twice, as CONVERT TO leaves it; latin1; what may be either.
    project.user(105, name="José".encode().decode("cp1252").encode())
    project.user(106, name="José".encode("latin1"))
    project.user(107, name="CAFÉ–BAR".encode())
    project.user(108, name=b"<b>bold</b>\x01\x07 name" + b"x" * 120)
    project.user(109, authenticator="x" + f"{109:031x}", total_credit=50.0, expavg_time=T0)
    project.user(110, email_addr="deleted_1700000000_abc", authenticator="deleted_1700000000_abc", name="deleted")
    project.user(111, total_credit=-5.0, expavg_credit=1e300)
    project.user(112, passwd_hash="$argon2id$v=19$m=65536,t=4,p=1$abc$def")
    project.user(
        113, global_prefs=b"<global_preferences>\n<mod_time>5</mod_time>\n<run_on_batteries>\n</global_preferences>"
    )
    project.user(114, teamid=777, cross_project_id="0", create_time=0, venue="192.0.2.7")
    project.user(115, passwd_hash="")


def _odd_computers(project: OldProject) -> None:
    # Merged: 5000 into 5001 into 30; 5002 into one that is gone; 5003 and 5004 into each other; 5005 deleted.
    for number, into in ((5000, 5001), (5001, 30), (5002, 4999), (5003, 5004), (5004, 5003), (5005, 0)):
        host(project, number, 0, rpc_seqno=into, total_credit=0, expavg_credit=0, expavg_time=0)
    host(project, 5010, 88_888)
    host(project, 5011, 3, p_fpops=-1, m_nbytes=1e40, on_frac=-1, rpc_time=0, rpc_seqno=-3, max_results_day=-1,
         venue="mars", domain_name=b"r\xe4chner", misc=b'{"client_version":"8.0.2","gpus":[{"type":"amd","model":"RX",'
         b'"count":2,"ram_mb":4096,"driver_version":"24.1","opencl_version":"200"}]}')  # fmt: skip
    host(project, 5012, 3, p_model="AMD Athlon [fpu tsc sse sse2]", serialnum="")


def _consents(project: OldProject) -> None:
    project.add("consent_type", id=1, shortname="ENROLL", description="terms", enabled=1)
    project.add("consent_type", id=2, shortname="STATSEXPORT", description="export", enabled=1)
    for number in range(1, 21):
        project.add("consent", userid=number, consent_type_id=1, consent_time=T0, consent_flag=1, source="webform")
        project.add("consent", userid=number, consent_type_id=2, consent_time=T0, consent_flag=1, source="webform")
    # Two at the same time, of which the later row counts; and of nobody.
    project.add("consent", userid=1, consent_type_id=2, consent_time=T0, consent_flag=0, source="webrpc")
    project.add("consent", userid=70_000, consent_type_id=2, consent_time=T0, consent_flag=1)
    project.add("user_deleted", userid=90, public_cross_project_id="d" * 32, create_time=T0)
    project.add("host_deleted", hostid=900, public_cross_project_id="e" * 32, create_time=T0)
    _badges(project)
    project.add("profile", userid=1, response1=b"Hello")
    project.add("credit_user", userid=1, appid=1, njobs=7, total=500.0, expavg=3.0, expavg_time=T0, credit_type=0)


def _badges(project: OldProject) -> None:
    # Two of one title, one that has the title of a badge of this site, one of teams, and one that is gone.
    for number, type_, title in ((1, 0, "Top 1%"), (2, 0, "Top 1%"), (3, 0, "First task"), (4, 1, "Team of the year")):
        project.add("badge", id=number, type=type_, name=f"badge_{number}", title=title, create_time=T0)
    for badge, owner in ((1, 3), (2, 3), (3, 4), (4, 5), (9, 6), (1, 70_000)):
        project.add("badge_user", badge_id=badge, user_id=owner, create_time=T0 - badge * DAY, reassign_time=T0)
