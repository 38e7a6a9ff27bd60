"""Volunteers, teams and computers of a project that moves here."""

from __future__ import annotations

import datetime as dt
import hashlib
from pathlib import Path

import pytest
from allauth.account.models import EmailAddress
from django.contrib.auth import authenticate
from django.core.management import CommandError, call_command
from django.db import connection
from django.test import Client
from pytest_django import Settings

from credit.export import sql as export_sql
from credit.models import ExportConsent, GoneHost, GoneUser, HostCredit, Membership, Team, UserCredit
from credit.statistics.check import differences
from credit.statistics.host_merge import merge_host
from credit.teams import reads as team_reads
from extras.badges.award import award_due
from extras.badges.models import Badge
from extras.badges.reads import read_page
from extras.badges.rules import BadgeKind
from extras.badges.usual import make_usual
from extras.moving_in.boinc.computers import BLOCKED
from extras.moving_in.models import ImportStep
from extras.moving_in.tests import small_project as old
from extras.moving_in.tests.imports import HASHERS, content, import_, rehearse
from extras.moving_in.tests.old_project import T0, OldProject
from portal.models import AccountBlock, ClientKey, ConsentEvent, Host, MailChoice, User
from portal.people.accounts import AccountBlocked, ClientAuthError, authenticate_client, issue_client_key
from portal.wire.credentials import external_cpid
from scheduler.models import HostRecord, UserPreferences, WorkBlock
from scheduler.programs import catalogue
from tests.support.scheduler_clients import Computer

pytestmark = pytest.mark.django_db
T0_AT = dt.datetime.fromtimestamp(T0, dt.UTC)


@pytest.fixture(autouse=True)
def old_hashes(settings: Settings) -> None:
    """Other tests do without slow hashes."""
    settings.PASSWORD_HASHERS = HASHERS


def client_login(email: str, password: str) -> User:
    return authenticate_client(email, old.sent_for(password, email), address="192.0.2.1")


def test_people_and_computers_keep_their_numbers_and_credit(unchanged_project: OldProject) -> None:
    import_(unchanged_project)
    user = User.objects.get(pk=7)
    assert (user.email, user.name, user.cross_project_id) == ("user7@example.org", "Volunteer 7", f"c{7:031x}")
    assert user.created_at == T0_AT - dt.timedelta(days=3 * 365 - 7)
    credit = UserCredit.objects.get(user=7)
    assert (credit.total_credit, credit.expavg_credit) == (7000.0, 70.0)
    assert credit.expavg_at == T0_AT - dt.timedelta(hours=7)
    host = Host.objects.get(pk=71)
    assert (host.owner_id, host.domain_name, host.ncpus, host.host_cpid) == (7, "machine-71", 12, "")
    assert [(each["type"], each["driver_version"], each["ram_bytes"]) for each in host.coprocs] == [
        ("NVIDIA", "531.04", 8191 * 2**20)
    ]
    assert (host.client_version, host.virtualbox_version) == ("8.2.4", "7.0.12")
    record = HostRecord.objects.get(host=71)
    assert (record.rpc_seqno, record.on_frac, record.connected_frac) == (71, 0.9, None)
    assert HostCredit.objects.get(host=71).total_credit == 7000 / 3
    chosen = UserPreferences.objects.get(user=4)
    assert (chosen.mod_time, chosen.of_project) == (1690000000, {"": {"max_jobs": 4}})
    # Saved by nobody, so that no client is told anything else.
    assert (UserPreferences.objects.get(user=3).text, UserPreferences.objects.get(user=8).of_project) == ("", {})
    assert list(MailChoice.objects.filter(user__in=(6, 7)).values_list("user", "silence")) == [(6, False)]
    assert GoneUser.objects.get().cpid == "d" * 32
    assert GoneHost.objects.get().cpid == "e" * 32


