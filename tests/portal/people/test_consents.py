"""The history of consents: what was agreed to, in which words, and when. It is only added to."""

from __future__ import annotations

import datetime as dt
import hashlib
import json

import pytest
from django.db import DatabaseError, transaction
from django.test import Client
from django.utils import timezone, translation

from accounting.account_data.copies import documents
from accounting.account_data.erasure import erase_due
from credit.export import consent as statistics
from extras.top_lists import consent as top_lists
from portal.models import ConsentEvent, User
from portal.people import consents
from portal.people.deletion import GRACE
from scheduler.releases import testers
from tests.support.page_reader import page_of

pytestmark = pytest.mark.django_db

NOW = dt.datetime(2026, 11, 2, 12, tzinfo=dt.UTC)


def said(user: User) -> list[tuple[str, bool]]:
    return list(ConsentEvent.objects.filter(user=user).order_by("pk").values_list("kind", "is_given"))


def test_each_giving_and_withdrawing_is_kept_once(alice: User) -> None:
    statistics.save(alice, exports_statistics=True, shows_hosts=False, now=NOW)
    statistics.save(alice, exports_statistics=True, shows_hosts=True, now=NOW)
    statistics.save(alice, exports_statistics=False, shows_hosts=True, now=NOW)
    testers.choose(alice, True, NOW)
    testers.choose(alice, True, NOW)
    testers.choose(alice, False, NOW)
    top_lists.give(alice, "", NOW)
    top_lists.give(alice, "A", NOW)
    top_lists.withdraw(alice, NOW)
    top_lists.withdraw(alice, NOW)
    assert said(alice) == [
        ("statistics", True),
        ("statistics_hosts", True),
        ("statistics", False),
        ("testing", True),
        ("testing", False),
        ("top_lists", True),
        ("top_lists", False),
    ]


def test_the_text_and_its_language_are_kept(alice: User) -> None:
    with translation.override("de"):
        top_lists.give(alice, "", NOW)
    event = ConsentEvent.objects.get()
    assert (event.at, event.wording, event.language, event.origin) == (NOW, 1, "de", "page")


def test_an_account_manager_shows_no_text(alice: User) -> None:
    statistics.save(alice, shows_hosts=True, now=NOW, origin=ConsentEvent.Origin.ACCOUNT_MANAGER)
    event = ConsentEvent.objects.get()
    assert (event.wording, event.language, event.origin) == (None, "", "rpc")


def test_a_text_that_people_agreed_to_is_never_changed() -> None:
    """Anyone who changes one adds a wording at the end, and its digest here."""
    digests = {}
    with translation.override("en"):
        for kind in consents.kinds().values():
            for number, wording in enumerate(kind.wordings, 1):
                text = f"{wording.text}\n{wording.details}"
                digests[kind.key, number] = hashlib.sha256(text.encode()).hexdigest()[:12]
    assert digests == {
        ("statistics", 1): "ad11110684c1",
        ("statistics_hosts", 1): "7194765eebb8",
        ("testing", 1): "e02d909e0caf",
        ("top_lists", 1): "346fcc3c992c",
    }


def test_the_database_changes_no_event(alice: User) -> None:
    testers.choose(alice, True, NOW)
    with pytest.raises(DatabaseError, match="never changed"), transaction.atomic():
        ConsentEvent.objects.update(is_given=False)
    assert said(alice) == [("testing", True)]


def test_the_history_is_in_the_copy_of_ones_data_and_nobody_elses(alice: User, bob: User) -> None:
    testers.choose(alice, True, NOW)
    testers.choose(bob, True, NOW)
    (event,) = json.loads(json.dumps(dict(documents(alice))["consents.json"], default=str))
    assert (event["user_id"], event["kind"], event["is_given"], event["wording"]) == (alice.pk, "testing", True, 1)


def test_the_history_goes_with_the_account(alice: User, bob: User) -> None:
    for user in (alice, bob):
        top_lists.give(user, "", NOW)
    User.objects.filter(pk=alice.pk).update(deletion_asked_at=NOW - GRACE)
    erase_due(NOW + GRACE)
    assert list(ConsentEvent.objects.values_list("user", flat=True)) == [bob.pk]


def test_the_page_shows_what_stands_and_what_was(alice: User, bob: User, signed_in: Client) -> None:
    testers.choose(bob, True, NOW)
    page = page_of(signed_in, "/account/consents/")
    assert page.words.count("never given") == 4 and "not given or withdrawn a consent yet" in page.words
    testers.choose(alice, True, NOW)
    testers.choose(alice, False, timezone.now())
    page = page_of(signed_in, "/account/consents/")
    assert page.words.count("never given") == 3 and "version 1 of the text" in page.words
    assert page.words.index("withdrawn") < page.words.rindex("given")
    assert "failed tasks earn no credit" in page.words


def test_operators_filter_by_what_was_agreed_to_in_words(alice: User, bob: User, admin_client: Client) -> None:
    top_lists.give(alice, "", NOW)
    testers.choose(bob, True, NOW)
    page = admin_client.get("/admin/portal/consentevent/?kind=top_lists", headers={"Accept-Language": "de"})
    shown = page.context["cl"]
    assert [event.user for event in shown.result_list] == [alice]
    with translation.override("de"):
        words = [choice["display"] for choice in shown.filter_specs[0].choices(shown)][1:]
        assert words == [str(kind.title) for kind in consents.kinds().values()]
    assert "In Bestenlisten gezeigt werden" in words and set(words).isdisjoint(consents.kinds())
