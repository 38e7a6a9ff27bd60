"""Faults that are sown into the site's own code for one run, to see that the simulation finds them."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import pytest


@dataclass(frozen=True)
class Bug:
    """``where``: "module:function" or "module:class.method"; in its source ``old`` becomes ``new``."""

    name: str
    where: str
    old: str
    new: str


@contextmanager
def sown(bug: Bug) -> Iterator[None]:
    module_name, _, path = bug.where.partition(":")
    module = import_module(module_name)
    owner: Any = module
    *classes, name = path.split(".")
    for each in classes:
        owner = getattr(owner, each)
    source = textwrap.dedent(inspect.getsource(getattr(owner, name)))
    assert source.count(bug.old) == 1, f"{bug.where} has changed: {bug.name!r} must be sown again"
    made: dict[str, Any] = {}
    code = compile(f"from __future__ import annotations\n{source.replace(bug.old, bug.new)}", bug.where, "exec")
    exec(code, vars(module), made)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(owner, name, made[name])
        yield


_QUEUE = "portal.clients.database.batching:_QueryQueue"
_BATCHER = "portal.clients.database.batching:Batcher"
BUGS = [
    Bug(
        "a write is confirmed before it is committed",
        f"{_QUEUE}._carry_out",
        "    try:\n        async with asyncio.timeout(BATCH_SECS):",
        "    if hasattr(queries[0], 'settlement'):\n"
        "        [future.set_result(True) for _, future in batch if not future.done()]\n"
        "    try:\n        async with asyncio.timeout(BATCH_SECS):",
    ),
    Bug(
        "a write whose connection was lost is taken for done",
        f"{_QUEUE}._carry_out",
        "outcomes = [(call, RUN_ALONE) for call in batch]",
        "outcomes = [(call, True) for call in batch]",
    ),
    Bug("replies are swapped within a batch", f"{_QUEUE}._carry_out", "(batch, results", "(batch, reversed(results)"),
    Bug(
        "a connection is used again while an answer is on its way",
        f"{_QUEUE}._carry_out",
        " or not connection.is_clean",
        "",
    ),
    Bug(
        "a result is handed to a request that has ended",
        f"{_QUEUE}._carry_out",
        "elif not future.done():",
        "else:",
    ),
    Bug(
        "queries of another kind are forgotten",
        f"{_QUEUE}._take",
        "self._waiting.extendleft(reversed(left))",
        "left.clear()",
    ),
    Bug("a connection is free once only", f"{_QUEUE}._work", "self._nfree += 1", "pass"),
    Bug(
        "who waits for a connection is not told that there is none",
        f"{_QUEUE}._fail",
        "batch.extend(self._waiting)",
        "",
    ),
    Bug(
        "a lost connection is not given back",
        f"{_QUEUE}._connection",
        "await self._pool.putconn(connection.release())",
        "",
    ),
    Bug(
        "a query that fails by itself fails nobody",
        f"{_QUEUE}._again",
        "if not future.done():\n            future.set_exception(error)",
        "pass",
    ),
    Bug("a turn is never over", f"{_BATCHER}.run", "for release in held.values():\n                release()", "pass"),
    Bug(
        "who stops waiting for a turn never ends it",
        f"{_BATCHER}._take_turn",
        "before.add_done_callback(lambda _: release())",
        "pass",
    ),
    Bug(
        "one request's end is that of all who share a result",
        f"{_BATCHER}._share",
        "await asyncio.shield(self._shared[key])",
        "await self._shared[key]",
    ),
    Bug("a shared result is kept for ever", f"{_BATCHER}._forget_shared", "del self._shared[key]", "pass"),
    Bug(
        "a lost transaction is done again from its middle",
        f"{_BATCHER}._transaction",
        "lambda: not has_begun",
        "lambda: True",
    ),
    Bug("a call counts for ever", f"{_BATCHER}._call", "self._calls.release()", "None"),
    Bug("a body's memory is never free", "portal.clients.bodies:Body.__exit__", "self._count(-self._nkept)", "pass"),
    Bug(
        "requests under way are not counted down",
        "portal.clients.application:ClientApplication._answer",
        "self._nunder_way -= 1",
        "pass",
    ),
    Bug(
        "a report is confirmed though another request came between",
        "accounting.rpc.answer:_settle_and_write",
        "return reply if written else None",
        "return reply",
    ),
    Bug(
        "the computer is not read again after another request came between",
        "accounting.rpc.answer:_answer_known",
        "    for _ in range(MAX_ATTEMPTS):\n        account = await read\n",
        "    account = await read\n    for _ in range(MAX_ATTEMPTS):\n",
    ),
    Bug(
        "a write that was left out is taken for done",
        "accounting.rpc.writes:Write.results",
        "contact.account.host_id in written or RUN_ALONE",
        "True",
    ),
    Bug(
        "rows are taken in the order in which the database returns them",
        "accounting.rpc.store:ReadByKey.results",
        "accounts[row.n - 1] = _account(row, several[row.n - 1].key_hash)",
        "accounts[accounts.index(None)] = _account(row, several[row.n - 1].key_hash)",
    ),
    Bug(
        "rows are written with another one's day",
        "accounting.rpc.writes:_day_params",
        "hosts.append(contact.account.host_id)",
        "hosts.append(several[0].account.host_id)",
    ),
    Bug(
        "a job is told to a computer though its row could not be had",
        "scheduler.rpc.writes:WriteQuery.results",
        "written.get(query.host_id)",
        "written.get(query.host_id) or WrittenRow(query.host_id, {job['id']: "
        "f\"work{job['workunit_id']}_{job['id'] - 5000}\" for job in query.rows.get('sent', ())}, False)",
    ),
    Bug(
        "a reported job is acknowledged and not stored",
        "scheduler.rpc.answer:_take_reports",
        "await store.report(host.id, rows, claimed, extended, account.jobs_of_day, now)",
        "(set(), account.records)",
    ),
    Bug(
        "jobs that were taken stay taken",
        "scheduler.rpc.answer:answer",
        "finally:\n            taken.release()",
        "finally:\n            pass",
    ),
    Bug(
        "rows of a batch of requests for work are mixed up",
        "scheduler.rpc.store:ReadQuery.results",
        "by_number.get(number) for number in range(len(several))",
        "by_number.get(number) for number in reversed(range(len(several)))",
    ),
]  # fmt: skip
