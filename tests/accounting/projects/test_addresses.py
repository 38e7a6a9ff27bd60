"""The addresses under which a project is known."""

from __future__ import annotations

import pytest
from django.db import IntegrityError, transaction

from accounting.engine.addresses import address_key
from accounting.models import Project, ProjectAddress, UserProject
from accounting.projects.addresses import learn, move, project_at
from accounting.rpc import account_keys
from portal.models import User
from tests.support.accounting_factories import make_project

Source = ProjectAddress.Source
pytestmark = pytest.mark.django_db

OLD = "https://tidewater.example.org/science/"
NEW = "https://new.tidewater.example.org/science/"


@pytest.fixture
def tidewater() -> Project:
    return make_project("Tidewater", master_url=OLD)


def test_a_project_is_there_under_any_spelling_of_any_of_its_addresses(tidewater: Project) -> None:
    learn(tidewater, NEW, Source.CONFIG)
    assert project_at("http://www.tidewater.example.org/science") == tidewater
    assert project_at("http://NEW.tidewater.example.org:80//science/") == tidewater
    assert project_at("https://tidewater.example.org/other/") is None
    assert project_at("") is None


def test_no_two_projects_have_spellings_of_one_address(tidewater: Project) -> None:
    with pytest.raises(IntegrityError), transaction.atomic():
        make_project(master_url="http://www.tidewater.example.org/science/")
    other = make_project(master_url="https://other.example.org/")
    other.master_url = "http://tidewater.example.org/science/"
    with pytest.raises(IntegrityError), transaction.atomic():
        other.save(update_fields=["master_url"])


def test_a_project_that_moves_keeps_its_former_address(tidewater: Project) -> None:
    learn(tidewater, NEW, Source.CLIENTS)
    move(tidewater, NEW)
    assert Project.objects.get().master_url == NEW
    assert list(tidewater.addresses.values_list("url", "source")) == [(OLD, Source.MOVED)]
    move(tidewater, OLD)
    assert list(tidewater.addresses.values_list("url", "source")) == [(NEW, Source.MOVED)]


def test_who_saves_something_else_of_a_project_that_has_moved_meanwhile_takes_nothing_back(
    tidewater: Project, alice: User
) -> None:
    before = Project.objects.get()
    move(tidewater, NEW)
    UserProject.objects.create(user=alice, project=tidewater, account_key=account_keys.seal_own(7, tidewater, "7_own"))
    before.summary = "Tides"
    before.save(update_fields=["summary"])
    after = Project.objects.get()
    assert (after.master_url, after.address_key, after.summary) == (NEW, address_key(NEW), "Tides")
    assert list(tidewater.addresses.values_list("url", flat=True)) == [OLD]
    assert UserProject.objects.exclude(account_key=None).exists()


def test_a_change_of_scheme_alone_leaves_no_other_address(tidewater: Project) -> None:
    move(tidewater, "http://tidewater.example.org/science/")
    assert not ProjectAddress.objects.exists()


def test_an_address_of_another_project_is_not_learnt(tidewater: Project) -> None:
    other = make_project(master_url="https://other.example.org/")
    assert learn(tidewater, "http://www.other.example.org/", Source.CONFIG) is None
    assert learn(tidewater, "http://www.tidewater.example.org/science/", Source.CONFIG) is None
    learn(other, NEW, Source.CONFIG)
    assert learn(tidewater, NEW, Source.OPERATOR) is None
    assert project_at(NEW) == other


def test_an_address_that_computers_reported_is_the_projects_word_once_the_project_names_it(tidewater: Project) -> None:
    learn(tidewater, NEW, Source.CLIENTS)
    assert learn(tidewater, NEW, Source.CLIENTS) is None and project_at(NEW) is None
    learn(tidewater, NEW, Source.CONFIG)
    assert list(tidewater.addresses.values_list("source", flat=True)) == [Source.CONFIG]
    assert project_at(NEW) == tidewater


def test_what_an_operator_refused_is_not_learnt_again(tidewater: Project) -> None:
    learn(tidewater, NEW, Source.CLIENTS)
    ProjectAddress.objects.update(is_active=False)
    assert learn(tidewater, NEW, Source.CLIENTS) is None and learn(tidewater, NEW, Source.CONFIG) is None
    assert project_at(NEW) is None
