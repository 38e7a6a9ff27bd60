"""The badges that a new site starts with."""

from __future__ import annotations

import pytest

from extras.badges.models import Badge
from extras.badges.usual import TEXTS, USUAL, make_usual
from portal.languages import supplied

pytestmark = pytest.mark.django_db


def test_a_new_site_begins_with_badges_that_are_off() -> None:
    make_usual()
    make_usual()
    assert Badge.objects.count() == len(USUAL)
    assert not Badge.objects.filter(is_active=True).exists()


def test_an_operators_own_choice_stays() -> None:
    Badge.objects.create(title="Own", kind="tasks", threshold=7)
    make_usual()
    assert list(Badge.objects.values_list("title", flat=True)) == ["Own"]


def test_all_of_their_texts_are_translated() -> None:
    assert set(TEXTS) <= set(supplied.texts())
