"""What replies tell a client: projects and shares, orders to detach, wishes, preferences, news, when to call again."""

from __future__ import annotations

import datetime as dt
from xml.etree import ElementTree

import pytest
from django.conf import settings as site
from django.utils import timezone
from pytest_django import Settings

from accounting.choosing import choices
from accounting.computers.wishes import save_wishes
from accounting.engine import preferences
from accounting.engine.amounts import KINDS, MICRO
from accounting.engine.host_wishes import NO_WISHES, HostWishes
from accounting.ledger import rollup
from accounting.models import AccountSettings, Announcement, Project, UserProject
from accounting.projects import signing_key
from accounting.rpc import account_keys, catalogue
from portal.models import Host, User
from portal.wire import signing
from tests.support.am_rpc import (
    CPUS,
    HOUR,
    START,
    Reply,
    answer,
    attach,
    call,
    copy_of,
    credited,
    host_of,
    hours_credited,
    make_computer,
    sync,
    token_of,
    work,
)
from tools.simulation.client import Attachment, SimulatedComputer


@pytest.fixture
def computer(alice: User, projects: list[Project]) -> SimulatedComputer:
    """Alice's computer after its first contact and a report, so that it is settled."""
    computer = make_computer(alice)
    call(computer, START)
    call(computer, START + HOUR)
    return computer


def ask(computer: SimulatedComputer, hours: float) -> Reply:
    """A report this many hours after the first contact."""
    return call(computer, START + hours * HOUR)


def wish(computer: SimulatedComputer, project: Project, wishes: HostWishes = NO_WISHES) -> None:
    save_wishes(host_of(computer), {project.pk: wishes})


DETACHED = {"url", "detach_when_done", "user_total_ec", "user_avg_ec"}


def tags(account: ElementTree.Element) -> set[str]:
    return {element.tag for element in account}


class TestEveryReply:
    def test_has_the_signing_key_always_and_always_the_same(self, computer: SimulatedComputer) -> None:
        key = ask(computer, 2).text("signing_key")
        assert key == ask(computer, 3).text("signing_key")
        assert signing.public_key_text(signing.parse_public_key(key)) == signing.public_key_text(
            signing_key.public_key()
        )

    def test_has_urls_that_the_signing_key_has_signed(
        self, computer: SimulatedComputer, projects: list[Project]
    ) -> None:
        reply = ask(computer, 2)
        key = signing.parse_public_key(reply.text("signing_key"))
        for url, account in reply.accounts.items():
            assert signing.verify(url.encode(), account.findtext("url_signature", ""), key)
        other = projects[1].master_url
        assert not signing.verify(other.encode(), reply.account(projects[0]).findtext("url_signature", ""), key)

    def test_names_the_site_and_switches_accounting_on(self, computer: SimulatedComputer) -> None:
        reply = ask(computer, 2)
        assert reply.text("name") == site.SITE_NAME
        assert reply.text("user_name") == "Alice"
        assert reply.root.find("dynamic") is not None
        assert reply.text("opaque/host") == token_of(computer)
        assert reply.text("rss_feeds/rss_feed/url") == f"{site.SITE_URL}notices.rss"

    def test_hands_over_the_account_key_of_each_project(
        self, computer: SimulatedComputer, projects: list[Project]
    ) -> None:
        reply = ask(computer, 2)
        assert [reply.account(p).findtext("authenticator") for p in projects] == [
            "7_key_of_alpha",
            "7_key_of_beta",
            "7_key_of_gamma",
        ]

    def test_escapes_what_people_chose(self, alice: User, projects: list[Project]) -> None:
        User.objects.update(name='<Al> & "ice"')
        assert sync(make_computer(alice, password="alice's secret")).text("user_name") == '<Al> & "ice"'


class TestWhenToCallAgain:
    def test_soon_after_the_attach_then_at_the_usual_interval(self, alice: User, projects: list[Project]) -> None:
        computer = make_computer(alice)
        assert call(computer, START).repeat_secs == site.AM_REPEAT_SECS_AFTER_ATTACH == 120
        # The client took the projects, at the shares that it was told: nothing is left to do.
        assert call(computer, START + dt.timedelta(minutes=2)).repeat_secs == site.AM_REPEAT_SECS == 21_600

    def test_soon_again_when_shares_have_changed(self, computer: SimulatedComputer, alice: User) -> None:
        project = Project.objects.get(name="Alpha")
        choices.choose_projects(alice, {project.pk: 50.0})
        now = START + 2 * HOUR
        assert call(computer, now).repeat_secs == 2 * 3600
        assert call(computer, now + dt.timedelta(minutes=2)).repeat_secs == 21_600

    def test_at_doubling_intervals_while_the_client_does_not_do_as_told(
        self, alice: User, projects: list[Project]
    ) -> None:
        computer = make_computer(alice)
        call(computer, START)
        # A client that refuses a signature: it never lists the project.
        stubborn = copy_of(computer, projects={})
        now, intervals = START, []
        secs = 120
        for _ in range(9):
            now += dt.timedelta(seconds=secs)
            secs = call(stubborn, now, is_lost=True).repeat_secs
            intervals.append(secs)
        assert intervals == [240, 480, 960, 1_920, 3_840, 7_680, 15_360, 21_600, 21_600]

    def test_never_later_than_the_usual_interval(
        self, alice: User, projects: list[Project], settings: Settings
    ) -> None:
        settings.AM_REPEAT_SECS = 60
        assert sync(make_computer(alice)).repeat_secs == 60