def test_volunteers_keep_their_badges_which_nobody_else_gets(unchanged_project: OldProject) -> None:
    make_usual()
    tally = import_(unchanged_project)["badges"]
    # The fifth is of no badge, as badges of teams are none here; the last is of nobody.
    assert (tally.nread, tally.ntaken, tally.nchanged, tally.left["a badge that no longer exists"].count) == (
        6,
        3,
        3,
        2,
    )
    assert tally.left["its account is missing here"].examples == ["70000"]
    for user, titles in ((3, {"Top 1%", "Top 1% (2)"}), (4, {"First task (3)"})):
        page = read_page(User.objects.get(pk=user))
        assert {badge.title for badge in page.held} == titles
        assert {(badge.rule, badge.was_changed) for badge in page.held} == {
            ("held before this project moved here", False)
        }
    Badge.objects.filter(kind=BadgeKind.BEFORE_MOVE).update(is_active=True)
    assert award_due(T0_AT) == 0


def test_totals_are_those_of_before_and_what_is_granted_here(unchanged_project: OldProject) -> None:
    import_(unchanged_project)
    assert differences() == []
    # Of the 20 members, 3 to 60, each joined with half of what they have: 1000 · (3 + 6 + … + 60) / 2 = 315,000.
    team = Team.objects.get(pk=1)
    assert team.former_credit == pytest.approx(900_000 - 315_000)
    assert team_reads.sums([team])[1].total_credit == pytest.approx(900_000)
    assert Membership.objects.get(user=9).credit_before == 4500
    assert User.objects.filter(pk__in=[1, 2]).count() == 2


def test_the_page_of_tasks_says_what_was_granted_before(unchanged_project: OldProject, client: Client) -> None:
    import_(unchanged_project)
    client.force_login(User.objects.get(pk=7))
    page = client.get("/tasks/").content.decode()
    assert "7,000" in page or "7\u202f000" in page
    assert "of them before the project moved here" in page


def test_what_a_computer_had_stays_in_the_sum_when_it_is_merged_here(small_project: OldProject) -> None:
    import_(small_project)
    merge_host(70, 71)
    Host.objects.filter(pk=70).update(merged_into=71)
    assert differences() == []
    # 71 had a third of 7,000, and so had 70; there, 70 got 50 more meanwhile.
    small_project.run("UPDATE host SET total_credit = total_credit + 50 WHERE id = 70")
    import_(small_project)
    assert HostCredit.objects.get(host=71).total_credit == pytest.approx(14_000 / 3 + 50)
    assert differences() == []


def test_no_balance_is_lost_where_computers_were_merged_here_that_still_worked_there(small_project: OldProject) -> None:
    for number in (172, 173):
        small_project.add(
            "host", id=number, userid=7, total_credit=100.0, expavg_credit=10.0, expavg_time=T0, rpc_time=T0
        )
    import_(small_project)
    for number in (172, 173):
        merge_host(number, 71)
        Host.objects.filter(pk=number).update(merged_into=71)
    before = HostCredit.objects.get(host=71)
    small_project.run("UPDATE host SET total_credit = total_credit + id WHERE id IN (172, 173)")
    import_(small_project)
    after = HostCredit.objects.get(host=71)
    assert after.total_credit == pytest.approx(before.total_credit + 172 + 173)
    assert after.expavg_credit == pytest.approx(before.expavg_credit)
    assert differences() == []


def test_who_was_deleted_there_since_the_import_is_told(small_project: OldProject) -> None:
    import_(small_project)
    small_project.add("user_deleted", userid=7, public_cross_project_id="f" * 32, create_time=T0)
    small_project.run(
        "UPDATE user SET email_addr = 'deleted_1_x', name = 'deleted', authenticator = 'deleted_1_y' WHERE id = 8"
    )
    tallies = import_(small_project)
    assert tallies["deleted people"].told["deleted there since it was imported: delete the account here"].examples == [
        "7"
    ]
    erased = User.objects.get(pk=8)
    assert (erased.email, erased.name, erased.is_active, erased.client_password) == ("8@moved.invalid", "", False, "")
    assert not EmailAddress.objects.filter(user=8).exists()
    assert not ClientKey.objects.filter(user=8, revoked_at=None).exists()


