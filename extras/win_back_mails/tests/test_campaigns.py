"""Win-back mails: who gets them, how many, and never twice."""

from __future__ import annotations

import datetime as dt
from contextlib import suppress
from smtplib import (
    SMTPDataError,
    SMTPException,
    SMTPNotSupportedError,
    SMTPRecipientsRefused,
    SMTPSenderRefused,
    SMTPServerDisconnected,
)
from typing import Any

import pytest
from allauth.account.models import EmailAddress
from django.core import mail
from django.core.mail import EmailMessage
from django.test import Client
from django.utils import timezone
from pytest_django import Settings

from extras.win_back_mails import campaigns, tasks
from extras.win_back_mails.admin import CampaignAdmin
from extras.win_back_mails.models import MailCampaign
from portal.models import Host, MailChoice, SentMail, User
from portal.ops.mails import MailServerDown
from tests.support.mail_server import MailServer
from tests.support.page_text import text_of
from tests.support.roles import make_person
from tests.support.sessions import sign_in_lately

pytestmark = pytest.mark.django_db

NOW = timezone.now()
DAY = dt.timedelta(days=1)


def volunteer(name: str, *, agrees: bool = True, last_days_ago: float = 120, confirmed: bool = True) -> User:
    user = User.objects.create_user(f"{name}@example.org", "a secret", name=name)
    EmailAddress.objects.create(user=user, email=user.email, verified=confirmed, primary=True)
    MailChoice.objects.create(user=user, lapsed=agrees)
    Host.objects.create(owner=user, last_contact_at=NOW - last_days_ago * DAY)
    return user


@pytest.fixture
def campaign() -> MailCampaign:
    made = MailCampaign.objects.create(title="New projects", text="There is work again.")
    campaigns.begin(made, NOW)
    return made


def written_to() -> list[str]:
    return [message.to[0].partition("@")[0] for message in mail.outbox]


def test_only_lapsed_volunteers_who_agreed_get_it(campaign: MailCampaign) -> None:
    volunteer("lapsed")
    volunteer("silent-about-it", agrees=False)
    volunteer("active", last_days_ago=89)
    volunteer("unconfirmed", confirmed=False)
    Host.objects.create(owner=volunteer("has-another"), last_contact_at=NOW)
    Host.objects.filter(owner=volunteer("never-attached")).delete()
    User.objects.filter(pk=volunteer("closed").pk).update(is_active=False)
    User.objects.filter(pk=volunteer("leaving").pk).update(deletion_asked_at=NOW)
    assert campaigns.send_some(NOW) == 1
    assert written_to() == ["lapsed"]


def test_nobody_agrees_without_saying_so(campaign: MailCampaign) -> None:
    MailChoice.objects.filter(user=volunteer("quiet")).delete()
    assert not MailChoice().lapsed
    assert campaigns.send_some(NOW) == 0


def test_nobody_gets_it_twice(campaign: MailCampaign) -> None:
    volunteer("lapsed")
    tasks.send_campaigns()
    tasks.send_campaigns()
    assert written_to() == ["lapsed"]
    campaign.refresh_from_db()
    assert (campaign.nsent, campaign.nfailed, campaign.finished_at is None) == (1, 0, False)


def test_a_draft_and_a_stopped_one_are_not_sent(campaign: MailCampaign) -> None:
    volunteer("lapsed")
    campaigns.stop(campaign, NOW)
    MailCampaign.objects.create(title="Draft", text="…")
    assert campaigns.send_some(NOW) == 0
    campaigns.begin(campaign, NOW)
    assert campaigns.send_some(NOW) == 1
    with pytest.raises(campaigns.NotReleased):
        campaigns.begin(campaign, NOW)


def test_a_day_has_a_limit_over_all_of_them(campaign: MailCampaign, settings: Settings) -> None:
    settings.LAPSED_MAILS_PER_DAY = 2
    for number in range(3):
        volunteer(f"v{number}")
    campaigns.begin(MailCampaign.objects.create(title="Another", text="…"), NOW)
    assert campaigns.send_some(NOW) == 2
    assert campaigns.send_some(NOW) == 0
    SentMail.objects.update(sent_at=NOW - DAY)
    assert campaigns.send_some(NOW) == 2


