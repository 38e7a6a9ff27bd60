"""A project at the addresses that clients hold: whose work it is, what is sent where, and no task is ever dropped."""

from __future__ import annotations

import csv
import time

import pytest

from accounting.computers.wishes import save_wishes
from accounting.engine.amounts import MICRO
from accounting.engine.host_wishes import HostWishes
from accounting.models import HostLedger, HostProject, Project, ProjectAddress
from accounting.projects import signing_key
from accounting.projects.addresses import learn, move
from accounting.rpc import account_keys, catalogue
from portal.models import Host, User
from tests.support.accounting_factories import make_project
from tests.support.am_rpc import attach, hours_credited, hours_pass, make_computer, post, row_of, sync
from tests.support.cases import FOLDER, CaseComputer, attached
from tools.simulation.client import Attachment

TIDEWATER = "https://tidewater.example.org/science/"
NEW = "https://new.tidewater.example.org/science/"
KEY = "7_key_of_tidewater"
Source = ProjectAddress.Source

ROWS = list(csv.DictReader((FOLDER / "addresses.csv").read_text().splitlines()))


@pytest.fixture
def tidewater(projects: list[Project]) -> Project:
    """The only project."""
    Project.objects.all().delete()
    project = make_project(
        "Tidewater",
        master_url=TIDEWATER,
        account_key=KEY,
        url_signature=signing_key.sign_url(TIDEWATER) or "",
    )
    catalogue.forget()
    return project


def change(project: Project, **fields: object) -> None:
    for name, value in fields.items():
        setattr(project, name, value)
    project.save()
    catalogue.forget()


def known(project: Project, url: str, source: Source) -> None:
    assert learn(project, url, source)
    catalogue.forget()


def exclude(computer: CaseComputer, project: Project) -> None:
    save_wishes(Host.objects.get(token=computer.token), {project.pk: HostWishes(excluded=True)})


def row(computer: CaseComputer) -> HostProject:
    return HostProject.objects.get(host__token=computer.token)