def test_credit_granted_here_stays_when_a_balance_grows(small_project: OldProject) -> None:
    import_(small_project)
    # As a grant here leaves them: 100 credits more, an average of 40 a day that was 7 days ago.
    later = T0_AT + dt.timedelta(days=7)
    UserCredit.objects.filter(user=7).update(total_credit=7100, expavg_credit=70 * 0.5 + 40, expavg_at=later)
    # At noon of the seventh day the old project gave 500; its average was 70 seven hours before T0.
    small_project.run(f"UPDATE user SET total_credit = 7500, expavg_credit = 80, expavg_time = {T0} WHERE id = 7")
    import_(small_project, now=later)
    credit = UserCredit.objects.get(user=7)
    assert credit.total_credit == 7600
    # The old 70 have become 70 · 0.5^(7 days and 7 hours / 7 days); in their place come 80 · 0.5.
    assert credit.expavg_credit == pytest.approx(75 - 70 * 0.5 ** ((7 + 7 / 24) / 7) + 40)
    assert credit.expavg_at == later


@pytest.mark.parametrize("number", [7, 5], ids=["bcrypt over MD5", "MD5"])
def test_the_old_password_goes_on_and_is_hashed_as_others_are(unchanged_project: OldProject, number: int) -> None:
    import_(unchanged_project)
    email = f"user{number}@example.org"
    stored = User.objects.get(pk=number).client_password
    assert old.sent_for(old.PASSWORD, email) not in stored
    with pytest.raises(ClientAuthError):
        client_login(email, "another one")
    assert User.objects.get(pk=number).client_password == stored
    user = client_login(email, old.PASSWORD)
    assert user.pk == number
    stronger = User.objects.get(pk=number).client_password
    assert stronger != stored
    assert stronger.startswith(f"pbkdf2_sha256${10**6}$"[:14])
    # A client's key can be made with it: nobody set another password meanwhile.
    assert issue_client_key(user, ClientKey.Origin.LOOKUP)
    assert client_login(email, old.PASSWORD).pk == number
    # The next import leaves it.
    import_(unchanged_project)
    assert User.objects.get(pk=number).client_password == stronger
    assert authenticate(None, username=email, password=old.PASSWORD) == user
    assert User.objects.get(pk=number).has_usable_password()


def test_who_never_set_a_password_has_the_account_key_for_one(unchanged_project: OldProject) -> None:
    import_(unchanged_project)
    assert client_login("user115@example.org", f"{115:032x}").pk == 115


def weak_key(project: OldProject, number: int) -> str:
    """As clients hold it that got the project from an account manager."""
    with project.connection.cursor() as cursor:
        cursor.execute("SELECT passwd_hash FROM user WHERE id = %s", [number])
        ((stored,),) = cursor.fetchall()
    return f"{number}_{hashlib.md5(f'{number:032x}'.encode() + stored).hexdigest()}"


def scheduler_client(key: str, number: int, seqno: int) -> Computer:
    catalogue.forget()
    return Computer(key, hostid=number, seqno=seqno, cpid=hashlib.md5(b"client of 71").hexdigest())


def test_a_client_goes_on_with_its_key_and_number_strong_or_weak(unchanged_project: OldProject) -> None:
    import_(unchanged_project)
    for seqno, key in ((72, f"{7:032x}"), (73, weak_key(unchanged_project, 7))):
        reply = scheduler_client(key, 71, seqno).ask()
        assert "<hostid>" not in reply
        assert "<user_total_credit>7000" in reply
    assert Host.objects.get(pk=71).host_cpid == hashlib.md5(b"client of 71").hexdigest()
    # All computers of the account have one key: it is nobody's, and does not end with one of them.
    keys = ClientKey.objects.filter(user=7, last_used_at__gte=T0_AT)
    assert list(keys.values_list("host", flat=True)) == [None, None]


