"""The owner of a computer says what it should do with each project, and which processors no project may use."""

from __future__ import annotations

import pytest

from accounting.choosing.choices import ChoiceRefused
from accounting.computers.wishes import exclude_types, save_wishes
from accounting.engine.host_wishes import HostWishes
from accounting.models import HostProject, Project
from portal.models import Host, User
from tests.support.accounting_factories import make_host, make_project


@pytest.fixture
def three(db: None) -> list[Project]:
    return [make_project("Alps"), make_project("Bees"), make_project("Comets")]


def test_wishes_are_kept_and_taken_back(alice: User, three: list[Project]) -> None:
    host = make_host(alice, "pc")
    wish = HostWishes(suspended=True, no_new_work=True, excluded=False, no_rsc=("CPU",), update_asked=True)
    save_wishes(host, {three[0].pk: wish, three[1].pk: HostWishes()})
    row = HostProject.objects.get(host=host)  # a project without a wish needs no row
    assert (row.project, row.suspended, row.no_new_work, row.excluded) == (three[0], True, True, False)
    assert (row.no_rsc, row.update_asked) == (["CPU"], True)
    save_wishes(host, {three[0].pk: HostWishes(excluded=True)})
    row = HostProject.objects.get(host=host)
    assert (row.suspended, row.excluded, row.no_rsc, row.update_asked) == (False, True, [], False)


def test_wishes_leave_the_ledger_alone(alice: User, three: list[Project]) -> None:
    host = make_host(alice, "pc")
    ledger = {
        "reported": [9] * 6,
        "earlier": [[8] * 6],
        "restart": [0] * 6,
        "handed": [7] * 6,
        "credited": [6] * 6,
        "pending": [5] * 6,
        "dropped": [4] * 6,
        "listed": True,
        "state": {"no_work": ["CPU"]},
    }
    HostProject.objects.create(host=host, project=three[0], **ledger)
    save_wishes(host, {three[0].pk: HostWishes(suspended=True)})
    assert HostProject.objects.values(*ledger).get() == ledger


def test_wishes_that_cannot_be_are_refused_as_a_whole(alice: User, three: list[Project]) -> None:
    host = make_host(alice, "pc")
    for bad in (("",), ("x" * 65,), ("a\nb",), ("<x>",), ("CPU",) * 17):
        with pytest.raises(ChoiceRefused):
            save_wishes(host, {three[0].pk: HostWishes(suspended=True), three[1].pk: HostWishes(no_rsc=bad)})
    with pytest.raises(ChoiceRefused, match="no such project"):
        save_wishes(host, {three[0].pk: HostWishes(suspended=True), 10**12: HostWishes(suspended=True)})
    assert not HostProject.objects.exists()


def test_a_merged_record_takes_no_wishes(alice: User, three: list[Project], studio: Host) -> None:
    host = make_host(alice, "pc")
    Host.objects.filter(pk=host.pk).update(merged_into=studio)
    with pytest.raises(ChoiceRefused, match="merged"):
        save_wishes(host, {three[0].pk: HostWishes(suspended=True)})
    assert not HostProject.objects.exists()


def test_an_excluded_type_with_an_odd_name_is_refused(studio: Host) -> None:
    for bad in (("<x>",), ("",), ("x" * 65,), ("CPU",) * 17):
        with pytest.raises(ChoiceRefused):
            exclude_types(studio, bad)