class TestSpellings:
    @pytest.mark.parametrize("is_managed", [True, False])
    @pytest.mark.parametrize("listed", ROWS, ids=lambda listed: str(listed["address_of_the_client"]))
    def test_each_is_answered_as_it_is_and_booked_to_its_project(
        self, listed: dict[str, str], is_managed: bool, alice: User, tidewater: Project
    ) -> None:
        change(tidewater, path_ignores_case=True)
        url = listed["address_of_the_client"]
        is_same = listed["same_project_as_https://tidewater.example.org/science/"].startswith("yes")
        computer = attach(alice)
        hours_pass(computer, 10)
        attachment = computer.projects.pop(TIDEWATER)
        attachment.url, attachment.managed = url, is_managed
        computer.projects[url] = attachment
        sync(computer)
        for _ in range(2):
            hours_pass(computer, 10)
            attachment.work(computer, 3600, 0)
            reply = sync(computer)
            assert b"<detach" not in reply.raw
            assert url in computer.projects
            if is_same:
                assert list(reply.accounts) == [url]
                assert reply.accounts[url].findtext("resource_share") == "100"
        if is_same:
            assert hours_credited(computer, tidewater) == 2
        else:
            assert url not in reply.accounts

    def test_case_of_the_path_counts_unless_the_project_says_otherwise(self, alice: User, tidewater: Project) -> None:
        computer = attach(alice)
        url = "https://tidewater.example.org/Science/"
        computer.projects = {url: Attachment(url)}
        # It is left alone, and so is the one that the client would take for it.
        assert sync(computer).accounts == {}
        change(tidewater, path_ignores_case=True)
        assert list(sync(computer).accounts) == [url]

    def test_a_client_that_followed_to_https_writes_the_whole_address_in_lower_case(
        self, alice: User, tidewater: Project
    ) -> None:
        move(tidewater, "http://tidewater.example.org/Science/")
        computer = attach(alice)
        computer.projects = {TIDEWATER: Attachment(TIDEWATER)}
        assert list(sync(computer).accounts) == [TIDEWATER]

    @pytest.mark.parametrize("filling", ["/" * 300, "\x1f"], ids=["too long", "control"])
    def test_one_that_cannot_be_sent_back_is_left_alone(self, filling: str, alice: User, tidewater: Project) -> None:
        computer = attach(alice)
        computer.projects = {TIDEWATER + filling: Attachment(TIDEWATER + filling)}
        reply = sync(computer)
        assert reply.error == (0, "") and TIDEWATER + filling not in reply.accounts

    def test_of_one_project_at_two_addresses_the_master_url_counts(self, alice: User, tidewater: Project) -> None:
        known(tidewater, NEW, Source.CONFIG)
        computer = attach(alice)
        own = computer.projects.pop(TIDEWATER)
        hours_pass(computer, 10)
        for urls in ((NEW, TIDEWATER), (TIDEWATER, NEW)):
            computer.projects = {url: own if url == TIDEWATER else Attachment(NEW, totals=[10**9] * 6) for url in urls}
            own.work(computer, 3600, 0)
            reply = sync(computer)
            assert list(reply.accounts) == [TIDEWATER]
        assert hours_credited(computer, tidewater) == 2

    def test_a_client_is_attached_at_the_master_url(self, alice: User, tidewater: Project) -> None:
        known(tidewater, NEW, Source.CONFIG)
        assert list(attach(alice).projects) == [TIDEWATER]

    def test_it_is_read_behind_any_number_of_strangers(
        self, alice: User, tidewater: Project, caplog: pytest.LogCaptureFixture
    ) -> None:
        computer = attach(alice)
        hours_pass(computer, 10)
        own = computer.projects.pop(TIDEWATER)
        own.work(computer, 3600, 0)
        strangers = [f"http://p{n}.example.org/" for n in range(200)]
        computer.projects = {url: Attachment(url, managed=False) for url in strangers} | {TIDEWATER: own}
        assert list(sync(computer).accounts) == [TIDEWATER]
        assert hours_credited(computer, tidewater) == 1
        # One more than a request may have: its client is told which limit that is, and nothing is lost.
        strangers = [f"http://p{n}.example.org/" for n in range(800)]
        computer.projects = {url: Attachment(url, managed=False) for url in strangers} | {TIDEWATER: own}
        hours_pass(computer, 10)
        own.work(computer, 3600, 0)
        before = row_of(computer, tidewater).reported
        refusal = post(computer.request(time.time()))
        assert refusal.error == (-112, "project: more than 800 projects")
        assert "project: more than 800 projects" in caplog.text
        assert row_of(computer, tidewater).reported == before
        computer.projects = {TIDEWATER: own}
        sync(computer)
        assert hours_credited(computer, tidewater) == 2

    def test_another_address_of_another_project_makes_a_master_url_no_less_known(
        self, alice: User, tidewater: Project
    ) -> None:
        move(tidewater, "https://tidewater.example.org/Science/")
        ProjectAddress.objects.all().delete()
        known(make_project("Other"), TIDEWATER, Source.OPERATOR)
        other = TIDEWATER.replace("science", "SCIENCE")
        computer = attach(alice)
        computer.projects = {other: Attachment(other)}
        # It is left alone, but the client, which does not tell the two apart, is not attached to it a second time.
        assert not any("tidewater" in url for url in sync(computer).accounts)


