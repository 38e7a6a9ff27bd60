"""The worst that operators, volunteers and time can do to an import: each row still ends up here or in the report."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from pytest_django import Settings

from credit.models import App, Platform, Result, Workunit
from credit.statistics.check import differences
from extras.moving_in.engine.tally import Tally
from extras.moving_in.machinery import run
from extras.moving_in.models import ImportStep
from extras.moving_in.tests.imports import HASHERS, KillAt, Killed, import_, rehearse
from extras.moving_in.tests.old_project import T0, OldProject
from extras.moving_in.tests.old_science_united import ScienceUnited
from extras.moving_in.tests.old_work import APP, OldWork
from extras.moving_in.tests.test_science_united import import_ as import_united
from portal.models import Host, User
from scheduler.models import ArchivedWorkunit
from tests.support.credit_factories import make_app

pytestmark = pytest.mark.django_db
HUGE = 1e308


@pytest.fixture(autouse=True)
def site(settings: Settings, tmp_path: Path) -> None:
    """A site without a signing key, which keeps password hashes as they are."""
    settings.PASSWORD_HASHERS = HASHERS
    settings.CODE_SIGNING_KEY, settings.CODE_SIGNING_KEY_PUBLIC = tmp_path / "private", tmp_path / "public"


@pytest.fixture
def work(old_project: OldProject, tmp_path: Path) -> OldWork:
    """A volunteer with a computer, and an app."""
    old_project.user(7)
    old_project.add("host", id=70, userid=7, domain_name="h", p_fpops=4e9)
    work = OldWork(old_project, tmp_path / "fold")
    work.make()
    return work


def bring(work: OldWork) -> dict[str, Tally]:
    tallies = import_(work.project, folder=work.folder)
    for name, tally in tallies.items():
        assert (name, tally.nread) == (name, tally.ntaken + tally.nleft)
    return tallies


def left(tally: Tally) -> dict[str, list[str]]:
    return {reason: found.examples for reason, found in tally.left.items()}


def told(tally: Tally) -> dict[str, list[str]]:
    return {reason: found.examples for reason, found in tally.told.items()}


def test_rows_with_numbers_that_cannot_be_are_counted(work: OldWork) -> None:
    project = work.project
    project.user(-3)
    project.add("host", id=-4, userid=7)
    project.add("host", id=71, userid=-3)
    project.add("team", id=-5, name="T", userid=7)
    work.workunit(-6)
    work.result(-7, 1)
    found = bring(work)
    reason = "a number that is negative, or 0"
    for step, table in (("people", "user"), ("teams", "team"), ("workunits", "workunit"), ("results", "result")):
        assert left(found[step])[reason] == [f"{table}.id"]
    assert left(found["computers"]) == {reason: ["host.id"], "its owner was not taken": ["71"]}
    rehearsed = rehearse(project, work.folder)
    assert [reason in left(rehearsed[name]) for name in ("people", "computers", "workunits")] == [True] * 3


def test_values_at_the_end_of_all_ranges_are_bounded_or_told(work: OldWork) -> None:
    project = work.project
    project.user(8, total_credit=HUGE, expavg_credit=-HUGE, expavg_time=HUGE)
    numbers = ("p_fpops", "p_iops", "m_nbytes", "d_total", "on_frac", "duration_correction_factor", "total_credit")
    project.add("host", id=80, userid=8, **dict.fromkeys(numbers, HUGE))
    project.add("team", id=1, name="T", userid=8, total_credit=HUGE)
    bounds: dict[str, Any] = dict.fromkeys(("rsc_fpops_bound", "rsc_memory_bound", "rsc_disk_bound"), HUGE)
    work.workunit(
        1, delay_bound=2**31 - 1, transition_time=2**31 - 1, priority=-(2**31), canonical_credit=HUGE, **bounds
    )
    work.workunit(2, rsc_fpops_est=HUGE)
    work.workunit(3, rsc_disk_bound=-1, rsc_fpops_bound=0)
    work.over(
        101, 1, 70, 7, validate_state=1, granted_credit=HUGE, elapsed_time=HUGE, cpu_time=-HUGE, exit_status=-(2**31)
    )
    project.add("host_app_version", host_id=70, app_version_id=11, pfc_n=HUGE, pfc_avg=HUGE, et_n=3, et_avg=HUGE,
                et_var=HUGE, turnaround_n=-1, max_jobs_per_day=2**31 - 1, consecutive_valid=-5)  # fmt: skip
    project.add("credit_user", userid=7, appid=APP, njobs=-1, total=HUGE, expavg=0, expavg_time=0, credit_type=0)
    found = bring(work)
    nothing = "credit is negative or too large: 0 is carried over"
    assert [told(found[name])[nothing] for name in ("people", "computers", "teams")] == [["8"], ["80"], ["1"]]
    first, third = Workunit.objects.order_by("pk")
    assert (first.fpops_bound, first.memory_bound_bytes, first.disk_bound_bytes) == (9.9e24, 2**62, 2**62)
    assert (third.fpops_bound, third.disk_bound_bytes) == (2e9, 0)
    assert left(found["workunits"]) == {"workunit: no estimate of its FLOPs": ["2"]}
    assert told(found["results"])["impossible granted credit: shown as 0"] == [f"101 {HUGE}"]
    assert left(found["credit by app"]) == {"credit is negative or too large": ["7"]}
    assert differences() == []


def test_texts_of_any_length_and_with_any_bytes_stop_nothing(work: OldWork) -> None:
    project, long = work.project, "é" * 1_000_000
    for table, column in (("team", "description"), ("host", "misc"), ("workunit", "xml_doc"), ("result", "stderr_out")):
        project.run(f"ALTER TABLE {table} MODIFY {column} mediumblob")
    project.user(8, name=b"\0\xe9\xff\0", email_addr=b"\xe9@example.org", global_prefs=b"<" * 1_000_000,
                 project_prefs=b"<project_preferences>" + b"\0" * 70_000, country=b"\xff")  # fmt: skip
    project.add("team", id=1, name=b"\0", userid=7, description=long.encode())
    project.add("team", id=2, name=b"T\xe9\0am", userid=7, description=b"<" * 1_000_000)
    project.add("host", id=80, userid=8, misc="{" + long, domain_name=b"\xff\0" * 50, p_model=b"[\0]")
    inside = "<workunit><command_line>{}</command_line></workunit>"
    work.workunit(1, xml_doc=inside.format(long).encode())
    work.workunit(2, xml_doc=inside.format("a\0b").encode())
    work.workunit(3, name=b"a\0b")
    work.workunit(4)
    work.over(101, 4, 70, 7, stderr_out=b"\0\xe9" * 500_000)
    project.add("msg_from_host", create_time=T0, hostid=70, variety=b"\0\xff", xml=long)
    found = bring(work)
    assert left(found["workunits"]) == {
        "workunit: a command line of more than 2000 characters": ["1"],
        "workunit: a name with characters that paths or XML cannot have": ["3"],
        "refused by the database: PostgreSQL text fields cannot contain NUL (0x00) bytes": ["2"],
    }
    assert left(found["teams"]) == {}
    assert Result.objects.get().stderr_text == "\ufffd" * 65_536
    assert User.objects.get(pk=8).name == "éÿ"
    assert Host.objects.get(pk=80).domain_name == "ÿ" * 50


def test_zero_dates_and_what_refers_to_nothing(work: OldWork) -> None:
    project = work.project
    with project.connection.cursor() as cursor:
        cursor.execute("SET SESSION sql_mode = ''")
    zero = "0000-00-00 00:00:00"
    work.workunit(1, mod_time=zero, assimilate_state=2, error_mask=2, file_delete_state=2)  # no result of it is left
    work.workunit(2, mod_time=zero, create_time=0)  # its results have not been made yet
    work.workunit(3, mod_time=zero, appid=9)
    work.workunit(4, mod_time=zero, assimilate_state=2, error_mask=2)
    work.result(101, 99, mod_time=zero)
    work.sent(102, 2, host=99, user=98, mod_time=zero)
    work.sent(103, 3, host=70, user=7)
    project.add("host_app_version", host_id=99, app_version_id=11)
    project.add("msg_from_host", create_time=0, hostid=99, variety="v", xml="")
    project.add("batch", id=1, user_id=99, app_id=9, name="b", create_time=0)
    found = bring(work)
    assert ArchivedWorkunit.objects.get().pk == 1
    assert set(Workunit.objects.values_list("pk", flat=True)) == {2, 4}
    assert left(found["workunits"]) == {"workunit: its app no longer exists": ["3"]}
    assert left(found["results"]) == {
        "result: its workunit no longer exists": ["101"], "result: its workunit was left": ["103"],
    }  # fmt: skip
    assert (Result.objects.get().host_id, Result.objects.get().user_id) == (None, None)
    assert told(found["results"])["its computer or account is missing here: it ends at its deadline"] == ["102"]
    assert left(found["versions on computers"]) == {"its computer is missing here, or was merged": ["99"]}
    assert left(found["messages of tasks"]) == {"its computer is missing here": ["1"]}
    assert left(found["batches"]) == {"its app is missing here": ["1"]}


def test_an_app_that_cannot_be_here_takes_its_jobs_with_it_and_nothing_else(work: OldWork) -> None:
    work.project.add("app", id=4, name="my app", user_friendly_name="My app")
    work.workunit(1)
    work.workunit(2, appid=4)
    work.result(101, 2, appid=4)
    work.project.add("batch", id=1, user_id=7, app_id=4, name="b", create_time=T0)
    work.project.add("credit_user", userid=7, appid=4, njobs=1, total=1, expavg=0, expavg_time=0, credit_type=0)
    found = bring(work)
    assert left(found["apps"]) == {"app: a name with characters that paths or XML cannot have": ["4"]}
    assert left(found["workunits"]) == {"workunit: its app was left": ["2"]}
    assert left(found["results"]) == {"result: its workunit was left": ["101"]}
    assert list(Workunit.objects.values_list("pk", flat=True)) == [1]


@pytest.mark.parametrize(
    ("first", "second"),
    [("a@example.org", "a@example.org\t"), ("a@example.org", "A@Example.org"), ("x", "7@moved.invalid")],
)
def test_nobody_is_lost_because_of_somebody_elses_address(old_project: OldProject, first: str, second: str) -> None:
    old_project.user(7, email_addr=first)
    old_project.user(8, email_addr=second)
    found = import_(old_project)
    assert found["people"].left == {}
    assert len(set(User.objects.filter(pk__in=(7, 8)).values_list("email", flat=True))) == 2


def test_computers_with_one_published_id_are_two(old_project: OldProject) -> None:
    old_project.user(7)
    for number in (70, 71):
        old_project.add("host", id=number, userid=7, host_cpid="ab" * 16)
    import_(old_project)
    assert Host.objects.filter(pk__in=(70, 71), published_cpid="ab" * 16).count() == 2


def test_a_site_with_apps_of_its_own_or_another_import_takes_no_project(
    unchanged_project: OldProject, tmp_path: Path
) -> None:
    options = tmp_path / "my.cnf"
    options.write_text(f"[client]\nuser=root\nsocket={unchanged_project.server.socket}\n")
    command = ("import_boinc", unchanged_project.name, "--defaults-file", str(options))
    make_app(name="ours")
    with pytest.raises(CommandError, match="apps of its own"):
        call_command(*command)
    App.objects.all().delete()
    ImportStep.objects.create(source="science_united", name="people")
    with pytest.raises(CommandError, match="Another site was imported"):
        call_command(*command)


def test_a_platform_of_another_number_is_not_taken_for_this_one(work: OldWork) -> None:
    Platform.objects.create(pk=5, name="windows_x86_64")
    found = bring(work)
    assert left(found["platforms"]) == {"a platform with this name or number already exists here": ["5 windows_x86_64"]}
    assert left(found["versions"]) == {"its app or platform is missing here": ["11"]}


def test_a_database_that_breaks_off_is_told_in_words(small_project: OldProject, tmp_path: Path) -> None:
    """A view whose table is gone stands for a server that has stopped: neither can be read."""
    options = tmp_path / "my.cnf"
    options.write_text(f"[client]\nuser=root\nsocket={small_project.server.socket}\n")
    small_project.run("RENAME TABLE host TO away; CREATE VIEW host AS SELECT * FROM away; RENAME TABLE away TO gone")
    command = ("import_boinc", small_project.name, "--defaults-file", str(options))
    with pytest.raises(CommandError, match=r"The database failed: .*goes on"):
        call_command(*command)
    small_project.run("DROP VIEW host; RENAME TABLE gone TO host")
    call_command(*command)
    assert Host.objects.filter(pk=71).exists()


def test_what_a_running_project_wrote_meanwhile_comes_with_the_difference(work: OldWork) -> None:
    """In a copy that is a year old, times lie far in the past. A volunteer arrives between two steps."""
    project = work.project
    work.workunit(1, mod_time="2025-01-01 00:00:00")
    work.sent(101, 1, host=80, user=8, mod_time="2025-01-01 00:00:00")
    found = bring(work)
    assert told(found["results"])["its computer or account is missing here: it ends at its deadline"] == ["101"]
    project.user(8)
    project.add("host", id=80, userid=8)
    # Another workunit came in the same second, and an earlier one changed later; both in the past.
    work.workunit(2, mod_time="2025-01-01 00:00:00")
    work.result(102, 2, mod_time="2025-01-01 00:00:00")
    project.run("UPDATE workunit SET priority = 9, mod_time = '2025-01-02 00:00:00' WHERE id = 1")
    bring(work)
    assert set(Result.objects.values_list("pk", "host", "user")) == {(101, 80, 8), (102, None, None)}
    assert Workunit.objects.get(pk=1).priority == 9
    # Nothing else is read again.
    project.run("UPDATE workunit SET priority = 5, mod_time = '2024-01-01 00:00:00' WHERE id = 2")
    assert bring(work)["workunits"].nread == 1


def test_the_last_import_reads_again_what_an_interrupted_one_had_read(
    small_project: OldProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "CHUNK_ROWS", 20)
    import_(small_project)
    with pytest.raises(Killed), connection.execute_wrapper(KillAt(150)):
        import_(small_project)
    assert ImportStep.objects.get(name="people").last_key
    small_project.run("UPDATE user SET name = 'Changed' WHERE id = 1")
    import_(small_project, is_last=True)
    assert User.objects.get(pk=1).name == "Changed"


def test_an_account_manager_may_have_rows_twice(science_united: ScienceUnited) -> None:
    science_united.user(7)
    science_united.computer(70, 7)
    for number, url in ((3, "https://alpha.example.org/"), (4, "http://www.alpha.example.org")):
        science_united.project(number, f"Alpha {number}", url=url, share=HUGE)
        science_united.add("su_account", user_id=7, project_id=number, opt_out=1)
        science_united.add("su_host_project", host_id=70, project_id=number, cpu_ec=HUGE)
    found = import_united(science_united)
    assert left(found["projects"]) == {"not a project's address, or a duplicate": ["4 http://www.alpha.example.org"]}
    assert found["projects opted out of"].nleft == 0
