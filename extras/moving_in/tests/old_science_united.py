"""The database of a Science United site, as tests fill it."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Self

from extras.moving_in.engine.amounts import KINDS
from extras.moving_in.tests.old_project import T0, OldProject
from portal.wire.credentials import client_password_hash
from tools.benchmarks.harness.mariadb import MariaDB

SCHEMA: Final = (Path(__file__).parent / "su_schema.sql").read_text()
DAY: Final = 86_400
Work = Mapping[str, float]
"""Amounts by their names there; those that are left out are 0."""


class ScienceUnited(OldProject):
    """A database; rows are added by name."""

    @classmethod
    def create(cls, server: MariaDB, name: str) -> Self:
        site = super().create(server, name)
        site.run(SCHEMA)
        return site

    def project(self, number: int, name: str, **values: Any) -> str:
        """A project as it is offered there; its URL."""
        url = values.pop("url", f"https://{name.lower()}.example.org/science/")
        key = f"7_key_of_{name.lower()}"
        self.add("su_project", **{"id": number, "name": name, "url": url, "authenticator": key, **values})
        return str(url)

    def computer(self, number: int, owner: int, **values: Any) -> int:
        usual = {
            "domain_name": f"computer{number}", "host_cpid": f"{number:032x}", "rpc_time": T0 + 40 * DAY,
            "p_ncpus": 4, "p_fpops": 4.32e9, "p_vendor": "GenuineIntel", "p_model": "Test CPU",
            "os_name": "Linux Debian",
        }  # fmt: skip
        return self.add("host", **{"id": number, "userid": owner, **usual, **values})

    def period(self, begin: float, delta: Work, total: Work | None = None, **owner: int) -> None:
        """A row of accounts: of a volunteer (``user_id``), a project (``project_id``), or of all."""
        table = "su_accounting_user" if "user_id" in owner else "su_accounting"
        table = "su_accounting_project" if "project_id" in owner else table
        amounts = {f"{kind}_delta": value for kind, value in delta.items()}
        amounts |= {f"{kind}_total": value for kind, value in (total or {}).items()}
        self.add(table, create_time=begin, **amounts, **owner)


def password_of(number: int) -> str:
    return f"secret {number}"


def sent_by_client(number: int) -> str:
    """What a client sends for the password of the person with this number."""
    return client_password_hash(password_of(number), f"user{number}@example.org")


@dataclass
class Books:
    """Three years of invented volunteers, and what each of them did by period: (begin, end, amounts) of each."""

    periods: dict[int, list[tuple[float, float, dict[str, float]]]] = field(default_factory=dict)

    def sum_of(self, user: int, kind: str) -> float:
        return sum(amounts[kind] for _begin, _end, amounts in self.periods.get(user, []))


def fill(site: ScienceUnited, npeople: int, ndays: int, seed: int) -> Books:
    """Volunteers with computers, keywords, opt-outs and accounts, a few of their rows odd as they are found.

    Accounts are closed a little after each midnight of Los Angeles, which is 8 hours UTC. Amounts are whole millionths,
    so that sums can be compared.
    """
    draw = random.Random(seed)
    books = Books()
    for number, name in ((3, "Alpha"), (5, "Beta"), (12, "Gamma")):
        site.project(number, name)
    midnights: list[float] = [T0 - T0 % DAY + day * DAY + 8 * 3600 + draw.randrange(60, 900) for day in range(ndays)]
    by_project = {number: dict.fromkeys(KINDS, 0.0) for number in (3, 5, 12)}
    rows = []
    for user in range(1, npeople + 1):
        site.user(user, send_email=draw.choice((0, 1, 7, 30)), create_time=T0)
        ncomputers = draw.choice((0, 1, 1, 1, 2, 5))
        for place in range(ncomputers):
            host = user * 10 + place
            site.computer(host, user)
            for project in draw.sample((3, 5, 12), 2):
                said = {"cpu_time": 3600.5, "cpu_ec": 36.25, "njobs_success": 4, "project_host_id": host + 7}
                site.add("su_host_project", host_id=host, project_id=project, active=1, **said)
        if draw.random() < 0.3:
            site.add("su_account", user_id=user, project_id=3, opt_out=1)
        last = midnights[-1] + DAY if ncomputers else midnights[-1]
        total, begin = dict.fromkeys(KINDS, 0.0), midnights[0]
        for end in [*midnights[1:], last]:
            if draw.random() < 0.4 and end != last:
                # Nothing was reported, so the period goes on.
                continue
            delta = _work(draw)
            books.periods.setdefault(user, []).append((begin, end, delta))
            rows.append((begin, user, delta, dict(total)))
            sums = by_project[draw.choice((3, 5, 12))]
            for kind in KINDS:
                total[kind] += delta[kind]
                sums[kind] += delta[kind]
            begin = end
    _add_periods(site, rows)
    for number, amounts in by_project.items():
        site.period(midnights[0], amounts, project_id=number)
    _add_odd_rows(site, npeople)
    return books


def _work(draw: random.Random) -> dict[str, float]:
    secs, gpu_secs = draw.randrange(1, 400_000), draw.choice((0, 0, draw.randrange(90_000)))
    return {
        "cpu_ec": secs / 100, "gpu_ec": gpu_secs / 10, "cpu_time": float(secs), "gpu_time": float(gpu_secs),
        "njobs_success": draw.randrange(9), "njobs_fail": draw.randrange(2),
    }  # fmt: skip


def _add_periods(site: ScienceUnited, rows: list[tuple[float, int, dict[str, float], dict[str, float]]]) -> None:
    columns = [f"{kind}_{part}" for part in ("delta", "total") for kind in KINDS]
    statement = (
        f"INSERT INTO su_accounting_user (create_time, user_id, {', '.join(columns)}) "
        f"VALUES ({', '.join(['%s'] * (2 + len(columns)))})"
    )
    with site.connection.cursor() as cursor:
        cursor.executemany(statement, [(b, u, *d.values(), *t.values()) for b, u, d, t in rows])


def _add_odd_rows(site: ScienceUnited, npeople: int) -> None:
    site.computer(999_001, 0)
    site.computer(999_002, npeople + 77)
    site.add("su_host_project", host_id=999_003, project_id=3)
    site.add("su_host_project", host_id=10, project_id=99)
    site.add("su_user_keyword", user_id=npeople + 77, keyword_id=2, yesno=1)
    site.add("su_user_keyword", user_id=1, keyword_id=4_000_000, yesno=1)
    site.period(T0, {"cpu_ec": 5.0}, user_id=npeople + 77)
    site.period(T0, {"cpu_ec": 5.0}, project_id=99)
