"""A volunteer chooses projects and shares."""

from __future__ import annotations

import pytest
from django.utils import timezone

from accounting.choosing.choices import ChoiceRefused, choose_projects
from accounting.choosing.reads import read_selection
from accounting.engine.choice.facts import Computer
from accounting.models import Project, UserProject
from portal.models import User
from tests.support.accounting_factories import make_project


@pytest.fixture
def three(db: None) -> list[Project]:
    key = "k" * 32
    return [
        make_project("Alps", account_key=key),
        make_project("Bees", account_key=key),
        make_project("Comets", account_key=key, default_share=40),
    ]


def shares_of(user: User) -> dict[str, float]:
    """What a computer of the user's would be told now."""
    selection = read_selection(user)
    shares = selection.choice_for(Computer(7), timezone.now()).shares
    return {selection.projects[pk].name: share for pk, share in shares.items()}


def test_without_a_choice_all_active_projects_at_their_default(alice: User, three: list[Project]) -> None:
    assert shares_of(alice) == {"Alps": 100, "Bees": 100, "Comets": 40}


def test_a_choice_with_shares_holds(alice: User, three: list[Project]) -> None:
    choose_projects(alice, {three[0].pk: 62.5, three[2].pk: None})
    assert shares_of(alice) == {"Alps": 62.5, "Comets": 40}


def test_an_empty_choice_goes_back_to_all(alice: User, three: list[Project]) -> None:
    choose_projects(alice, {three[0].pk: 62.5})
    choose_projects(alice, {})
    assert shares_of(alice) == {"Alps": 100, "Bees": 100, "Comets": 40}


def test_a_new_choice_replaces_the_old_one_and_keeps_account_and_totals(alice: User, three: list[Project]) -> None:
    UserProject.objects.create(user=alice, project=three[0], account_key=b"secret", total_ec=77, avg_ec=1.5)
    choose_projects(alice, {three[0].pk: 5})
    choose_projects(alice, {three[1].pk: 5})
    choose_projects(alice, {three[1].pk: 6})
    row = UserProject.objects.get(user=alice, project=three[0])
    assert (row.is_chosen, bytes(row.account_key or b""), row.total_ec, row.avg_ec) == (False, b"secret", 77, 1.5)
    assert shares_of(alice) == {"Bees": 6}


def test_a_share_of_nothing_and_the_largest_one_are_fine(alice: User, three: list[Project]) -> None:
    choose_projects(alice, {three[0].pk: 0, three[1].pk: 1e6})
    assert shares_of(alice) == {"Alps": 0, "Bees": 1e6}


@pytest.mark.parametrize("share", [-0.001, 1e6 + 1, 1e304, float("inf"), float("nan"), -float("inf")])
def test_a_share_out_of_range_is_refused_and_the_old_choice_stays(
    alice: User, three: list[Project], share: float
) -> None:
    choose_projects(alice, {three[1].pk: 7})
    with pytest.raises(ChoiceRefused, match="from 0 to 1\u202f000\u202f000") as refused:
        choose_projects(alice, {three[1].pk: 8, three[0].pk: share})
    assert refused.value.project_id == three[0].pk
    assert shares_of(alice) == {"Bees": 7}


def test_a_project_that_ended_or_never_was_is_refused(alice: User, three: list[Project]) -> None:
    Project.objects.filter(pk=three[0].pk).update(is_active=False)
    with pytest.raises(ChoiceRefused, match="no longer accepts computers"):
        choose_projects(alice, {three[0].pk: 1})
    with pytest.raises(ChoiceRefused):
        choose_projects(alice, {10**12: 1})
    assert not UserProject.objects.exists()


def test_the_choice_of_a_project_that_pauses_is_kept(alice: User, three: list[Project]) -> None:
    choose_projects(alice, {three[0].pk: 3, three[1].pk: 4})
    Project.objects.filter(pk=three[0].pk).update(is_active=False)
    choose_projects(alice, {three[2].pk: 5})
    Project.objects.filter(pk=three[0].pk).update(is_active=True)
    assert shares_of(alice) == {"Alps": 3, "Comets": 5}


def test_one_persons_choice_is_nobody_elses(alice: User, bob: User, three: list[Project]) -> None:
    choose_projects(alice, {three[0].pk: 3})
    assert shares_of(bob) == {"Alps": 100, "Bees": 100, "Comets": 40}
