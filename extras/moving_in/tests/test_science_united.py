"""A Science United site moves here: people, computers, projects and days, and nobody notices."""

from __future__ import annotations

import datetime as dt
import hashlib
from collections import defaultdict
from pathlib import Path
from typing import Any

import bcrypt
import pytest
from django.contrib.auth import authenticate
from django.core.management import CommandError, call_command
from django.db import connection
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from accounting.engine.amounts import MICRO
from accounting.engine.states import DayFlag
from accounting.ledger.check import differences
from accounting.models import AccountSettings, Day, HostProject, Project, ProjectDay, UserProject
from accounting.projects import signing_key
from accounting.rpc import account_keys, catalogue
from credit.models import ExportConsent
from extras.moving_in.engine.tally import Tally
from extras.moving_in.machinery import run
from extras.moving_in.machinery.steps import Context
from extras.moving_in.models import ImportStep, UnsubscribeCode
from extras.moving_in.science_united import steps
from extras.moving_in.science_united.days import RECORD
from extras.moving_in.tests.imports import HASHERS, KillAt, Killed
from extras.moving_in.tests.old_project import T0
from extras.moving_in.tests.old_science_united import DAY, Books, ScienceUnited, fill, password_of, sent_by_client
from extras.top_lists.models import ListedVolunteer
from portal.models import Host, MailChoice, SentMail, User
from portal.people.accounts import authenticate_client
from portal.wire import signing
from tests.support.am_rpc import call, make_computer
from tools.simulation.client import Attachment, SimulatedComputer

pytestmark = pytest.mark.django_db
# Amounts of work there: 10 h, 360 credits
WORK = {"cpu_time": 36_000.0, "cpu_ec": 360.0, "njobs_success": 3}


@pytest.fixture(autouse=True)
def keys(signing_keys: None, settings: Settings) -> None:
    settings.PASSWORD_HASHERS = HASHERS
    catalogue.forget()


def import_(site: ScienceUnited, folder: Path | None = None, now: dt.datetime | None = None) -> dict[str, Tally]:
    source = site.source()
    try:
        context = Context(source, now or timezone.now(), folder)
        return run.carry_out(steps.SOURCE, steps.steps(), context, lambda _line: None)
    finally:
        source.close()


def test_people_log_in_and_find_what_they_chose(science_united: ScienceUnited) -> None:
    stored = bcrypt.hashpw(sent_by_client(7).encode(), bcrypt.gensalt(4)).decode().replace("$2b$", "$2y$")
    next_mail = int(timezone.now().timestamp()) + 2 * DAY
    science_united.user(
        7, passwd_hash=stored, send_email=7, seti_last_result_time=next_mail, donated=1,
        global_prefs=f"<global_preferences><mod_time>{T0}</mod_time><preset>low_power</preset></global_preferences>",
    )  # fmt: skip
    for keyword, yesno in ((2, 1), (3, -1), (4_000_000, 1)):
        science_united.add("su_user_keyword", user_id=7, keyword_id=keyword, yesno=yesno)
    found = import_(science_united)
    user = authenticate_client("user7@example.org", sent_by_client(7), address="192.0.2.1")
    chosen = AccountSettings.objects.get(user=user)
    assert (user.pk, chosen.keywords_yes, chosen.keywords_no) == (7, [2], [3])
    assert (chosen.preferences["max_ncpus_pct"], chosen.preferences["suspend_if_no_recent_input"]) == (25, 10)
    assert chosen.preferences_at == dt.datetime.fromtimestamp(T0, dt.UTC)
    mails = MailChoice.objects.get(user=user)
    assert (mails.status_days, mails.no_computer, mails.silence) == (7, True, False)
    assert SentMail.objects.get().sent_at.timestamp() == next_mail - 7 * DAY
    assert user.listing.shown_name == ""
    assert list(found["choices of people"].told) == ["keywords that BOINC's list does not have: left out"]


