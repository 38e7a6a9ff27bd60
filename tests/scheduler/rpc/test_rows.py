"""The read of a scheduler request, whose columns are found by their names."""

from __future__ import annotations

import re

import msgspec
import pytest

from portal.clients import sync_driver
from portal.clients.effects import Statement
from portal.models import User
from portal.wire.credentials import key_hash
from scheduler.rpc import sql as rpc_sql
from scheduler.rpc import store
from tests.support.credit_factories import make_app, make_result, make_version, make_workunit
from tests.support.scheduler_clients import Computer, computer_of


@pytest.fixture
def computer(alice: User) -> Computer:
    """A computer with a job and a record."""
    app = make_app()
    make_version(app)
    make_result(make_workunit(app))
    computer = computer_of(alice)
    computer.ask(0, 1)
    return computer


def account(computer: Computer, statement: Statement, monkeypatch: pytest.MonkeyPatch) -> store.Account:
    monkeypatch.setattr(rpc_sql, "read", lambda: statement)
    key = {"key_hash": f"\\x{key_hash(computer.key).hex()}"}
    account = sync_driver.run(store.read(key, computer.hostid, (), (), 0.0, locks=False))
    assert account is not None
    return account


def changed(old: str, new: str) -> Statement:
    text = rpc_sql.read().text.decode().replace("$1", "%(askers)s")
    swapped, nplaces = re.subn(old, new, text)
    assert nplaces == 1
    return Statement(swapped)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (r"SELECT q\.n, u\.id AS user_id,", "SELECT u.id AS user_id, q.n,"),
        (r"SELECT v\.id, v\.app_id,", "SELECT v.app_id, v.id,"),
        (r"SELECT r\.id, r\.name, r\.host_id, r\.workunit_id,", "SELECT r.workunit_id, r.host_id, r.name, r.id,"),
        (r"'fpops_est', w\.fpops_est,\s*'fpops_bound', w\.fpops_bound,",
         "'fpops_bound', w.fpops_bound, 'fpops_est', w.fpops_est,"),
    ],
)  # fmt: skip
def test_the_order_of_columns_does_not_matter(
    computer: Computer, monkeypatch: pytest.MonkeyPatch, old: str, new: str
) -> None:
    before = account(computer, rpc_sql.read(), monkeypatch)
    assert before.records.ids and [result.job is not None for result in before.results.values()] == [True]
    assert account(computer, changed(old, new), monkeypatch) == before


@pytest.mark.parametrize(
    ("old", "new", "field"),
    [
        (r"SELECT q\.n, ", "SELECT q.n, q.n AS added, ", "added"),
        (r"SELECT v\.id, ", "SELECT v.id, v.id AS added, ", "added"),
        (r"SELECT r\.id, r\.name, ", "SELECT r.id, r.id AS added, r.name, ", "added"),
        (r" v\.error_rate,", "", "error_rate"),
        (r" w\.error_mask,", "", "error_mask"),
    ],
)
def test_a_column_too_many_or_too_few_is_an_error_that_names_it(
    computer: Computer, monkeypatch: pytest.MonkeyPatch, old: str, new: str, field: str
) -> None:
    with pytest.raises(msgspec.ValidationError, match=f"`{field}`"):
        account(computer, changed(old, new), monkeypatch)
