"""For any history, every reader says the same before a month is archived, after, and when it is back."""

from __future__ import annotations

import datetime as dt
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.extra.django import TestCase

from accounting.computers.merge import merge
from accounting.ledger.archive import moves
from portal.models import User
from tests.support.accounting_factories import credit, make_host, make_project
from tests.support.archived_books import (
    CREDIT,
    TODAY,
    archive_in,
    everything,
    roll_up,
    sound,
)

_DAYS = st.dates(dt.date(2024, 1, 1), dt.date(2024, 5, 31))
_AMOUNTS = st.tuples(*[st.sampled_from([0, 0, 1, 999_999, 5 * CREDIT, 2**40])] * 6)
_WORK = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 1), _DAYS, _AMOUNTS, st.integers(0, 63)),
    min_size=1,
    max_size=25,
    unique_by=lambda each: each[:3],
)


class AnyHistory(TestCase):
    @given(work=_WORK, part_rows=st.integers(1, 6), merged=st.booleans())
    @hypothesis_settings(max_examples=3)
    def test_every_reader_says_the_same(
        self, work: list[tuple[int, int, dt.date, tuple[int, ...], int]], part_rows: int, merged: bool
    ) -> None:
        folder = self.enterContext(TemporaryDirectory())
        self.enterContext(archive_in(folder))
        self.enterContext(pytest.MonkeyPatch.context()).setattr(moves, "PART_ROWS", part_rows)
        users = [User.objects.create_user(f"{name}@example.org") for name in ("carol", "dan")]
        spans = [("2024-03-02", "2024-06-01"), ("2024-01-01", "2024-03-01")]
        hosts = [make_host(user, "box", *span) for user in users for span in spans]
        projects = [make_project(), make_project()]
        for host, project, day, amounts, flags in work:
            credit(hosts[host], projects[project], day.isoformat(), amounts, flags)
        roll_up()
        before = [everything(user) for user in users]
        list(moves.archive_before(dt.date(2024, 5, 1), TODAY))
        assert [everything(user) for user in users] == before
        assert sound()
        if merged:
            merge(users[0].pk, hosts[0].pk, hosts[1].pk)
            before = [everything(user) for user in users]
            assert sound()
        list(moves.restore_before(dt.date(2024, 5, 1)))
        assert [everything(user) for user in users] == before
        assert sound()