def test_who_is_blocked_is_told_with_a_weak_key_from_before_too(unchanged_project: OldProject) -> None:
    import_(unchanged_project)
    AccountBlock.objects.create(user_id=7, reason="made credit up")
    User.objects.filter(pk=7).update(is_active=False)
    with pytest.raises(AccountBlocked):
        scheduler_client(weak_key(unchanged_project, 7), 71, 72).ask()


def test_a_weak_key_from_before_opens_nothing_but_the_scheduler(unchanged_project: OldProject) -> None:
    import_(unchanged_project)
    for key in (weak_key(unchanged_project, 7), weak_key(unchanged_project, 7).replace("_", "")):
        reply = Client().get("/am_get_info.php", {"account_key": key})
        assert b"<success" not in reply.content
        assert b"user7@example.org" not in reply.content
    assert not ClientKey.objects.filter(
        key_hash=hashlib.sha256(weak_key(unchanged_project, 7).encode()).digest()
    ).exists()


def test_a_client_with_the_number_of_a_merged_computer_gets_that_of_the_other(unchanged_project: OldProject) -> None:
    import_(unchanged_project)
    assert Host.objects.get(pk=5000).merged_into_id == Host.objects.get(pk=5001).merged_into_id == 30
    computer = scheduler_client(f"{3:032x}", 5000, 5)
    assert "<hostid>30</hostid>" in computer.ask()


def test_a_client_that_lost_its_number_is_known_by_its_published_id(small_project: OldProject) -> None:
    cpid = "ab" * 16
    small_project.run(
        f"UPDATE host SET host_cpid = '{external_cpid(cpid, 'user7@example.org')}', p_model = 'Test CPU' WHERE id = 71"
    )
    import_(small_project)
    # Another name, as its owner renamed it meanwhile: the id is the same.
    computer = Computer(f"{7:032x}", cpid=cpid, name="renamed")
    catalogue.forget()
    assert "<hostid>71</hostid>" in computer.ask()


def test_the_published_id_of_a_computer_stays_before_and_after_its_first_contact(small_project: OldProject) -> None:
    cpid = "ab" * 16
    published = external_cpid(cpid, "user7@example.org")
    small_project.run(f"UPDATE host SET host_cpid = '{published}' WHERE id = 71")
    import_(small_project)

    def exported() -> str:
        statement = f"""
SELECT {export_sql.HOST_CPID} FROM portal_host h JOIN portal_user u ON u.id = h.owner_id WHERE h.id = 71"""
        with connection.cursor() as cursor:
            cursor.execute(statement)
            ((found,),) = cursor.fetchall()
        return str(found)

    assert exported() == published
    catalogue.forget()
    Computer(f"{7:032x}", hostid=71, seqno=72, cpid=cpid).ask()
    assert exported() == published


def test_consents_go_on_and_the_later_of_two_rows_counts(unchanged_project: OldProject) -> None:
    import_(unchanged_project)
    # 2 to 20 agreed; 1 did, and took it back at the same time; others were never asked.
    assert ExportConsent.objects.filter(exports_statistics=True).count() == 19
    assert not ExportConsent.objects.get(user=1).exports_statistics
    assert ConsentEvent.objects.filter(user=1, kind="statistics").count() == 2
    assert User.objects.filter(terms_accepted_at=T0_AT).count() == 20


def test_where_a_project_never_asked_all_are_exported_as_before(small_project: OldProject) -> None:
    small_project.run("UPDATE consent_type SET enabled = 0")
    import_(small_project)
    assert ExportConsent.objects.get(user=30).exports_statistics
    assert not ExportConsent.objects.get(user=109).exports_statistics  # disabled by an operator


