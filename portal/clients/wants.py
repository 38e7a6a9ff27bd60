"""The wants of a use case for clients: it yields one of these objects, and is sent the result.

A use case is a generator, so it needs neither threads nor a loop. Two drivers run it: `portal.clients.batching`
on the event loop, which sends the queries of several requests as one statement, and `portal.clients.plain`, which does
each thing at once. Pure.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Final, NamedTuple, TypeVar

Found = TypeVar("Found")
Params = Mapping[str, Any]
Row = tuple[Any, ...]
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


class Busy(Exception):
    """Too many requests are waiting: the client is told to try again later."""


class _Apart:
    """See `APART`."""


APART: Final = _Apart()
"""The result of a query that the batch could not do, for instance because others hold its rows. It is done apart.
If that fails too, the use case is sent None."""


class Query(ABC):
    """One request's read or write; queries of one kind are carried out together, in one transaction.

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
        """Whether it may take long or wait for a lock: then it is done apart, and no other query waits for it."""
        return False

    @staticmethod
    @abstractmethod
    def steps(several: Sequence[Any], *, apart: bool) -> Sequence[Step]:
        """The statements of a batch, all of one kind. ``apart``: of a single query, which may wait for locks."""

    @staticmethod
    @abstractmethod
    def found(several: Sequence[Any], rows: Sequence[Row]) -> Sequence[Any]:
        """For each query of the batch, in the same order, its result from the last statement's rows, or `APART`."""


@dataclass(frozen=True, slots=True)
class Fetch:
    """The rows of the last of these statements, which are not batched. Within a transaction they are part of it."""

    steps: Sequence[Step]


@dataclass(frozen=True, slots=True)
class Transaction:
    """The result of these steps; all their statements are one transaction, which is rolled back if they raise.

    They may yield queries and `Fetch`, and nothing else.
    """

    steps: Generator[Any, Any, Any]


@dataclass(frozen=True, slots=True)
class Call:
    """The result of a function that may block. It runs in a thread, and can use Django's ORM, files and slow hashes."""

    function: Callable[[], Any]


@dataclass(frozen=True, slots=True)
class Once:
    """The result of these steps. Requests that ask for the same ``key`` meanwhile wait for the same result."""

    key: Hashable
    steps: Callable[[], Generator[Any, Any, Any]]


@dataclass(frozen=True, slots=True)
class Turn:
    """Wait until no other request of this process holds ``key``, and hold it until the request ends.

    This only avoids conflicts between requests; correctness is left to the database.
    """

    key: Hashable


@dataclass(frozen=True, slots=True)
class ReadBody:
    """The next ``nbytes`` bytes of a body that comes as a stream; fewer, or none, at its end."""

    nbytes: int


Steps = Generator[Any, Any, Found]
"""A use case, or a part of one: it yields its wants, is sent their results, and returns its own result."""


LONG_NBYTES: Final = 128 * 1024
"""A longer message is parsed in a thread: on the loop it would hold up all other requests."""


def parsed(parse: Callable[[], Found], nbytes: int) -> Steps[Found]:
    """What ``parse`` makes of a message of this length."""
    return (yield from in_thread(parse)) if nbytes > LONG_NBYTES else parse()


def in_thread(function: Callable[..., Found], *args: Any, **options: Any) -> Steps[Found]:
    """The steps of a use case that blocks from beginning to end."""
    found: Found = yield Call(lambda: function(*args, **options))
    return found


def fetch(*steps: Step) -> Steps[Sequence[Row]]:
    """The rows of the last of these statements."""
    rows: Sequence[Row] = yield Fetch(steps)
    return rows
