"""The owner's view of two computers that reported as one."""

from __future__ import annotations

import datetime as dt
import time

import pytest
from django.test import Client
from django.utils import timezone

from accounting.computers.attention import Concern, read_attention
from accounting.models import HostClient, Project
from accounting.rpc.recognise import split
from portal.models import Host, User
from tests.support.am_rpc import attach, copy_of, host_of, hours_pass, post, sync
from tests.support.page_reader import Page, page_of

pytestmark = pytest.mark.django_db


def test_the_owner_splits_a_wrong_join_on_the_page(client: Client, alice: User, projects: list[Project]) -> None:
    one = attach(alice, "node")
    other = copy_of(one, cpid="f" * 32)
    hours_pass(one, 1)
    sync(other)
    record = host_of(one)
    client.force_login(alice)
    assert "Split off" in page_of(client, f"/computers/{record.pk}/").words
    answer = client.post(f"/computers/{record.pk}/split/", {"cpid": one.cpid}, follow=True)
    words = Page(answer.content.decode()).words
    assert "gets its own page at its next sync" in words
    assert "It gets its own page at its next sync" in words
    sync(one)
    assert host_of(one) != record == host_of(other)
    assert f'href="/computers/{host_of(one).pk}/"' in client.get(f"/computers/{record.pk}/").content.decode()
    refused = client.post(f"/computers/{record.pk}/split/", {"cpid": one.cpid}, follow=True)
    assert "Nothing was changed" in Page(refused.content.decode()).words


def test_a_computer_with_the_same_id_is_shown_by_its_number_at_a_project(
    client: Client, alice: User, projects: list[Project]
) -> None:
    alpha = projects[0]
    one = attach(alice, "node")
    hours_pass(one, 1)
    sync(one)
    one.projects[alpha.master_url].hostid = 12
    hours_pass(one, 1)
    sync(one)
    record = host_of(one)
    client.force_login(alice)
    page = client.get(f"/computers/{record.pk}/").content.decode()
    # The present one is not offered, only the one before.
    assert f"Computer 1 at {alpha.name}" in Page(page).words
    assert page.count("Split off") == 1
    (other,) = HostClient.objects.all()
    client.post(f"/computers/{record.pk}/split/", {"cpid": other.cpid})
    page = client.get(f"/computers/{record.pk}/").content.decode()
    assert "This computer was two computers reporting as one." in Page(page).words
    one.projects[alpha.master_url].hostid = 1
    hours_pass(one, 1)
    sync(one)
    assert host_of(one) != record


def test_a_strange_id_of_a_client_does_the_page_no_harm(client: Client, alice: User, projects: list[Project]) -> None:
    one = attach(alice, "node", cpid="a 1 b 99999999999999999999")
    one.cpid = "f" * 32
    sync(one)
    client.force_login(alice)
    page = client.get(f"/computers/{host_of(one).pk}/")
    assert "Cross-project id a 1 b" in Page(page.content.decode()).words


def test_the_present_client_is_not_split_off_from_itself(alice: User, projects: list[Project]) -> None:
    alpha = projects[0]
    one = attach(alice, "node")
    hours_pass(one, 1)
    sync(one)
    for number in (12, 1):
        one.projects[alpha.master_url].hostid = number
        hours_pass(one, 1)
        sync(one)
    present = HostClient.objects.get(told_apart_at=None)
    assert present.cpid.endswith(" 1")
    assert not split(alice.pk, present.host_id, present.cpid, timezone.now())


def test_nobody_splits_somebody_elses_computer(client: Client, alice: User, bob: User, projects: list[Project]) -> None:
    one = attach(alice, "node")
    sync(copy_of(one, cpid="f" * 32))
    client.force_login(bob)
    assert client.post(f"/computers/{host_of(one).pk}/split/", {"cpid": one.cpid}).status_code == 404
    assert not HostClient.objects.filter(told_apart_at__isnull=False).exists()


def test_home_tells_of_two_computers_that_reported_as_one(client: Client, alice: User, projects: list[Project]) -> None:
    one = attach(alice, "node")
    other = copy_of(one, cpid="f" * 32)
    for each in (other, one):
        hours_pass(one, 1)
        sync(each)
    hosts = list(Host.objects.filter(owner=alice))
    (line,) = [
        line
        for line in read_attention(alice, hosts, timezone.now(), dt.timedelta(days=7))
        if line.concern is Concern.SEVERAL
    ]
    assert line.host_id == host_of(one).pk
    client.force_login(alice)
    assert "was two computers reporting as one" in page_of(client, "/home/").words


def test_the_advice_for_a_client_that_cannot_log_in_any_more_works(alice: User, projects: list[Project]) -> None:
    """“Stop using” and attach again, as the refusal says: the same record goes on."""
    one = attach(alice, "node")
    record = host_of(one)
    one.authenticator = "f" * 32
    assert "add it again" in post(one.request(time.time())).error[1]
    one.authenticator = one.opaque = one.previous_cpid = ""
    sync(one)
    assert host_of(one) == record