def test_a_second_import_changes_nothing(unchanged_project: OldProject) -> None:
    import_(unchanged_project)
    before = content()
    tallies = import_(unchanged_project)
    assert {name: tally.nchanged for name, tally in tallies.items() if tally.nchanged} == {}
    assert content() == before
    assert set(ImportStep.objects.values_list("run", flat=True)) == {2}


def test_what_changed_there_since_is_changed_here(small_project: OldProject) -> None:
    import_(small_project)
    small_project.run(
        """
UPDATE user SET name = 'Another name', email_addr = 'new7@example.org', teamid = 3 WHERE id = 7;
UPDATE user SET authenticator = md5('new') WHERE id = 8;
UPDATE host SET userid = 0, rpc_seqno = 110, total_credit = 0, expavg_credit = 0 WHERE id = 111;
UPDATE host SET total_credit = 2 * total_credit WHERE id = 110;"""
    )
    small_project.user(61)
    tallies = import_(small_project)
    assert tallies["people"].nchanged == 2
    user = User.objects.get(pk=7)
    assert (user.name, user.email, user.membership.team_id) == ("Another name", "new7@example.org", 3)
    assert ClientKey.objects.filter(user=8, revoked_at=None).count() == 2
    assert ClientKey.objects.filter(user=8).count() == 4
    assert Host.objects.get(pk=111).merged_into_id == 110
    assert User.objects.filter(pk=61).exists()
    assert differences() == []


def test_computers_that_an_operator_blocked_stay_blocked_until_one_unblocks_them(small_project: OldProject) -> None:
    small_project.run("UPDATE host SET max_results_day = 1 WHERE id = 71")
    tallies = import_(small_project)
    assert list(WorkBlock.objects.values_list("host", "reason")) == [(5011, BLOCKED)]
    told = tallies["computers"].told
    assert told["max_results_day is 1, which BOINC has not read since 2010: taken as not blocked"].examples == ["71"]
    catalogue.forget()
    assert BLOCKED in Computer(f"{3:032x}", hostid=5011, seqno=1, cpid="ab" * 16).ask(0, 1)
    WorkBlock.objects.create(host_id=70, reason="of this site")
    small_project.run("UPDATE host SET max_results_day = -1 - max_results_day WHERE id IN (5011, 71, 110)")
    import_(small_project)
    assert set(WorkBlock.objects.values_list("host", "reason")) == {(110, BLOCKED), (70, "of this site")}


def test_who_has_signed_in_here_keeps_address_name_and_password(small_project: OldProject) -> None:
    """Else who still reads the mails of a former address would be let in."""
    import_(small_project)
    user = authenticate(None, username="user7@example.org", password=old.PASSWORD)
    assert isinstance(user, User)
    user.email, user.name = "safe@example.org", "My name"
    user.set_password("another one")
    user.save()
    EmailAddress.objects.filter(user=user).update(email=user.email, verified=True)
    stored = user.client_password
    small_project.run("UPDATE user SET name = 'Theirs', email_addr = 'lost@example.org' WHERE id = 7")
    small_project.run("UPDATE user SET email_addr = 'lost5@example.org' WHERE id = 5")
    tallies = import_(small_project)
    assert tallies["people"].told["has signed in here: its address, name and password here stay"].examples == ["7"]
    user.refresh_from_db()
    assert (user.email, user.name, user.client_password) == ("safe@example.org", "My name", stored)
    assert EmailAddress.objects.get(user=user).email == "safe@example.org"
    assert User.objects.get(pk=5).email == "lost5@example.org"


