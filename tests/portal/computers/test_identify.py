"""The rules by which the record of a computer is found, one by one."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from typing import Any

import pytest
from django.db import DatabaseError, transaction
from django.test import Client
from django.urls import reverse
from django.utils import timezone
from pytest_django import Settings

from portal.computers.identify import SAME_NAME_AFTER, HostDescription, identify
from portal.models import Host, User
from portal.wire.scanner import ProtocolError

NOW = dt.datetime(2026, 3, 1, 12, tzinfo=dt.UTC)
SECOND = dt.timedelta(seconds=1)
STUDIO = HostDescription(
    token=None,
    host_cpid="a" * 32,
    domain_name="studio",
    os_name="Linux Debian",
    p_vendor="GenuineIntel",
    p_model="Core i5",
)


def seen(user: User, what: HostDescription = STUDIO, now: dt.datetime = NOW) -> Host:
    with transaction.atomic():
        return identify(user.pk, what, now)[0]


def test_an_unknown_computer_gets_a_record_of_what_it_says(alice: User) -> None:
    with transaction.atomic():
        host, is_new = identify(alice.pk, STUDIO, NOW)
    assert is_new
    host.refresh_from_db()
    assert (host.owner, host.domain_name, host.host_cpid) == (alice, "studio", "a" * 32)
    assert (host.os_name, host.p_vendor, host.p_model) == ("Linux Debian", "GenuineIntel", "Core i5")
    assert host.created_at == host.last_contact_at == NOW
    assert len(host.token) == 32


def test_the_token_decides_whatever_else_changed(alice: User) -> None:
    host = seen(alice)
    everything_else = HostDescription(host.token, "b" * 32, "renamed", "Microsoft Windows 11", "AuthenticAMD", "Ryzen")
    assert seen(alice, everything_else) == host


@pytest.mark.parametrize(
    "changed",
    [
        {},
        {"domain_name": ""},
        {"host_cpid": ""},
        {"token": "f" * 32},
    ],
)
def test_without_token_the_same_machine_with_the_same_id_or_name_is_known(changed: dict[str, Any], alice: User) -> None:
    host = seen(alice)
    assert seen(alice, replace(STUDIO, **changed)) == host


@pytest.mark.parametrize(
    "changed",
    [
        {"domain_name": "cellar"},
        {"domain_name": "cellar", "host_cpid": "b" * 32},
        {"os_name": "Microsoft Windows 11"},
        {"p_vendor": "AuthenticAMD"},
        {"p_model": "Core i7"},
        {"os_name": ""},
        {"p_model": ""},
        {"domain_name": "", "host_cpid": ""},
    ],
)
def test_another_machine_is_new_though_it_may_share_the_id_or_the_name(changed: dict[str, Any], alice: User) -> None:
    host = seen(alice)
    assert seen(alice, replace(STUDIO, **changed)) != host


@pytest.mark.parametrize(
    ("silent", "is_known"), [(SAME_NAME_AFTER, False), (SAME_NAME_AFTER + SECOND, True)], ids=["recent", "silent"]
)
@pytest.mark.parametrize("other", [{"host_cpid": "b" * 32}, {"domain_name": "renamed"}], ids=["name", "id"])
def test_a_name_or_an_id_alone_is_enough_only_if_the_record_is_silent(
    other: dict[str, Any], silent: dt.timedelta, is_known: bool, alice: User
) -> None:
    host = seen(alice)
    assert (seen(alice, replace(STUDIO, **other), NOW + silent) == host) is is_known


def test_two_computers_that_share_an_id_and_nothing_else_stay_two(alice: User) -> None:
    laptop = replace(STUDIO, domain_name="laptop", os_name="Microsoft Windows 11", p_model="Core i7")
    studio, other = seen(alice), seen(alice, laptop)
    assert studio != other
    assert (seen(alice), seen(alice, laptop)) == (studio, other)


def test_names_and_ids_that_are_empty_make_nobody_alike(alice: User) -> None:
    nameless = replace(STUDIO, domain_name="", host_cpid="")
    assert seen(alice, nameless) != seen(alice, nameless)


def test_the_closest_likeness_wins_before_the_newest(alice: User) -> None:
    both, same_id, same_name = (
        Host.objects.create(
            owner=alice,
            domain_name=name,
            host_cpid=cpid,
            os_name=STUDIO.os_name,
            p_vendor=STUDIO.p_vendor,
            p_model=STUDIO.p_model,
            last_contact_at=NOW + dt.timedelta(days=day),
        )
        for day, (name, cpid) in enumerate([("studio", "a" * 32), ("other", "a" * 32), ("studio", "c" * 32)])
    )
    # By its id or its name alone, each is known once its record is silent.
    now = same_name.last_contact_at + SAME_NAME_AFTER + SECOND
    assert seen(alice, now=now) == both
    both.delete()
    assert seen(alice, now=now) == same_id
    same_id.delete()
    assert seen(alice, now=now) == same_name


def test_among_equals_the_one_that_was_here_last_is_meant(alice: User) -> None:
    hosts = [
        Host.objects.create(
            owner=alice,
            domain_name="studio",
            host_cpid=STUDIO.host_cpid,
            os_name=STUDIO.os_name,
            p_vendor=STUDIO.p_vendor,
            p_model=STUDIO.p_model,
            last_contact_at=NOW + dt.timedelta(days=days),
        )
        for days in (1, 3, 2)
    ]
    assert seen(alice) == hosts[1]


def test_another_owners_computer_is_never_meant(alice: User, bob: User) -> None:
    hers = seen(alice)
    assert seen(bob, replace(STUDIO, token=hers.token)).owner == bob
    assert seen(bob).owner == bob
    assert Host.objects.filter(owner=alice).count() == Host.objects.filter(owner=bob).count() == 1


def test_a_merged_record_leads_to_the_one_in_use(alice: User) -> None:
    first = seen(alice)
    second, third = (
        Host.objects.create(owner=alice, domain_name=name, os_name="x", p_model="y") for name in ("second", "third")
    )
    Host.objects.filter(pk=first.pk).update(merged_into=second)
    assert seen(alice, replace(STUDIO, token=first.token)) == second
    Host.objects.filter(pk=second.pk).update(merged_into=third)
    assert seen(alice, replace(STUDIO, token=first.token)) == third
    # By its looks a merged record is not found: it is not in use.
    assert seen(alice) not in (first, second, third)


def test_a_retired_computer_is_known_again(alice: User) -> None:
    host = seen(alice)
    Host.objects.filter(pk=host.pk).update(retired_at=timezone.now())
    assert seen(alice) == host
    assert seen(alice, replace(STUDIO, token=host.token)) == host


@pytest.mark.django_db(transaction=True)
def test_outside_a_transaction_it_does_not_work(alice: User) -> None:
    with pytest.raises(RuntimeError, match="transaction"):
        identify(alice.pk, STUDIO, NOW)
    assert not Host.objects.exists()


def test_an_account_has_a_limited_number_of_computers(alice: User, settings: Settings) -> None:
    settings.HOSTS_PER_ACCOUNT = 2
    nameless = HostDescription(None, "", "", "", "", "")
    for _ in range(2):
        seen(alice, nameless)
    with pytest.raises(ProtocolError, match="This account has 2 computers, which is the limit"):
        seen(alice, nameless)
    assert alice.hosts.count() == 2


def nameless(user: User, number: int, hours: float) -> Host:
    """Another computer of the user, this many hours after NOW."""
    return seen(user, replace(STUDIO, host_cpid=f"{number:032x}", domain_name=""), NOW + dt.timedelta(hours=hours))


def test_an_account_adds_a_limited_number_of_computers_a_day(alice: User, bob: User, settings: Settings) -> None:
    settings.NEW_HOSTS_PER_DAY = 2
    first, _ = [nameless(alice, number, hours=number) for number in (1, 2)]
    with pytest.raises(
        ProtocolError,
        match=r"has added 2 of the 2 computers that it may add within a day.* from 2026-03-02 13:00 UTC on",
    ):
        nameless(alice, 3, hours=3)
    # Who is known is known; others have a limit of their own.
    assert nameless(alice, 1, hours=3) == first
    nameless(bob, 3, hours=3)
    # 24 hours after the first one there is room for another.
    with pytest.raises(ProtocolError):
        nameless(alice, 3, hours=24.9)
    nameless(alice, 3, hours=25.1)
    with pytest.raises(ProtocolError, match="2026-03-02 14:00"):
        nameless(alice, 4, hours=25.2)


def test_an_operator_gives_a_laboratory_a_limit_of_its_own(desk: Client, alice: User) -> None:
    address = reverse("admin:portal_user_change", args=[alice.pk])
    form = {"email": alice.email, "name": alice.name, "is_active": "on", "new_hosts_per_day": "40"}
    assert desk.post(address, form).status_code == 302
    for number in range(40):
        nameless(alice, number, hours=0)
    with pytest.raises(ProtocolError, match="has added 40 of the 40 computers"):
        nameless(alice, 40, hours=0)


def test_an_account_may_be_kept_from_adding_computers(alice: User) -> None:
    User.objects.filter(pk=alice.pk).update(new_hosts_per_day=0)
    with pytest.raises(ProtocolError, match="may add no computers"):
        nameless(alice, 1, hours=0)


def test_a_computer_never_gets_another_owner(studio: Host, bob: User) -> None:
    with pytest.raises(DatabaseError, match="the owner of a computer never changes"), transaction.atomic():
        Host.objects.filter(pk=studio.pk).update(owner=bob)
    studio.domain_name = "renamed"
    studio.save()
