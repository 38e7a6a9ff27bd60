"""Changes that an owner makes to a computer: name, venue, retirement."""

from __future__ import annotations

import datetime as dt

import pytest

from portal.computers.host_changes import HostChangeRefused, rename_host, retire_host, set_venue, unretire_host
from portal.models import Host

NOW = dt.datetime(2026, 11, 21, 12, 0, tzinfo=dt.UTC)


def test_a_given_name_comes_before_the_reported_one(studio: Host) -> None:
    assert rename_host(studio, "  Studio \t tower ") == "Studio tower"
    assert Host.objects.get(pk=studio.pk).name == "Studio tower"


def test_an_empty_name_goes_back_to_the_reported_one(studio: Host) -> None:
    rename_host(studio, "Tower")
    rename_host(studio, "   ")
    assert Host.objects.get(pk=studio.pk).name == "studio"


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("x" * 101, "101 characters"),
        ("a\0b", "invisible"),
        ("safe\u202egnp.exe", "invisible"),  # turns the text after it round
        ("zero\u200bwidth", "invisible"),
        ("\ud800", "invisible"),
    ],
)
def test_a_name_that_cannot_be_is_refused_and_nothing_changes(studio: Host, name: str, says: str) -> None:
    with pytest.raises(HostChangeRefused, match=says) as refused:
        rename_host(studio, name)
    assert refused.value.field == "name"
    assert Host.objects.get(pk=studio.pk).given_name == ""


def test_a_name_of_a_hundred_characters_of_any_script_fits(studio: Host) -> None:
    assert rename_host(studio, "書" * 100) == "書" * 100
    assert Host.objects.get(pk=studio.pk).given_name == "書" * 100


def test_a_change_leaves_alone_what_a_report_wrote_meanwhile(studio: Host) -> None:
    Host.objects.filter(pk=studio.pk).update(ncpus=16)  # the page was loaded before: studio still says 4
    rename_host(studio, "Tower")
    set_venue(studio, "work")
    retire_host(studio, NOW)
    assert Host.objects.get(pk=studio.pk).ncpus == 16


def test_a_venue_is_one_of_boincs(studio: Host) -> None:
    set_venue(studio, "school")
    assert Host.objects.get(pk=studio.pk).venue == "school"
    with pytest.raises(HostChangeRefused, match="default, home, work, school"):
        set_venue(studio, "attic")
    assert Host.objects.get(pk=studio.pk).venue == "school"


def test_retiring_keeps_the_first_moment_and_can_be_taken_back(studio: Host) -> None:
    assert retire_host(studio, NOW)
    assert not retire_host(studio, NOW + dt.timedelta(days=1))
    assert Host.objects.get(pk=studio.pk).retired_at == NOW
    assert unretire_host(studio)
    assert not unretire_host(studio)
    assert Host.objects.get(pk=studio.pk).retired_at is None