def test_odd_rows_are_told_and_stop_nothing(unchanged_project: OldProject) -> None:
    tallies = import_(unchanged_project)
    told = {reason: found.examples for reason, found in tallies["people"].told.items()}
    assert told["address differs from another account's only by case: it logs in with its keys only"] == ["101"]
    assert told["name: was UTF-8 twice, repaired"] == ["105 José"]
    assert told["name: not UTF-8, read as Windows-1252"] == ["106 José"]
    assert told["name: perhaps UTF-8 twice, left as it is"] == ["107 CAFÉ–BAR"]
    assert told["preferences that no client could read: left"] == ["113"]
    assert told["credit is negative or too large: 0 is carried over"] == ["111"]
    assert User.objects.get(pk=102).email == "twice@example.org"
    assert (User.objects.get(pk=101).email, User.objects.get(pk=101).client_password) == ("101@moved.invalid", "")
    assert ClientKey.objects.filter(user=101).count() == 2
    assert not User.objects.get(pk=109).is_active
    assert Host.objects.get(pk=5012).p_features == "fpu tsc sse sse2"
    odd = Host.objects.get(pk=5011)
    assert (odd.domain_name, odd.p_fpops, odd.m_nbytes, odd.venue) == ("rächner", None, None, "")
    assert [(each["type"], each["count"], each["opencl_version"]) for each in odd.coprocs] == [("ATI", 2, "2.0")]
    assert list(tallies["computers"].left) == ["its owner no longer exists"]
    assert tallies["members of teams"].left["its team no longer exists"].examples == ["114"]


def test_a_rehearsal_tells_the_same_and_writes_nothing(unchanged_project: OldProject) -> None:
    before = content()
    rehearsed = rehearse(unchanged_project)
    assert content() == before
    assert not ImportStep.objects.exists()
    imported = import_(unchanged_project)
    for name in ("people", "teams", "members of teams", "computers", "consents", "not supported here"):
        assert (rehearsed[name].nread, rehearsed[name].ntaken) == (imported[name].nread, imported[name].ntaken)
        assert rehearsed[name].left == imported[name].left
        assert rehearsed[name].told == imported[name].told


def test_an_account_that_was_made_here_keeps_its_number_and_address(small_project: OldProject) -> None:
    User.objects.create_user("operator@example.org", "secret", id=7, name="Operator")
    small_project.run("UPDATE user SET email_addr = 'operator@example.org' WHERE id = 8")
    reason = "an account that was made here has this number"
    assert rehearse(small_project)["people"].left[reason].examples == ["7"]
    tallies = import_(small_project)
    assert tallies["people"].left[reason].examples == ["7"]
    assert User.objects.get(pk=7).name == "Operator"
    assert not ClientKey.objects.filter(user=7).exists()
    assert not Host.objects.filter(pk__in=[70, 71]).exists()
    assert User.objects.get(pk=8).email == "8@moved.invalid"
    assert differences() == []


def test_new_accounts_get_numbers_above_those_that_the_old_site_may_still_give(unchanged_project: OldProject) -> None:
    import_(unchanged_project)
    number = User.objects.create_user("new@example.org").pk
    # Sequences go on from test to test, so it may be another's room.
    assert number > 115 + 50_000
    import_(unchanged_project)
    assert User.objects.create_user("next@example.org").pk == number + 1


def test_after_the_last_import_there_is_none_until_it_is_opened_again(
    unchanged_project: OldProject, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = tmp_path / "my.cnf"
    options.write_text(f"[client]\nuser=root\nsocket={unchanged_project.server.socket}\n")
    arguments = ("import_boinc", unchanged_project.name, "--defaults-file", str(options))
    call_command(*arguments, "--rehearse")
    assert "1  its owner no longer exists (5010)" in capsys.readouterr().out
    call_command(*arguments, "--last")
    with pytest.raises(CommandError, match="declared to be the last"):
        call_command(*arguments)
    call_command(*arguments, "--reopen")
    assert "people                                75          75           0           0" in capsys.readouterr().out


def test_a_database_that_cannot_be_read_is_told_in_words() -> None:
    with pytest.raises(CommandError, match="The database cannot be read"):
        call_command("import_boinc", "none", "--defaults-file", "/nonexistent")