class TestProjects:
    def test_only_the_chosen_ones_come_with_their_shares(
        self, alice: User, computer: SimulatedComputer, projects: list[Project]
    ) -> None:
        alpha, beta, gamma = projects
        choices.choose_projects(alice, {alpha.pk: 12.5, beta.pk: None})
        reply = ask(computer, 2)
        shares = {p.name: reply.account(p).findtext("resource_share") for p in projects}
        assert shares == {"Alpha": "12.5", "Beta": "100", "Gamma": None}
        # It was attached through us, so it is named with an order: merely left out, it would stay.
        assert tags(reply.account(gamma)) == DETACHED
        assert gamma.master_url not in computer.projects
        assert gamma.master_url not in ask(computer, 3).accounts

    def test_what_was_attached_by_hand_and_is_not_chosen_is_left_alone(
        self, alice: User, projects: list[Project]
    ) -> None:
        alpha, beta, _ = projects
        choices.choose_projects(alice, {alpha.pk: None})
        computer = make_computer(alice)
        unknown = "https://unknown.example.com/"
        for url in (beta.master_url, unknown):
            computer.projects[url] = Attachment(url, managed=False)
        reply = call(computer, START)
        assert set(reply.accounts) == {alpha.master_url}
        assert set(computer.projects) == {alpha.master_url, beta.master_url, unknown}

    @pytest.mark.parametrize("is_managed", [True, False])
    def test_unknown_ones_are_left_alone(self, computer: SimulatedComputer, is_managed: bool) -> None:
        unknown = "https://unknown.example.com/"
        computer.projects[unknown] = Attachment(unknown, managed=is_managed, hostid=77)
        assert unknown not in ask(computer, 2).accounts
        assert unknown in computer.projects

    def test_one_that_takes_no_more_computers_is_detached_when_done(
        self, computer: SimulatedComputer, projects: list[Project]
    ) -> None:
        Project.objects.filter(pk=projects[0].pk).update(is_active=False)
        catalogue.forget()
        assert tags(ask(computer, 2).account(projects[0])) == DETACHED

    def test_one_without_an_account_is_not_offered(
        self, alice: User, bob: User, projects: list[Project], computer: SimulatedComputer
    ) -> None:
        alpha = projects[0]
        Project.objects.filter(pk=alpha.pk).update(account_mode=Project.Account.PER_USER)
        catalogue.forget()
        UserProject.objects.create(user=bob, project=alpha, account_key=account_keys.seal_own(bob.pk, alpha, "9_bobs"))
        assert tags(ask(computer, 2).account(alpha)) == DETACHED
        his = make_computer(bob, "cellar")
        assert call(his, START).account(alpha).findtext("authenticator") == "9_bobs"

    def test_a_key_that_cannot_be_read_stops_its_project_only(
        self, computer: SimulatedComputer, projects: list[Project], settings: Settings
    ) -> None:
        Project.objects.filter(pk=projects[0].pk).update(shared_account_key=b"encrypted with another secret")
        catalogue.forget()
        reply = ask(computer, 2)
        assert reply.error == (0, "")
        assert reply.account(projects[0]).find("authenticator") is None
        assert reply.account(projects[1]).findtext("authenticator") == "7_key_of_beta"