def test_an_account_that_was_made_here_gets_nothing_of_who_had_its_number_there(science_united: ScienceUnited) -> None:
    User.objects.create_user("operator@example.org", "secret", id=7, name="Operator")
    science_united.project(3, "Alpha")
    science_united.user(7, send_email=7, donated=1)
    science_united.computer(70, 7)
    science_united.add("su_host_project", host_id=70, project_id=3, active=1)
    science_united.add("su_account", user_id=7, project_id=3, opt_out=1)
    science_united.period(T0, WORK, user_id=7)
    import_(science_united)
    operator = User.objects.get(pk=7)
    assert (operator.email, operator.name) == ("operator@example.org", "Operator")
    for model in (Day, AccountSettings, MailChoice, SentMail, ListedVolunteer, UnsubscribeCode):
        assert not model.objects.exists(), model
    assert not Host.objects.exists()


def test_nobody_is_exported_who_was_not_asked(science_united: ScienceUnited) -> None:
    science_united.user(7, donated=1, show_hosts=1)
    import_(science_united)
    assert not ExportConsent.objects.get(user=7).exports_statistics


def test_what_was_chosen_after_a_sign_in_here_stays(science_united: ScienceUnited) -> None:
    science_united.user(7, passwd_hash=sent_by_client(7), send_email=7, donated=1)
    import_(science_united)
    user = authenticate(None, username="user7@example.org", password=password_of(7))
    MailChoice.objects.filter(user=user).update(status_days=0)
    ListedVolunteer.objects.filter(user=user).delete()
    import_(science_united)
    assert MailChoice.objects.get(user=user).status_days == 0
    assert not ListedVolunteer.objects.exists()


def test_projects_come_with_their_key_share_and_signature(science_united: ScienceUnited) -> None:
    url = "https://alpha.example.org/science/"
    science_united.project(3, "Alpha", share=20, url_signature=signing_key.sign_url(url) or "")
    science_united.project(5, "Beta", status=0)
    science_united.project(6, "Beta", url="http://beta.example.org/science")
    found = import_(science_united)
    alpha, beta = Project.objects.filter(is_before_move=False).order_by("pk")
    assert (alpha.name, alpha.master_url, alpha.default_share, alpha.is_active) == ("Alpha", url, 200, True)
    assert account_keys.shared(alpha) == "7_key_of_alpha" and signing_key.is_signed(url, alpha.url_signature)
    assert (beta.default_share, beta.is_active) == (100, False)
    assert found["projects"].nleft == 1


def test_the_signing_key_is_its_own_for_ever(science_united: ScienceUnited, tmp_path: Path, settings: Settings) -> None:
    folder = tmp_path / "keys"
    folder.mkdir()
    key = signing.generate_key()
    (folder / "code_sign_private").write_text(signing.private_key_text(key))
    (folder / "code_sign_public").write_text(signing.public_key_text(key))
    left = import_(science_united, tmp_path)["signing key"].left
    assert ["another signing key" in reason for reason in left] == [True]
    settings.AM_SIGNING_KEY, settings.AM_SIGNING_KEY_PUBLIC = tmp_path / "new" / "private", tmp_path / "new" / "public"
    assert import_(science_united, tmp_path)["signing key"].nchanged == 1
    assert settings.AM_SIGNING_KEY_PUBLIC.read_text() == signing.public_key_text(key)
    assert import_(science_united, tmp_path)["signing key"].nleft == 0