def test_a_person_has_a_limit_within_a_year(campaign: MailCampaign, settings: Settings) -> None:
    settings.LAPSED_MAILS_PER_YEAR = 2
    user = volunteer("often")
    for days_ago, key in ((364, "a"), (366, "b")):
        sent = SentMail.objects.create(user=user, kind="lapsed", key=key)
        SentMail.objects.filter(pk=sent.pk).update(sent_at=NOW - days_ago * DAY)
    other = MailCampaign.objects.create(title="Another", text="…")
    campaigns.begin(other, NOW)
    assert campaigns.send_some(NOW) == 1
    assert [message.subject.partition(": ")[2] for message in mail.outbox] == ["New projects"]


def test_a_mail_that_is_a_year_old_reaches_nobody_again(campaign: MailCampaign, settings: Settings) -> None:
    settings.LAPSED_MAILS_PER_DAY = 1
    volunteer("first")
    volunteer("second")
    assert campaigns.send_some(NOW) == 1
    campaigns.stop(campaign, NOW)
    campaigns.begin(campaign, NOW + DAY)
    campaigns.stop(campaign, NOW + DAY)
    later = NOW + 401 * DAY
    SentMail.objects.all().delete()  # as delete_old does then
    with pytest.raises(campaigns.NotReleased):
        campaigns.begin(campaign, later)
    # The campaign is large: it is still being sent a year later.
    MailCampaign.objects.update(stopped_at=None)
    assert campaigns.send_some(later) == 0
    assert written_to() == ["first"]
    campaign.refresh_from_db()
    assert (campaign.released_at, campaign.finished_at) == (NOW, later)


@pytest.mark.parametrize(
    "refusal",
    [
        SMTPRecipientsRefused({"gone@example.org": (550, b"no such user")}),
        SMTPDataError(552, b"the mailbox is full"),
        SMTPNotSupportedError("SMTPUTF8 is not supported"),
    ],
)
def test_a_refused_person_counts_as_failed_and_does_not_stop_the_others(
    campaign: MailCampaign, monkeypatch: pytest.MonkeyPatch, refusal: SMTPException
) -> None:
    volunteer("gone")
    volunteer("there")
    send = EmailMessage.send

    def refuse_one(message: EmailMessage, *more: Any, **named: Any) -> int:
        if message.to == ["gone@example.org"]:
            raise refusal
        return send(message, *more, **named)

    monkeypatch.setattr(EmailMessage, "send", refuse_one)
    assert campaigns.send_some(NOW) == 1
    assert campaigns.send_some(NOW) == 0
    campaign.refresh_from_db()
    assert (campaign.nsent, campaign.nfailed) == (1, 1)


def test_who_is_refused_for_now_gets_it_later_and_does_not_hold_up_others(
    campaign: MailCampaign, settings: Settings
) -> None:
    volunteer("greylisted")
    volunteer("there")
    with MailServer(settings) as server:
        server.refused["greylisted@example.org"] = "450 4.7.1 try again later"
        assert campaigns.send_some(NOW) == 1
        assert server.taken == ["there@example.org"]
        server.refused.clear()
        assert campaigns.send_some(NOW + dt.timedelta(minutes=59)) == 0
        campaign.refresh_from_db()
        assert (campaign.nfailed, campaign.finished_at) == (0, None)
        assert campaigns.send_some(NOW + dt.timedelta(hours=1)) == 1
    assert server.taken == ["there@example.org", "greylisted@example.org"]
    campaign.refresh_from_db()
    assert (campaign.nsent, campaign.nfailed, campaign.finished_at) == (2, 0, NOW + dt.timedelta(hours=1))