class TestWishes:
    def test_an_excluded_project_is_detached_and_not_offered_again(
        self, computer: SimulatedComputer, projects: list[Project]
    ) -> None:
        alpha = projects[0]
        wish(computer, alpha, HostWishes(excluded=True))
        assert tags(ask(computer, 2).account(alpha)) == DETACHED
        reply = ask(computer, 3)
        assert alpha.master_url not in reply.accounts
        # Not having it is what was wanted: no reason to call again soon.
        assert reply.repeat_secs == site.AM_REPEAT_SECS

    def test_of_one_computer_do_not_concern_another(
        self, alice: User, computer: SimulatedComputer, projects: list[Project]
    ) -> None:
        wish(computer, projects[0], HostWishes(excluded=True, suspended=True))
        other = make_computer(alice, "laptop", p_model="Another CPU")
        assert call(other, START).account(projects[0]).find("suspend") is None

    def test_a_suspension_is_told_while_it_lasts_and_its_end_once(
        self, computer: SimulatedComputer, projects: list[Project]
    ) -> None:
        alpha = projects[0]

        def told(hours: int) -> str | None:
            return ask(computer, hours).account(alpha).findtext("suspend")

        assert told(2) is None
        wish(computer, alpha, HostWishes(suspended=True))
        assert [told(3), told(4)] == ["1", "1"]
        wish(computer, alpha)
        # Then it is the computer's own affair again.
        assert [told(5), told(6), told(7)] == ["0", None, None]

    def test_the_end_of_a_suspension_is_told_again_if_the_reply_was_lost(
        self, computer: SimulatedComputer, projects: list[Project]
    ) -> None:
        alpha = projects[0]
        wish(computer, alpha, HostWishes(suspended=True))
        ask(computer, 2)
        wish(computer, alpha)

        def told(hours: int, is_suspended: bool) -> str | None:
            """What a client is told that reports whether it has the project suspended."""
            now = START + hours * HOUR
            flag = b"<suspended_via_gui>%d</suspended_via_gui>"
            message = computer.request(now.timestamp()).replace(flag % 0, flag % is_suspended)
            return answer(message, now).account(alpha).findtext("suspend")

        assert [told(3, True), told(4, True), told(5, False), told(6, False)] == ["0", "0", "0", None]
        # Suspended by hand later: left alone.
        assert told(7, True) is None

    def test_no_new_work_and_processors_that_must_not_be_used(
        self, computer: SimulatedComputer, projects: list[Project]
    ) -> None:
        alpha, beta, _ = projects
        wish(computer, alpha, HostWishes(no_new_work=True, no_rsc=("NVIDIA", "CPU")))
        account = ask(computer, 2).account(alpha)
        assert account.find("dont_request_more_work") is not None
        assert [element.text for element in account.findall("no_rsc")] == ["NVIDIA", "CPU"]
        assert tags(ask(computer, 3).account(beta)).isdisjoint({"dont_request_more_work", "no_rsc", "suspend"})
        wish(computer, alpha)
        assert tags(ask(computer, 4).account(alpha)).isdisjoint({"dont_request_more_work", "no_rsc"})

    def test_a_changed_account_key_is_used_at_once(self, computer: SimulatedComputer, projects: list[Project]) -> None:
        alpha, beta, _ = projects
        computer.projects[alpha.master_url].account_key = "7_old"
        reply = ask(computer, 2)
        assert [reply.account(p).find("update") is not None for p in (alpha, beta)] == [True, False]
        assert computer.projects[alpha.master_url].account_key == "7_key_of_alpha"
        assert ask(computer, 3).account(alpha).find("update") is None

    def test_a_key_that_the_client_will_not_take_is_no_reason_to_call(
        self, computer: SimulatedComputer, projects: list[Project]
    ) -> None:
        computer.projects[projects[0].master_url].account_key = "strong"
        assert ask(computer, 2).account(projects[0]).find("update") is None

    def test_an_update_is_asked_for_once(self, computer: SimulatedComputer, projects: list[Project]) -> None:
        alpha = projects[0]
        wish(computer, alpha, HostWishes(update_asked=True))
        asked = [ask(computer, hours).account(alpha).find("update") is not None for hours in (2, 3, 4)]
        assert asked == [True, False, False]


class TestPreferences:
    def test_are_left_to_the_client_until_saved(self, computer: SimulatedComputer) -> None:
        assert ask(computer, 2).root.find("global_preferences") is None

    def test_come_as_a_complete_set_with_the_time_of_the_change(self, alice: User, computer: SimulatedComputer) -> None:
        saved = dt.datetime(2026, 2, 3, 4, 5, 6, tzinfo=dt.UTC)
        AccountSettings.objects.create(user=alice, preferences={"max_ncpus_pct": 50}, preferences_at=saved)
        sent = ask(computer, 2).root.find("global_preferences")
        assert sent is not None
        values = {element.tag: float(element.text or "nan") for element in sent}
        assert values.pop("mod_time") == saved.timestamp()
        assert values.pop("max_ncpus_pct") == 50
        assert values == {name: p.default for name, p in preferences.PREFERENCES.items() if name != "max_ncpus_pct"}

    def test_a_place_and_keywords_go_with_them(self, alice: User, computer: SimulatedComputer) -> None:
        Host.objects.update(venue="work")
        AccountSettings.objects.create(user=alice, keywords_yes=[3, 5], keywords_no=[8])
        reply = ask(computer, 2)
        assert reply.text("host_venue") == "work"
        assert [e.text for e in reply.root.findall("user_keywords/yes")] == ["3", "5"]
        assert [e.text for e in reply.root.findall("user_keywords/no")] == ["8"]