def days_of(user: int) -> dict[str, tuple[int, int]]:
    """Run time in hours, and flags, by day."""
    rows = Day.objects.filter(user=user).values_list("day", "cpu_time", "flags")
    return {day.isoformat(): (cpu_time // MICRO // 3600, flags) for day, cpu_time, flags in rows}


def test_work_is_booked_on_the_day_of_its_period_or_the_last_of_several(science_united: ScienceUnited) -> None:
    """Accounts are closed at 8:05 UTC, which is midnight in Los Angeles. T0 is 14 November 2023, 22:13:20 UTC."""
    close = T0 - T0 % DAY + 8 * 3600 + 300
    science_united.user(7)
    science_united.computer(70, 7, rpc_time=close + 31 * DAY + 7200)
    before = {"cpu_time": 3600.0}
    one = {"cpu_time": 3600.0 + 36_000}
    two = {"cpu_time": 3600.0 + 72_000}
    science_united.period(close, WORK, before, user_id=7)
    science_united.period(close + DAY, WORK, one, user_id=7)
    science_united.period(close + 31 * DAY, WORK, two, user_id=7)
    assert import_(science_united)["days of people"].nleft == 0
    assert days_of(7) == {
        # An hour from before the first period, and ten of its own
        "2023-11-14": (11, DayFlag.SPANS_DAYS.value),
        # 30 days: the day before the accounts were closed on 15 December
        "2023-12-14": (10, DayFlag.SPANS_DAYS.value),
        # Not closed yet: until the last contact
        "2023-12-15": (10, 0),
    }
    assert HostProject.objects.get(host__former_number=RECORD).credited[2] == 31 * 3600 * MICRO
    assert UserProject.objects.get(user=7).total_ec == 3 * 360 * MICRO
    assert list(differences()) == []


def test_a_later_import_moves_the_last_day_and_takes_what_is_new(science_united: ScienceUnited) -> None:
    close = T0 - T0 % DAY + 8 * 3600
    science_united.user(7)
    science_united.computer(70, 7, rpc_time=close + 3600)
    science_united.period(close, WORK, user_id=7)
    import_(science_united)
    assert list(days_of(7)) == ["2023-11-14"]
    science_united.run(f"UPDATE host SET rpc_time = {close + 5 * DAY}")
    science_united.run("UPDATE su_accounting_user SET cpu_time_delta = 72000")
    import_(science_united)
    assert days_of(7) == {"2023-11-18": (20, DayFlag.SPANS_DAYS.value)}
    assert list(differences()) == []


def test_odd_amounts_are_told_and_nothing(science_united: ScienceUnited) -> None:
    science_united.user(7)
    science_united.period(T0, {"cpu_time": -5.0, "cpu_ec": 3.0}, user_id=7)
    science_united.period(T0, {"cpu_time": 1e300}, user_id=7)
    found = import_(science_united)
    assert days_of(7) == {}
    assert found["days of people"].told["amounts are not numbers: counted as 0"].count == 2


def moved(site: ScienceUnited) -> None:
    """A volunteer with a computer that has two of three projects, as Science United knows it."""
    site.user(7, passwd_hash="ab" * 16)
    for number, name in ((3, "Alpha"), (5, "Beta"), (12, "Gamma")):
        url = f"https://{name.lower()}.example.org/science/"
        site.project(number, name, url_signature=signing_key.sign_url(url) or "")
    now = int(timezone.now().timestamp())
    site.computer(70, 7, rpc_time=now - 12 * 3600, domain_name="studio", host_cpid=f"{b'studio'.hex():0<32}"[:32])
    for project in (3, 5):
        site.add("su_host_project", host_id=70, project_id=project, active=1, last_rpc=now - DAY, project_host_id=71,
                 cpu_ec=72.0, cpu_time=7200.0, njobs_success=2, njobs_fail=1)  # fmt: skip


def client(key: str) -> SimulatedComputer:
    """Its client: an hour later, and 36 credits."""
    computer = make_computer(User(email="user7@example.org", name="x"), "studio", authenticator=key, dynamic=True)
    computer.opaque = "<host_id>70</host_id>"
    for name in ("alpha", "beta"):
        attached = Attachment(f"https://{name}.example.org/science/", name.title(), f"7_key_of_{name}", hostid=71)
        attached.work(computer, 7200, 0, (2, 1))
        computer.projects[attached.url] = attached
    computer.projects["https://alpha.example.org/science/"].work(computer, 3600, 0, (1, 0))
    return computer


WEAK = "7_" + hashlib.md5((f"{7:032x}" + "ab" * 16).encode()).hexdigest()


@pytest.mark.parametrize("key", [f"{7:032x}", WEAK], ids=["strong", "weak"])
def test_a_client_goes_on_as_if_nothing_had_happened(science_united: ScienceUnited, key: str) -> None:
    moved(science_united)
    import_(science_united)
    computer = client(key)
    before = {url: project.account_key for url, project in computer.projects.items()}
    reply = call(computer, timezone.now())
    assert reply.error == (0, "") and reply.messages == []
    assert not [account for account in reply.accounts.values() if account.find("detach_when_done") is not None]
    assert before.items() <= {url: p.account_key for url, p in computer.projects.items()}.items()
    assert reply.text("signing_key").strip() == signing.public_key_text(signing_key.public_key()).strip()
    host = Host.objects.get(former_number=70)
    rows = HostProject.objects.filter(host=host, project__name__in=("Alpha", "Beta")).order_by("project__name")
    # An hour at Alpha; what was reported before the move does not count again.
    assert [row.credited for row in rows] == [[36 * MICRO, 0, 3600 * MICRO, 0, 1, 0], [0] * 6]
    assert list(differences()) == []


def test_a_weak_key_from_there_opens_nothing_but_the_account_manager(science_united: ScienceUnited) -> None:
    moved(science_united)
    import_(science_united)
    tags = [Client().get("/su_host_ids.php", {"auth": key}).content.split()[-1] for key in (f"{7:032x}", WEAK)]
    assert tags == [b"</hosts>", b"</error>"]


def test_an_import_after_the_move_leaves_alone_what_has_been_here(science_united: ScienceUnited) -> None:
    moved(science_united)
    import_(science_united)
    computer = client(f"{7:032x}")
    call(computer, timezone.now())
    before = HostProject.objects.filter(host__former_number=70).values_list("reported", "credited", "listed")
    expected = list(before.order_by("project"))
    AccountSettings.objects.filter(user=7).update(keywords_no=[2])
    found = import_(science_united)
    assert list(before.order_by("project")) == expected
    assert AccountSettings.objects.get(user=7).keywords_no == [2]
    assert (found["computers"].nleft, found["computers at projects"].nleft) == (1, 2)
    # Its new key and its old one are good.
    call(computer, timezone.now() + dt.timedelta(hours=1))
    call(client(f"{7:032x}"), timezone.now() + dt.timedelta(hours=2))


def test_projects_opted_out_of_are_excluded(science_united: ScienceUnited) -> None:
    moved(science_united)
    science_united.add("su_account", user_id=7, project_id=12, opt_out=1)
    science_united.add("su_account", user_id=7, project_id=3)
    import_(science_united)
    assert [row.project.name for row in HostProject.objects.filter(excluded=True)] == ["Gamma"]
    assert "https://gamma.example.org/science/" not in call(client(f"{7:032x}"), timezone.now()).accounts


def test_two_sites_do_not_move_into_one(science_united: ScienceUnited, db: None) -> None:
    ImportStep.objects.create(source="boinc", name="people")
    with pytest.raises(CommandError, match="Another site was imported"):
        call_command("import_science_united", science_united.name)


def expected_days(books: Books) -> dict[tuple[int, dt.date], int]:
    """Run time in micro-seconds by person and day, by the rule as it is written: the middle of a period of up to 36
    hours, else half a day before its end."""
    found: dict[tuple[int, dt.date], int] = defaultdict(int)
    for user, periods in books.periods.items():
        for begin, end, work in periods:
            at = (begin + end) / 2 if end - begin <= DAY else end - DAY / 2
            found[user, dt.datetime.fromtimestamp(at, dt.UTC).date()] += round(work["cpu_time"] * MICRO)
    return {key: amount for key, amount in found.items() if amount}


def test_a_rehearsal_tells_of_rows_whose_account_is_gone(science_united: ScienceUnited) -> None:
    fill(science_united, 3, 5, seed=3)
    science_united.add("su_host_project", host_id=999_002, project_id=3)
    science_united.add("su_account", user_id=80, project_id=3, opt_out=1)
    source = science_united.source()
    rehearsed = run.rehearse(steps.steps(), Context(source, timezone.now(), writes=False), lambda _line: None)
    source.close()
    left = {name: {reason: found.count for reason, found in tally.left.items()} for name, tally in rehearsed.items()}
    assert left["computers"] == {"it has no account": 1, "its account is missing here": 1}
    # One computer that is gone, and one whose owner is.
    assert left["computers at projects"] == {
        "its computer is missing here": 2,
        "its project does not exist there": 1,
    }
    assert left["days of people"] == left["projects opted out of"] == {"its account is missing here": 1}
    imported = import_(science_united)
    for name, tally in rehearsed.items():
        assert (name, tally.left) == (name, imported[name].left)


SIZES = [(30, 60), pytest.param(500, 3 * 365, marks=pytest.mark.long)]


@pytest.mark.parametrize(("npeople", "ndays"), SIZES, ids=["short", "three years"])
def test_sums_of_each_person_and_day_are_equal_however_often_it_is_killed_and_repeated(
    science_united: ScienceUnited, npeople: int, ndays: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    books = fill(science_united, npeople, ndays, seed=3)
    # Times of the last contacts are as the accounts' last ends.
    for user, periods in books.periods.items():
        science_united.run(f"UPDATE host SET rpc_time = {int(periods[-1][1])} WHERE userid = {user}")
    monkeypatch.setattr(run, "CHUNK_ROWS", max(50, npeople * ndays // 40))
    nkilled = 0
    while True:
        try:
            with connection.execute_wrapper(KillAt(40 + 7 * nkilled)):
                import_(science_united)
            break
        except Killed:
            nkilled += 1
    assert nkilled > 5
    first = _everything()
    again = import_(science_united)
    assert _everything() == first
    assert sum(again[name].nchanged for name in ("people", "computers", "computers at projects", "days of people")) == 0
    days = {(user, day): time for user, day, time in Day.objects.values_list("user_id", "day", "cpu_time")}
    assert {key: time for key, time in days.items() if time} == expected_days(books)
    assert list(differences()) == []
    # Once each: people's days stand for the same work as projects' days.
    real = ProjectDay.objects.filter(project__is_before_move=False).values_list("cpu_time", flat=True)
    assert sum(real) == sum(days.values())
    assert again["computers"].nleft == 2
    assert set(again["computers at projects"].left) == {
        "its project does not exist there", "its computer is missing here"
    }  # fmt: skip


def _everything() -> list[Any]:
    """All that came, without what is random."""
    return [
        sorted(Day.objects.values_list("user_id", "day", "flags", "cpu_ec", "gpu_ec", "cpu_time", "gpu_time")),
        sorted(User.objects.values_list("pk", "email", "name", "client_password")),
        sorted(Host.objects.values_list("owner_id", "former_number", "host_cpid", "domain_name")),
        sorted(
            (row[0], row[1], [int(each) for each in row[2] or ()], row[3], row[4], row[5])
            for row in HostProject.objects.values_list(
                "host__former_number", "host__owner_id", "reported", "credited", "listed", "excluded"
            )
        ),
        sorted(ProjectDay.objects.values_list("project__name", "day", "cpu_time", "njobs_success")),
    ]


def test_a_link_of_an_old_mail_ends_status_mails(science_united: ScienceUnited, client: Client) -> None:
    science_united.user(7, send_email=7)
    import_(science_united)
    code = hashlib.md5(f"{7:032x}oogabooga".encode(), usedforsecurity=False).hexdigest()
    reply = client.get("/su_unsubscribe.php", {"userid": "7", "code": code})
    assert reply.status_code == 302 and MailChoice.objects.get(user=7).status_days == 7
    client.post(reply["Location"])
    assert MailChoice.objects.get(user=7).status_days == 0
    for wrong in (
        {"userid": "7", "code": "0" * 32},
        {"userid": "8", "code": code},
        {"userid": "7"},
        {"code": "x" * 99},
    ):
        assert client.get("/su_unsubscribe.php", wrong)["Location"] == "/account/email-preferences/"
