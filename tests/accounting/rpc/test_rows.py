"""The read of the account-manager RPC, whose columns are found by their names."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec
import pytest

from accounting import rpc
from accounting.models import Project
from accounting.rpc import sql as rpc_sql
from accounting.rpc import store
from portal.clients import sync_driver
from portal.clients.effects import Statement
from portal.models import Host, User
from portal.wire.credentials import key_hash
from tests.support.am_rpc import attach, sync

TEXT = Path(rpc.__file__).with_name("read.sql").read_text()


@pytest.fixture
def read(alice: User, projects: list[Project]) -> store.ReadByKey:
    """Of a computer that has projects, for an owner who chose some and has settings."""
    alice.user_projects.create(project=projects[0], is_chosen=True, resource_share=50)
    computer = attach(alice)
    sync(computer)
    return store.ReadByKey(key_hash(computer.authenticator), Host.objects.get().token)


def account(read: store.ReadByKey, text: str, monkeypatch: pytest.MonkeyPatch) -> store.Account:
    monkeypatch.setattr(rpc_sql, "READ", Statement(text))

    async def steps() -> store.Account | None:
        return await read

    found = sync_driver.run(steps())
    assert found is not None
    return found


def reordered(text: str) -> str:
    """The first two columns of each list change places."""
    swapped, nlists = re.subn(r"SELECT ((?:q|p|c|s)\.\w+), ((?:[a-z]\.)\w+(?: AS \w+)?),", r"SELECT \2, \1,", text)
    assert nlists == 4
    return swapped


def test_the_order_of_columns_does_not_matter(read: store.ReadByKey, monkeypatch: pytest.MonkeyPatch) -> None:
    before = account(read, TEXT, monkeypatch)
    assert before.projects and before.choices
    assert account(read, reordered(TEXT), monkeypatch) == before


@pytest.mark.parametrize(
    ("old", "new", "field"),
    [
        ("SELECT q.n, ", "SELECT q.n, q.n AS added, ", "added"),
        ("SELECT p.project_id, ", "SELECT p.project_id, p.host_id AS added, ", "added"),
        ("SELECT c.project_id, ", "SELECT c.project_id, c.user_id AS added, ", "added"),
        ("p.pending, p.dropped, ", "p.pending, ", "dropped"),
        ("c.total_ec, ", "", "total_ec"),
    ],
)
def test_a_column_too_many_or_too_few_is_an_error_that_names_it(
    read: store.ReadByKey, monkeypatch: pytest.MonkeyPatch, old: str, new: str, field: str
) -> None:
    assert TEXT.count(old) == 1
    with pytest.raises(msgspec.ValidationError, match=f"`{field}`"):
        account(read, TEXT.replace(old, new), monkeypatch)
