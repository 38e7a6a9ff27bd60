"""Taking a released version away goes through a step with a preview and a reason."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import Permission
from django.test import Client

from credit.models import AppVersion
from portal.models import User
from scheduler.engine.release_states import ReleaseState
from scheduler.models import BetaTest
from tests.support.credit_factories import make_app, make_version
from tests.support.releases import BASE, do, said, signed_version, state
from tests.support.sessions import sign_in_lately
from tests.support.settings_changes import STEP, last_change, save, undo

pytestmark = pytest.mark.django_db


def to_step(browser: Client, version: AppVersion, action: str, **fields: Any) -> str:
    reply = browser.post(f"{BASE}versions/{version.pk}/{action}/", fields)
    assert reply["Location"].startswith(STEP)
    return str(reply["Location"])


@pytest.mark.parametrize("action", ["withdraw", "roll_back"])
def test_before_a_version_is_withdrawn_a_step_offers_a_preview_and_demands_a_reason(
    browser: Client, action: str
) -> None:
    signed_version(browser, "release")
    second = signed_version(browser, "release", version_num=102)
    step = to_step(browser, second, action)
    assert state(second) == ReleaseState.RELEASED
    page = said(browser.get(step))
    assert "Save without a preview" in page and "Jobs" in page
    # Nothing was granted yet, so there is nothing to preview; that is said by the preview itself.
    assert "No preview" not in said(browser.post(step, {"do": "preview"}, follow=True))
    assert save(browser, step, "").status_code == 200
    assert state(second) == ReleaseState.RELEASED
    assert save(browser, step, "computes nonsense").status_code == 302
    assert state(second) == ReleaseState.WITHDRAWN
    assert last_change().reason == "computes nonsense"


@pytest.mark.parametrize("with_volunteers", [False, True])
def test_what_was_withdrawn_is_sent_again_after_the_same_step(
    browser: Client, operator: User, with_volunteers: bool
) -> None:
    version = signed_version(browser, "release")
    do(browser, version, "withdraw")
    save(browser, to_step(browser, version, "test", **({"with_volunteers": "on"} if with_volunteers else {})))
    test = BetaTest.objects.get()
    assert (state(version), test.begun_by, test.with_volunteers) == (ReleaseState.BETA, operator, with_volunteers)
    do(browser, version, "withdraw")
    save(browser, to_step(browser, version, "release"))
    assert state(version) == ReleaseState.RELEASED


def test_a_withdrawal_is_undone_like_any_change_of_credit(browser: Client) -> None:
    version = signed_version(browser, "test")
    do(browser, version, "withdraw")
    assert undo(browser, last_change()).status_code == 302
    assert state(version) == ReleaseState.BETA


def test_a_roll_back_whose_older_version_is_gone_meanwhile_changes_nothing(browser: Client) -> None:
    first = signed_version(browser, "test")
    do(browser, first, "release")
    second = signed_version(browser, "release", version_num=102)
    step = to_step(browser, second, "roll_back")
    BetaTest.objects.create(app_version=first)  # it is only tested by now
    reply = save(browser, step)
    assert "no older version to go back to" in said(reply)
    assert (state(first), state(second)) == (ReleaseState.BETA, ReleaseState.RELEASED)


@pytest.mark.parametrize(("withdrawn", "nolder"), [(1, 2), (0, 1)])
def test_a_roll_back_that_would_bring_another_version_than_was_shown_changes_nothing(
    browser: Client, withdrawn: int, nolder: int
) -> None:
    *older, last = (signed_version(browser, "release", version_num=101 + n) for n in range(nolder + 1))
    step = to_step(browser, last, "roll_back")
    assert f"Computers get {older[-1]} again" in said(browser.get(step))
    do(browser, older[withdrawn], "withdraw")
    reply = said(save(browser, step))
    assert "this would now bring back another version than the one shown" in reply
    assert [state(each) for each in (older[withdrawn], last)] == [ReleaseState.WITHDRAWN, ReleaseState.RELEASED]
    assert "Saved" in do(browser, last, "roll_back")
    assert (state(older[0]), state(last)) == (ReleaseState.RELEASED, ReleaseState.WITHDRAWN)


def test_who_may_release_and_nothing_else_may_withdraw(client: Client, alice: User) -> None:
    version = make_version(make_app())
    User.objects.filter(pk=alice.pk).update(is_staff=True)
    rights = ("view_releasedraft", "release_appversion")
    alice.user_permissions.set(Permission.objects.filter(codename__in=rights))
    sign_in_lately(client, User.objects.get(pk=alice.pk))
    step = to_step(client, version, "withdraw")
    assert "you do not have permission to ask for one" in said(client.get(step))
    assert client.get(client.post(step, {"do": "cancel"})["Location"]).status_code == 200
    save(client, to_step(client, version, "withdraw"))
    assert state(version) == ReleaseState.WITHDRAWN