def test_who_is_refused_for_now_again_and_again_counts_as_failed_at_last(
    campaign: MailCampaign, settings: Settings
) -> None:
    settings.LAPSED_MAILS_PER_YEAR = 1
    volunteer("greylisted")
    with MailServer(settings) as server:
        server.refused["greylisted@example.org"] = "450 4.7.1 try again later"
        # After 1, 4, 12 and 24 hours
        for hours, nfailed in ((0, 0), (1, 0), (5, 0), (17, 0), (41, 1), (100, 1)):
            assert campaigns.send_some(NOW + dt.timedelta(hours=hours)) == 0
            campaign.refresh_from_db()
            assert campaign.nfailed == nfailed
    assert campaign.finished_at is not None


def test_who_agrees_no_more_meanwhile_is_not_waited_for(campaign: MailCampaign, settings: Settings) -> None:
    user = volunteer("greylisted")
    with MailServer(settings) as server:
        server.refused[user.email] = "450 4.7.1 try again later"
        campaigns.send_some(NOW)
        MailChoice.objects.update(lapsed=False)
        assert campaigns.send_some(NOW + dt.timedelta(hours=1)) == 0
    assert server.taken == []
    campaign.refresh_from_db()
    assert campaign.finished_at is not None


@pytest.mark.parametrize("fault", [SMTPServerDisconnected(), SMTPSenderRefused(451, b"try again later", "site")])
def test_without_a_mail_server_nothing_counts_as_sent_and_the_next_run_goes_on(
    campaign: MailCampaign, monkeypatch: pytest.MonkeyPatch, fault: SMTPException
) -> None:
    volunteer("lapsed")

    def fail(*_: Any) -> int:
        raise fault

    with monkeypatch.context() as broken:
        broken.setattr(EmailMessage, "send", fail)
        with pytest.raises(MailServerDown):
            campaigns.send_some(NOW)
    campaign.refresh_from_db()
    assert (campaign.nsent, campaign.nfailed) == (0, 0)
    assert campaigns.send_some(NOW + campaigns.RETRY_AFTER[0]) == 1


def test_a_recipient_on_whom_the_mail_server_hangs_does_not_hold_up_the_others(
    campaign: MailCampaign, monkeypatch: pytest.MonkeyPatch, settings: Settings
) -> None:
    settings.LAPSED_MAILS_PER_DAY = 1
    volunteer("slow")
    volunteer("there")
    send = EmailMessage.send

    def hang(message: EmailMessage, *more: Any, **named: Any) -> int:
        if message.to == ["slow@example.org"]:
            raise TimeoutError("timed out")
        return send(message, *more, **named)

    monkeypatch.setattr(EmailMessage, "send", hang)
    with pytest.raises(MailServerDown):
        campaigns.send_some(NOW)
    # A mail that was not handed over does not count towards the day's limit.
    assert campaigns.send_some(NOW) == 1
    assert written_to() == ["there"]
    settings.LAPSED_MAILS_PER_DAY = 2
    with pytest.raises(MailServerDown):
        campaigns.send_some(NOW + campaigns.RETRY_AFTER[0])


def test_refusals_are_counted_on_after_an_outage_of_the_mail_server(
    campaign: MailCampaign, monkeypatch: pytest.MonkeyPatch
) -> None:
    volunteer("greylisted")
    faults: list[Exception] = []

    def fail(*_: Any) -> int:
        raise faults[0]

    monkeypatch.setattr(EmailMessage, "send", fail)
    for hours, fault in enumerate([SMTPDataError(451, b"later"), TimeoutError(), SMTPDataError(451, b"later")]):
        faults[:] = [fault]
        with suppress(MailServerDown):
            campaigns.send_some(NOW + dt.timedelta(hours=hours))
    assert SentMail.objects.get().nrefused == 2


def test_the_mail_has_the_link_that_ends_such_mails(campaign: MailCampaign, client: Client) -> None:
    user = volunteer("lapsed")
    campaigns.send_some(NOW)
    (message,) = mail.outbox
    assert "There is work again." in message.body and "Hello lapsed," in message.body
    url = message.extra_headers["List-Unsubscribe"].strip("<>")
    assert client.post(f"/{url.split('/', 3)[3]}").status_code == 200
    assert not MailChoice.objects.get(user=user).lapsed


