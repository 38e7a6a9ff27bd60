"""Queries for tests of the event loop, and ways to run use cases on it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

from django.db import close_old_connections

from portal.clients.database.batching import Batcher
from portal.clients.effects import (
    RUN_ALONE,
    Query,
    Row,
    Statement,
    Step,
    Steps,
    Transaction,
)
from portal.clients.factory import connection_params

PATIENCE_SECS = 20
Result = TypeVar("Result")
ADD = Statement("SELECT n, n + 1, count(*) OVER () FROM unnest(%(numbers)s::integer[]) n")
INVERT = Statement("SELECT n, 12 / n, count(*) OVER () FROM unnest(%(numbers)s::integer[]) n")
NPREPARED = Statement(
    "SELECT n, (SELECT count(*) FROM pg_prepared_statements WHERE statement LIKE '%pg_prepared%'), 1"
    " FROM unnest(%(numbers)s::integer[]) n"
)
RENAME = Statement("UPDATE portal_user SET name = %(name)s::text WHERE id = %(id)s::bigint RETURNING name")


@dataclass(frozen=True, slots=True, eq=False)
class Calculate(Query[Any]):
    """For a number: the result, and how many were in its batch. A number that is left out is done by itself."""

    number: int
    statement: Statement = ADD
    whose: Hashable = None
    slow: bool = False
    left_out: bool = False
    is_write: ClassVar[bool] = False

    @property
    def kind(self) -> Hashable:
        return self.statement

    @property
    def owner(self) -> Hashable:
        return self.whose

    @property
    def is_slow(self) -> bool:
        return self.slow

    @staticmethod
    def steps(several: Sequence[Calculate], *, alone: bool) -> Sequence[Step]:
        return [Step(several[0].statement, {"numbers": [each.number for each in several]})]

    @staticmethod
    def results(several: Sequence[Calculate], rows: Sequence[Row]) -> Sequence[Any]:
        by_number = {number: (result, nbatch) for number, result, nbatch in rows}
        return [
            RUN_ALONE if each.left_out and len(several) > 1 else by_number.get(each.number, RUN_ALONE)
            for each in several
        ]


class Rename(Calculate):
    """Renames the user with this id."""

    is_write: ClassVar[bool] = True

    @staticmethod
    def steps(several: Sequence[Calculate], *, alone: bool) -> Sequence[Step]:
        (rename,) = several
        return [Step(RENAME, {"id": rename.number, "name": "renamed"})]

    @staticmethod
    def results(several: Sequence[Calculate], rows: Sequence[Row]) -> Sequence[Any]:
        return [name for (name,) in rows] or [RUN_ALONE]


async def once(want: Any) -> Any:
    return await want


def on_loop(work: Callable[[Batcher], Awaitable[Result]]) -> Result:
    async def run() -> Result:
        made = Batcher(connection_params(), close_old_connections)
        try:
            return await work(made)
        finally:
            await made.close()

    return asyncio.run(run())


def all_at_once(*steps: Steps[Any]) -> list[Any]:
    """What each returns, or the exception that it raises."""
    return on_loop(lambda made: asyncio.gather(*map(made.run, steps), return_exceptions=True))


async def in_transaction(steps: Steps[Any]) -> Any:
    return await Transaction(steps)