class TestAttachedByHand:
    def test_it_is_named_once_by_the_clients_address_and_never_detached(self, alice: User, tidewater: Project) -> None:
        computer = attached("address-by-hand-http", alice)
        for managed in "011":
            reply = computer.send(attached_via_acct_mgr=managed)
            (account,) = reply.accounts.values()
            assert account.findtext("url") == "http://tidewater.example.org/science/"
            assert account.findtext("resource_share") == "100"
        change(tidewater, is_active=False)
        account = computer.send(attached_via_acct_mgr="1").accounts["http://tidewater.example.org/science/"]
        # It gets its own share back.
        assert {element.tag for element in account} == {"url", "user_total_ec", "user_avg_ec"}

    def test_it_is_detached_when_done_if_its_owner_excludes_it(self, alice: User, tidewater: Project) -> None:
        computer = attached("address-by-hand-http", alice)
        exclude(computer, tidewater)
        for managed in "01":
            (account,) = computer.send(attached_via_acct_mgr=managed).accounts.values()
            assert account.find("detach_when_done") is not None
        # If they change their mind before its tasks are done, the order is taken back.
        save_wishes(Host.objects.get(token=computer.token), {tidewater.pk: HostWishes()})
        change(tidewater, is_active=False)
        (account,) = computer.send(attached_via_acct_mgr="1", detach_when_done="1").accounts.values()
        assert account.find("detach_when_done") is None

    def test_one_of_another_account_manager_is_the_owners_own(self, alice: User, tidewater: Project) -> None:
        change(tidewater, is_active=False)
        computer = attached("address-by-hand-http", alice)
        assert computer.send(attached_via_acct_mgr="1").raw.count(b"<detach") == 0

    def test_what_we_attached_is_detached_when_done_once_it_leaves_the_catalogue(
        self, alice: User, tidewater: Project
    ) -> None:
        computer = attached("total-of-detach-when-done", alice)
        url = "http://www.tidewater.example.org/science/"
        computer.send(url=url)
        change(tidewater, is_active=False)
        account = computer.send(url=url).accounts[url]
        assert account.find("detach_when_done") is not None

    def test_what_we_attached_stays_ours_if_the_client_stops_using_the_site_for_a_while(
        self, alice: User, tidewater: Project
    ) -> None:
        computer = attach(alice)
        sync(computer)
        computer.authenticator = computer.opaque = ""
        computer.projects[TIDEWATER].managed = False
        sync(computer)
        assert row_of(computer, tidewater).state["by_owner"]
        sync(computer)
        change(tidewater, is_active=False)
        assert sync(computer).accounts[TIDEWATER].find("detach_when_done") is not None

    @pytest.mark.parametrize(("key", "is_ours"), [(KEY, True), ("7_of_the_owner", False)])
    def test_a_key_that_all_shared_before_shows_it_too(
        self, key: str, is_ours: bool, alice: User, tidewater: Project
    ) -> None:
        computer = attach(alice)
        sync(computer)
        for number in range(2):
            change(tidewater, shared_account_key=account_keys.seal_shared(tidewater, f"7_new_{number}"))
        computer.authenticator = computer.opaque = ""
        computer.projects[TIDEWATER].managed = False
        computer.projects[TIDEWATER].account_key = key
        sync(computer)
        assert row_of(computer, tidewater).state["by_owner"]
        computer.projects[TIDEWATER].managed, computer.projects[TIDEWATER].account_key = True, key
        sync(computer)
        assert row_of(computer, tidewater).state["by_owner"] is not is_ours