class TestNews:
    def test_an_announcement_is_a_message_while_it_is_urgent(self, alice: User, projects: list[Project]) -> None:
        now = timezone.now()
        hour = dt.timedelta(hours=1)
        for title, published, until in (
            ("Urgent & short", now - hour, now + hour),
            ("Not urgent", now - hour, None),
            ("Over", now - 2 * hour, now - hour),
            ("To come", now + hour, now + 2 * hour),
        ):
            Announcement.objects.create(title=title, text="…", published_at=published, urgent_until=until)
        catalogue.forget()
        computer = attach(alice)
        assert sync(computer).messages == ["Urgent & short"]


class TestTotals:
    @pytest.mark.parametrize(("version", "count"), [("7.20.5", 2), ("8.2.4", 2), ("8.3.0", 8), ("", 2)])
    def test_elements_that_a_client_does_not_know_are_not_sent(
        self, version: str, count: int, computer: SimulatedComputer, projects: list[Project]
    ) -> None:
        computer.version = version
        known = tags(ask(computer, 2).account(projects[0]))
        assert len(known & {"user_total_ec", "user_avg_ec", *KINDS}) == count

    def test_the_volunteers_total_has_the_report_just_made_and_never_falls(
        self, computer: SimulatedComputer, projects: list[Project]
    ) -> None:
        alpha, beta, _ = projects
        totals = []
        for hours in (2, 3):
            work(computer, alpha, 1)
            totals.append(ask(computer, hours).account(alpha).findtext("user_total_ec"))
        totals.append(ask(computer, 3.1).account(alpha).findtext("user_total_ec"))
        rollup.roll_up(START + 3.2 * HOUR)
        account = ask(computer, 4).account(alpha)
        work(computer, alpha, 1)
        totals += [account.findtext("user_total_ec"), ask(computer, 5).account(alpha).findtext("user_total_ec")]
        # An hour of 0.01 credits a second is 36.
        assert totals == ["36", "72", "72", "72", "108"]
        assert 0 < float(account.findtext("user_avg_ec", "")) < 72
        assert ask(computer, 6).account(beta).findtext("user_total_ec") == "0"

    def test_an_order_to_detach_has_the_total_too(self, computer: SimulatedComputer, projects: list[Project]) -> None:
        alpha = projects[0]
        work(computer, alpha, 1)
        wish(computer, alpha, HostWishes(excluded=True))
        assert ask(computer, 2).account(alpha).findtext("user_total_ec") == "36"

    def test_a_client_that_attaches_again_is_handed_what_was_credited(
        self, computer: SimulatedComputer, projects: list[Project]
    ) -> None:
        alpha = projects[0]
        computer.version = "8.3.0"
        work(computer, alpha, 2, jobs=3)
        ask(computer, 4)
        computer.projects.clear()
        account = ask(computer, 5).account(alpha)
        handed = [account.findtext(kind) for kind in KINDS]
        # Two hours of 0.01 credits a second.
        assert handed == ["72.000000", "0.000000", "7200.000000", "0.000000", "3", "0"]

    @pytest.mark.parametrize("version", ["7.20.5", "8.2.9", "8.3.0", "9.1.0"])
    def test_clients_that_go_on_from_them_and_older_ones_are_credited_the_same(
        self, version: str, alice: User, projects: list[Project]
    ) -> None:
        alpha = projects[0]
        computer = make_computer(alice, version=version)
        call(computer, START)
        work(computer, alpha, 2)
        ask(computer, 5)
        # The client detaches from the project and, as we offer it again, attaches again.
        computer.projects.clear()
        ask(computer, 6)
        goes_on = version.startswith(("8.3", "9"))
        assert computer.projects[alpha.master_url].totals[2] == (2 * 3600 * MICRO if goes_on else 0)
        # An older one may still have done the first two hours again: it is asked back before it can.
        asked_secs = ask(computer, 6.1).repeat_secs
        assert asked_secs == (6 * 3600 if goes_on else 2 * 3600 / 3 / CPUS)
        work(computer, alpha, 1)
        ask(computer, 7)
        work(computer, alpha, 2)
        ask(computer, 10)
        assert hours_credited(computer, alpha) == 5
        assert credited(computer, alpha)[0] == 180 * MICRO

    def test_the_handed_totals_stay_while_replies_are_lost(
        self, computer: SimulatedComputer, projects: list[Project]
    ) -> None:
        alpha = projects[0]
        computer.version = "8.3.0"
        work(computer, alpha, 2)
        ask(computer, 4)
        computer.projects.clear()
        for hours in (5, 6, 7):
            call(computer, START + hours * HOUR, is_lost=True)
        ask(computer, 8)
        work(computer, alpha, 1)
        ask(computer, 9)
        assert hours_credited(computer, alpha) == 3
