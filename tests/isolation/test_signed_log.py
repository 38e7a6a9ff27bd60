"""Two operators change projects at once, in many orders of the statements: each change gets its entry."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from accounting.models import Project, ProjectAddress
from accounting.projects import addresses
from portal.audit import signed_log
from portal.models import SignedEntry
from tests.support.accounting_factories import make_project
from tests.support.interleavings import MOST, Scene, try_all

pytestmark = pytest.mark.django_db(transaction=True)
numbers = itertools.count(1)


def two_projects() -> tuple[Project, Project, str]:
    """The second one was at an address earlier."""
    number = next(numbers)
    first, second = (make_project(name=f"{name} {number}", master_url=f"https://{name}{number}.example.org/")
                     for name in ("first", "second"))  # fmt: skip
    url = f"https://earlier{number}.example.org/"
    ProjectAddress.objects.create(project=second, url=url, source=ProjectAddress.Source.MOVED)
    return first, second, url


def addresses_of(project: Project) -> list[str]:
    rows = SignedEntry.objects.filter(content__row=f"project {project.pk}").order_by("number")
    return [entry.content["master_url"]["after"] for entry in rows]


@pytest.mark.parametrize("is_one_by_one", [True, False])
def test_one_gets_an_address_of_another_that_is_deleted(is_one_by_one: bool) -> None:
    def make() -> Scene:
        first, second, url = two_projects()

        def delete() -> None:
            if is_one_by_one:
                Project.objects.get(pk=second.pk).delete()
            else:
                Project.objects.filter(pk=second.pk).delete()

        def check(_: list[Any]) -> None:
            assert addresses_of(first)[-1] == url and addresses_of(second)[-1] == ""
            assert list(signed_log.differences()) == []

        return Scene([lambda: addresses.move(Project.objects.get(pk=first.pk), url), delete], check)

    # The first one has to be past its entry, and the second before its own.
    try_all(make, max(MOST, 12))
