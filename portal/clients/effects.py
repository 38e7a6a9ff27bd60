"""Effects that a use case for clients can await; it gets their results.

A use case is a coroutine, and awaits nothing but these, so it needs neither threads nor a loop. Two drivers run it by
`send`: `portal.clients.database.batching` on the event loop, which sends the queries of several requests as one
statement, and `portal.clients.sync_driver`, which does each thing at once. Pure.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Generator, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Generic, NamedTuple, TypeVar

Value = TypeVar("Value")
Params = Mapping[str, Any]
Row = tuple[Any, ...]
Steps = Coroutine[Any, Any, Value]
"""A use case, or a part of one, that returns a value."""
_PARAMETER: Final = re.compile(r"%\((\w+)\)s")


class Statement:
    """SQL with parameters ``%(name)s``, cast where their type is not obvious; prepared once per connection.

    ``text``: the same with PostgreSQL's own $1, $2, …, so the statement is parsed once in Python. ``names``: the
    parameters in that order.
    """

    __slots__ = ("names", "text")

    def __init__(self, sql: str) -> None:
        self.names: Final = tuple(dict.fromkeys(_PARAMETER.findall(sql)))
        places = {name: f"${number}" for number, name in enumerate(self.names, 1)}
        self.text: Final = _PARAMETER.sub(lambda match: places[match[1]], sql).encode()

    def values(self, params: Params) -> list[Any]:
        """The parameters in the statement's order."""
        return [params[name] for name in self.names]


class Step(NamedTuple):
    """A statement and its values."""

    statement: Statement
    params: Params


class Then(NamedTuple):
    """A statement whose values are made of the rows of the step before it, in the same transaction."""

    statement: Statement
    params_of: Callable[[Sequence[Row]], Params]

    def step(self, rows: Sequence[Row]) -> Step:
        return Step(self.statement, self.params_of(rows))


class Busy(Exception):
    """Too many requests are waiting: the client is told to try again later."""


class Effect(Generic[Value]):
    """Something that a use case awaits: a driver receives it, and sends its result."""

    __slots__ = ()

    def __await__(self) -> Generator[Effect[Value], Value, Value]:
        return (yield self)


class _RunAlone:
    """See `RUN_ALONE`."""


RUN_ALONE: Final = _RunAlone()
"""The result of a query that the batch could not do, for instance because others hold its rows. It is run alone.
If that fails too, the use case is sent None."""


class Query(Effect[Value], ABC):
    """One request's read or write, and its result; queries of one kind are carried out together, in one transaction.

    ``is_write``: whether it goes to the connections for writes.
    """

    is_write: ClassVar[bool]

    @property
    @abstractmethod
    def kind(self) -> Hashable:
        """Queries with the same kind fit into one batch."""

    @property
    def owner(self) -> Hashable:
        """A batch has at most one query of each owner; None: any number."""
        return None

    @property
    def is_slow(self) -> bool:
        """Whether it may take long or wait for a lock: then it is run alone, and no other query waits for it."""
        return False

    @staticmethod
    @abstractmethod
    def steps(several: Sequence[Any], *, alone: bool) -> Sequence[Step | Then]:
        """The statements of a batch, all of one kind. ``alone``: of a single query, which may wait for locks."""

    @staticmethod
    @abstractmethod
    def results(several: Sequence[Any], rows: Sequence[Row]) -> Sequence[Any]:
        """The result of each query of the batch, in order, from the last statement's rows, or `RUN_ALONE`."""


@dataclass(frozen=True, slots=True)
class Fetch(Effect[Sequence[Row]]):
    """The rows of the last of these statements, which are not batched. Within a transaction they are part of it."""

    steps: Sequence[Step | Then]


@dataclass(frozen=True, slots=True)
class Transaction(Effect[Value]):
    """The result of these steps; all their statements are one transaction, which is rolled back if they raise.

    They may await queries and `Fetch`, and nothing else.
    """

    steps: Steps[Value]


@dataclass(frozen=True, slots=True)
class Call(Effect[Value]):
    """The result of a function that may block. It runs in a thread, and can use Django's ORM, files and slow hashes."""

    function: Callable[[], Value]


@dataclass(frozen=True, slots=True)
class SingleFlight(Effect[Value]):
    """The result of these steps. Requests that ask for the same ``key`` meanwhile wait for the same result."""

    key: Hashable
    begin: Callable[[], Steps[Value]]


@dataclass(frozen=True, slots=True)
class ExclusiveKey(Effect[None]):
    """Wait until no other request of this process holds ``key``, and hold it until the request ends.

    This only avoids conflicts between requests; correctness is left to the database.
    """

    key: Hashable


@dataclass(frozen=True, slots=True)
class ReadBody(Effect[bytes]):
    """The next ``nbytes`` bytes of a body that comes as a stream; fewer, or none, at its end."""

    nbytes: int


LONG_NBYTES: Final = 128 * 1024
"""A longer message is parsed in a thread: on the loop it would hold up all other requests."""


async def parsed(parse: Callable[[], Value], nbytes: int) -> Value:
    """Parse a message of this length, in a thread if it is long."""
    return await in_thread(parse) if nbytes > LONG_NBYTES else parse()


async def in_thread(function: Callable[..., Value], *args: Any, **options: Any) -> Value:
    """Run a use case that blocks from beginning to end."""
    call = Call(lambda: function(*args, **options))
    return await call


async def fetch(*steps: Step | Then) -> Sequence[Row]:
    """The rows of the last of these statements."""
    return await Fetch(steps)