def test_text_of_operators_sets_no_header(campaign: MailCampaign) -> None:
    MailCampaign.objects.update(title="One\nBcc: all@example.org", text="T")
    volunteer("lapsed")
    campaigns.send_some(NOW)
    assert mail.outbox[0].recipients() == ["lapsed@example.org"]


class TestTheOperator:
    @pytest.fixture
    def desk(self) -> Client:
        client = Client()
        sign_in_lately(client, make_person("Account manager operator"))
        return client

    def test_sees_it_sends_it_to_themselves_and_then_to_volunteers(
        self, desk: Client, django_capture_on_commit_callbacks: Any
    ) -> None:
        volunteer("lapsed")
        form = {"title": "New projects", "text": "There is work again.", "lapsed_days": "90"}
        page = text_of(desk.post("/admin/win_back_mails/mailcampaign/add/", form, follow=True))
        assert "Hello Volunteer, There is work again." in page
        campaign = MailCampaign.objects.get()
        address = f"/admin/win_back_mails/mailcampaign/{campaign.pk}/change/"
        with django_capture_on_commit_callbacks(execute=True):
            desk.post(address, {**form, "win_back_mails_mailcampaign_send_test": ""})
            # The row is not locked while a mail server is waited for.
            assert not mail.outbox
        assert [message.subject[:6] for message in mail.outbox] == ["[Test]"]
        assert campaigns.send_some(NOW) == 0
        desk.post(address, {**form, "win_back_mails_mailcampaign_begin": ""})
        mail.outbox.clear()
        assert campaigns.send_some(NOW) == 1
        # A mail that was sent can no longer be changed.
        desk.post(address, {**form, "title": "Another"})
        campaign.refresh_from_db()
        assert campaign.title == "New projects"

    def test_stops_it(self, desk: Client, campaign: MailCampaign) -> None:
        volunteer("lapsed")
        address = f"/admin/win_back_mails/mailcampaign/{campaign.pk}/change/"
        desk.post(address, {"win_back_mails_mailcampaign_stop": ""})
        assert campaigns.send_some(NOW) == 0

    @pytest.mark.parametrize("button", ["_save", "win_back_mails_mailcampaign_send_test"])
    def test_saves_nothing_over_what_workers_and_others_did_meanwhile(
        self, desk: Client, monkeypatch: pytest.MonkeyPatch, button: str
    ) -> None:
        campaign = MailCampaign.objects.create(title="New projects", text="There is work again.")
        save = CampaignAdmin.save_model

        def meanwhile(*args: Any) -> None:
            MailCampaign.objects.update(released_at=NOW, stopped_at=NOW, nsent=7)
            save(*args)

        monkeypatch.setattr(CampaignAdmin, "save_model", meanwhile)
        form = {"title": "Another", "text": "T", "lapsed_days": "90", button: ""}
        page = text_of(desk.post(f"/admin/win_back_mails/mailcampaign/{campaign.pk}/change/", form, follow=True))
        assert "can no longer be changed" in page
        campaign.refresh_from_db()
        state = (campaign.title, campaign.released_at, campaign.stopped_at, campaign.nsent)
        assert state == ("New projects", NOW, NOW, 7)


@pytest.mark.parametrize(("extras", "is_offered"), [(["win_back_mails"], True), ([], False)])
def test_volunteers_are_asked_about_these_mails_where_they_are_sent(
    client: Client, settings: Settings, extras: list[str], is_offered: bool
) -> None:
    settings.EXTRAS = extras
    user = volunteer("ada")
    client.force_login(user)
    page = "/account/email-preferences/"
    assert ('name="lapsed"' in client.get(page).text) is is_offered
    client.post(page, {"silent_days": 3, "status_days": 7})
    # Earlier choices stay where nobody is asked.
    assert MailChoice.objects.get(user=user).lapsed is not is_offered