class TestMoved:
    def test_it_is_left_alone_until_the_project_says_so_and_then_the_same_project(
        self, alice: User, tidewater: Project
    ) -> None:
        computer = attached("address-moved", alice)
        computer.send(url=TIDEWATER)
        computer.a_day_passes()
        for _ in range(2):
            assert computer.send(cpu_time="2000.0").accounts == {}
        assert HostLedger.objects.get().contact["elsewhere"] == {str(tidewater.pk): NEW}
        known(tidewater, NEW, Source.CONFIG)
        computer.a_day_passes()
        account = computer.send(cpu_time="3000.0").accounts[NEW]
        # Its key was entered for the other server, and the client has its own.
        assert account.find("authenticator") is None
        assert account.findtext("resource_share") == "100"
        # All that it did since it attached: nothing was lost meanwhile.
        assert row(computer).credited[2] == 3000 * MICRO
        assert "elsewhere" not in HostLedger.objects.get().contact

    def test_a_client_that_follows_at_once_is_known_by_its_account_key(self, alice: User, tidewater: Project) -> None:
        computer = attach(alice)
        computer.projects = {NEW: Attachment(NEW, account_key=KEY, hostid=5)}
        reply = sync(computer)
        # Attached to the old address, it would have the project twice.
        assert reply.accounts == {} and reply.messages == []
        computer.projects = {NEW: Attachment(NEW, account_key="another", hostid=5)}
        assert list(sync(computer).accounts) == [TIDEWATER]

    @pytest.mark.parametrize(
        ("name", "cpu_hours", "is_moved"),
        [("tidewater", 0, True), ("Lantern", 3, True), ("Lantern", 1, False)],
        ids=["its name", "its totals go on", "neither"],
    )
    def test_its_number_alone_says_nothing(
        self, name: str, cpu_hours: float, is_moved: bool, alice: User, tidewater: Project
    ) -> None:
        """A young project numbers its computers from 1, as any other one does."""
        computer = attach(alice)
        own = computer.projects[TIDEWATER]
        own.hostid = 1
        hours_pass(computer, 10)
        own.work(computer, 2 * 3600, 0)
        sync(computer)
        moved = Attachment(NEW, hostid=1, managed=False, name=name)
        moved.work(computer, cpu_hours * 3600, 0)
        computer.projects = {NEW: moved}
        assert (list(sync(computer).accounts) == []) is is_moved

    @pytest.mark.parametrize("source", [Source.CLIENTS, Source.CONFIG, Source.OPERATOR])
    def test_no_account_key_goes_to_an_address_on_another_server(
        self, source: Source, alice: User, tidewater: Project
    ) -> None:
        """Whoever named it: the key was entered for the server of the master URL."""
        known(tidewater, NEW, source)
        computer = make_computer(alice)
        sync(computer)
        computer.projects = {NEW: Attachment(NEW, account_key="7_old")}
        account = sync(computer).accounts[NEW]
        assert account.find("authenticator") is None
        assert account.findtext("resource_share") == "100"

    @pytest.mark.parametrize(
        "other", ["http://tidewater.example.org/science/", "https://www.tidewater.example.org/science/"]
    )
    def test_no_account_key_goes_to_another_origin_of_the_same_key(
        self, other: str, alice: User, tidewater: Project
    ) -> None:
        computer = attach(alice)
        computer.projects = {other: Attachment(other, account_key="7_old")}
        account = sync(computer).accounts[other]
        assert account.find("authenticator") is None and account.find("url_signature") is None

    def test_what_its_owner_attached_gets_no_orders_on_the_word_of_computers_alone(
        self, alice: User, tidewater: Project
    ) -> None:
        """It may be another project, whose address some accounts made up for this one."""
        known(tidewater, NEW, Source.CLIENTS)
        computer = attach(alice)
        computer.projects = {NEW: Attachment(NEW, managed=False, account_key="7_own")}
        assert sync(computer).accounts == {}
        save_wishes(Host.objects.get(), {tidewater.pk: HostWishes(excluded=True, drop_waiting=True)})
        assert sync(computer).accounts == {}
        ProjectAddress.objects.update(source=Source.OPERATOR)
        catalogue.forget()
        assert sync(computer).accounts[NEW].find("detach_when_done") is not None


class TestOwnAccount:
    def test_its_key_is_not_replaced_and_the_share_is_still_set(self, alice: User, tidewater: Project) -> None:
        computer = attached("own-account-key", alice)
        for managed in "011":
            account = computer.send(attached_via_acct_mgr=managed).accounts[TIDEWATER]
            assert account.find("authenticator") is None and account.find("update") is None
            assert account.findtext("resource_share") == "100"

    def test_a_new_key_of_ours_replaces_our_old_one(self, alice: User, tidewater: Project) -> None:
        computer = attach(alice)
        sync(computer)
        change(tidewater, shared_account_key=account_keys.seal_shared(tidewater, "7_new"))
        account = sync(computer).accounts[TIDEWATER]
        assert account.findtext("authenticator") == "7_new" and account.find("update") is not None


def test_an_entry_to_detach_has_the_total_with_the_report_just_made(alice: User, projects: list[Project]) -> None:
    lantern = make_project("Lantern", master_url="https://lantern.example.org/science/", account_key="7_l")
    catalogue.forget()
    computer = attached("total-of-detach-when-done", alice)
    change(lantern, is_active=False)
    account = computer.send().accounts[lantern.master_url]
    assert account.find("detach_when_done") is not None
    # 3,000 s at 3 GFLOPS: 3000 * 3e9 * 200 / 86,400e9
    assert float(account.findtext("user_total_ec", "")) == pytest.approx(20.833333, abs=1e-6)
