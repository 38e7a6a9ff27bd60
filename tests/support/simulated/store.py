"""Tables in memory with transactions and row locks, as far as PostgreSQL's at READ COMMITTED matter to the site.

Each statement sees what is committed when it runs, and what its own transaction wrote. A row that another transaction
has locked is waited for, or skipped. After the wait the statement sees the row as it is then.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import psycopg

Row = dict[str, Any]
Place = tuple[str, Any]
"""A table's name and a row's key."""


class Store:
    """All that is committed; ``serial`` counts row versions."""

    def __init__(self) -> None:
        self.tables: dict[str, dict[Any, Row]] = {}
        self.locks: dict[Place, Transaction] = {}
        # In the order in which they began: a set would have another one at each run.
        self.transactions: dict[Transaction, None] = {}
        self.serial = 0

    def add(self, table: str, key: Any, **row: Any) -> None:
        self.tables.setdefault(table, {})[key] = row

    def end_all(self) -> None:
        """The server has died: what was not committed is lost."""
        for transaction in list(self.transactions):
            transaction.rollback()


class Transaction:
    """Rows are never changed in place: `put` replaces them."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.is_over = False
        self._changes: dict[Place, Row | None] = {}
        self._locks: list[Place] = []
        self._waiters: list[asyncio.Future[None]] = []
        self._waits_for: Transaction | None = None
        self._waiting: asyncio.Future[None] | None = None
        store.transactions[self] = None

    def get(self, table: str, key: Any) -> Row | None:
        if (table, key) in self._changes:
            return self._changes[table, key]
        return self.store.tables.get(table, {}).get(key)

    def rows(self, table: str) -> Iterator[tuple[Any, Row]]:
        """All rows by key."""
        keys = dict.fromkeys(self.store.tables.get(table, ()))
        keys |= dict.fromkeys(key for name, key in self._changes if name == table)
        for key in sorted(keys):
            row = self.get(table, key)
            if row is not None:
                yield key, row

    def put(self, table: str, key: Any, row: Row | None) -> None:
        self._changes[table, key] = row

    def update(self, table: str, key: Any, **columns: Any) -> None:
        self.put(table, key, {**(self.get(table, key) or {}), **columns})

    async def lock(self, table: str, key: Any, *, waits: bool = True) -> bool:
        """Whether the row is locked now; False only if it would have to wait and does not."""
        place = (table, key)
        while (holder := self.store.locks.get(place)) not in (None, self):
            if not waits:
                return False
            await self._wait_for(holder)
        if self.is_over:
            raise psycopg.errors.AdminShutdown("terminated")
        if holder is None:
            self.store.locks[place] = self
            self._locks.append(place)
        return True

    async def _wait_for(self, holder: Transaction | None) -> None:
        assert holder is not None
        other: Transaction | None = holder
        while other is not None:
            if other is self:
                raise psycopg.errors.DeadlockDetected("deadlock detected")
            other = other._waits_for
        self._waits_for, self._waiting = holder, asyncio.get_running_loop().create_future()
        holder._waiters.append(self._waiting)
        try:
            await self._waiting
        finally:
            self._waits_for = self._waiting = None
        if self.is_over:
            raise psycopg.errors.AdminShutdown("terminated")

    def commit(self) -> None:
        if self.is_over:
            raise psycopg.errors.AdminShutdown("terminated")
        for (table, key), row in self._changes.items():
            if row is None:
                self.store.tables.get(table, {}).pop(key, None)
            else:
                self.store.tables.setdefault(table, {})[key] = row
        self._end()

    def rollback(self) -> None:
        if not self.is_over:
            self._end()

    def _end(self) -> None:
        self.is_over = True
        self._changes = {}
        del self.store.transactions[self]
        for place in self._locks:
            del self.store.locks[place]
        for each in [*self._waiters, self._waiting]:
            if each is not None and not each.done():
                each.set_result(None)
