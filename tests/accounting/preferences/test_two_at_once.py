"""Two windows of one volunteer remove preferences at the same moment."""

from __future__ import annotations

import pytest
from django.db import transaction

from accounting.preferences.save import forget_set, read_saved, save_set
from portal.models import User
from tests.support.lock_waits import meanwhile


@pytest.mark.django_db(transaction=True)
def test_sets_that_are_removed_at_the_same_moment_are_both_gone(alice: User) -> None:
    for venue in ("home", "work", "school"):
        save_set(alice, venue, {})
    with meanwhile(lambda: forget_set(alice, "work")) as begin:
        with transaction.atomic():
            forget_set(alice, "home")
            second = begin()
        second.result()
    assert list(read_saved(alice)) == ["school"]
